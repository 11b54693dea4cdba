//! Destroying instances, and nothing else.

use std::sync::Arc;

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
