//! Destroying instances, and nothing else.

use std::sync::Arc;

use outlast_core::InstanceId;

use super::Subject;
use super::bench::Bench;
use crate::KillOutcome;

pub(super) async fn only_what_was_made(subject: Arc<dyn Subject>) {
    let other = Bench::new(Arc::clone(&subject)).await;
    other.launch("echo kept > file").await;
    other.read_to_end(0, 4096).await;
    let lent = other.workspace();
    let lent = lent.to_str().expect("text");

    let provider = subject.provider();
    let borrower = subject.ports().entropy.instance_id();
    provider.create(&borrower, Some(lent)).await.expect("create");
    assert_eq!(provider.paths(&borrower, Some(lent)).workspace, other.workspace());

    let bench = Bench::new(subject).await;
    // A link out of the sandbox, and what package caches do to their directories.
    bench.launch(&format!("ln -s {lent} link; mkdir -p a/b; touch a/b/c; chmod 500 a/b a")).await;
    bench.until_shim_is_gone().await;
    for instance in [&borrower, &bench.instance] {
        provider.destroy(instance).await.expect("destroy");
        assert!(!provider.exists(instance).await.expect("exists"));
        provider.destroy(instance).await.expect("already gone is success");
    }
    assert!(!bench.workspace().exists());
    assert_eq!(std::fs::read_to_string(other.workspace().join("file")).expect("kept"), "kept\n");
    assert!(provider.exists(&other.instance).await.expect("exists"));
}

pub(super) async fn a_live_run_prevents_it(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("touch up; sleep 1000").await;
    bench.until_file("up").await;
    bench.provider.destroy(&bench.instance).await.expect_err("a run is live");
    let facts = bench.facts().await;
    assert!(facts.exists && facts.shim_alive);
    assert!(!bench.census().is_empty());
    assert_eq!(bench.kill().await, KillOutcome::Dead);
    bench.until_shim_is_gone().await;
    bench.provider.destroy(&bench.instance).await.expect("destroy");
}

pub(super) async fn what_is_put_aside_is_listed_and_can_be_destroyed(subject: Arc<dyn Subject>) {
    let live = Bench::new(Arc::clone(&subject)).await;
    live.launch("touch up; sleep 1000").await;
    live.until_file("up").await;
    let idle = Bench::new(subject).await;
    idle.launch("echo precious > file").await;
    idle.until_shim_is_gone().await;
    let (provider, now) = (Arc::clone(&idle.provider), idle.subject.ports().clock.wall_ms());
    let found = async |id: &InstanceId| {
        let all = provider.list().await.expect("list");
        all.into_iter().find(|found| found.instance.as_ref() == Some(id))
    };
    for bench in [&live.instance, &idle.instance] {
        let found = found(bench).await.expect("listed");
        assert!(!found.quarantined);
        let since = found.since.expect("a time");
        assert!(since <= now + 2_000 && since + 600_000 > now, "{since} {now}");
    }
    provider.quarantine(&live.instance).await.expect_err("a run lives in it");
    assert!(!found(&live.instance).await.expect("listed").quarantined);
    assert!(provider.exists(&live.instance).await.expect("exists"));

    provider.quarantine(&idle.instance).await.expect("put aside");
    provider.quarantine(&idle.instance).await.expect("again");
    assert!(!provider.exists(&idle.instance).await.expect("exists"));
    assert!(found(&idle.instance).await.expect("listed").quarantined);
    provider.destroy(&idle.instance).await.expect("destroy");
    assert_eq!(found(&idle.instance).await, None);
    assert_eq!(live.kill().await, KillOutcome::Dead);
}
