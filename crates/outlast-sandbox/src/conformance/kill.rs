//! Killing a run, its whole tree, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use super::Subject;
use super::bench::{Bench, KILL_PROMISE_MS};
use crate::KillOutcome;

pub(super) async fn what_was_not_started_needs_no_kill(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    assert_eq!(bench.kill().await, KillOutcome::NeverStarted);
    bench.provider.latch_cancelled(&bench.instance, &bench.run).await.expect("cancel");
    assert_eq!(bench.kill().await, KillOutcome::NeverStarted);
}

/// A program that goes on until it is killed. Its first argument is what the census looks for, its second the file that
/// it makes when it is up.
const LIVE: &str = "touch \"$2\"; while :; do sleep 1; done\n";

pub(super) async fn escapees_die(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    std::fs::write(bench.workspace().join("live"), LIVE).expect("script");
    // Ways to leave an agent's process group, session, parent, environment and standard streams.
    let script = format!(
        "setsid sh live {0} one &\n\
         (env -i PATH=\"$PATH\" setsid sh live {0} two &) &\n\
         (setsid sh -c 'setsid sh live {0} three </dev/null >/dev/null 2>&1 &' &)\n\
         sleep 1000",
        bench.marker
    );
    bench.launch(&script).await;
    for name in ["one", "two", "three"] {
        bench.until_file(name).await;
    }
    assert!(bench.census().len() >= 4, "the agent and three escapees: {:?}", bench.census());
    assert_eq!(bench.kill().await, KillOutcome::Dead);
    bench.assert_nothing_lives();
    let (_, record) = bench.read_to_end(0, 4096).await;
    assert_eq!(record.exit, 143, "a killed run's end is recorded too");
}

pub(super) async fn the_stubborn_die_in_time(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    // One that ignores the request, one that was stopped, and the agent itself.
    bench
        .launch(
            "setsid sh -c 'trap \"\" TERM HUP INT; touch one; while :; do sleep 1; done' &\n\
             sh -c 'touch two; kill -STOP $$' &\n\
             trap '' TERM; touch three; while :; do sleep 1; done",
        )
        .await;
    for name in ["one", "two", "three"] {
        bench.until_file(name).await;
    }
    let before = bench.now();
    assert_eq!(bench.kill().await, KillOutcome::Dead);
    let took = bench.now() - before;
    assert!(took < KILL_PROMISE_MS, "took {took} ms");
    assert!(took > 4_000, "the grace was not given: {took} ms");
    bench.assert_nothing_lives();
    assert_eq!(bench.read_to_end(0, 4096).await.1.exit, 137);
}

pub(super) async fn a_short_grace_is_kept(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("trap '' TERM; touch up; while :; do sleep 1; done").await;
    bench.until_file("up").await;
    let before = bench.now();
    let killed = bench.provider.kill(&bench.instance, &bench.run, Duration::ZERO).await.expect("kill");
    assert_eq!(killed, KillOutcome::Dead);
    assert!(bench.now() - before < 4_000, "killed before the shim would have");
    bench.assert_nothing_lives();
}

pub(super) async fn many_killers_agree(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("touch up; sleep 1000").await;
    bench.until_file("up").await;
    let mut killers = Vec::new();
    for _ in 0..4 {
        let (provider, instance, run) = (bench.subject.provider(), bench.instance.clone(), bench.run.clone());
        killers
            .push(tokio::spawn(async move { provider.kill(&instance, &run, Duration::from_secs(5)).await }));
    }
    for killer in killers {
        assert_eq!(killer.await.expect("task").expect("kill"), KillOutcome::Dead);
    }
    bench.assert_nothing_lives();
}

pub(super) async fn an_ended_run_is_dead_and_its_neighbour_lives(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let neighbour = bench.another_run();
    neighbour.launch("touch neighbour; while ! [ -e go ]; do sleep 0.01; done; echo survived").await;
    neighbour.until_file("neighbour").await;
    bench.launch("echo hi").await;
    bench.until_shim_is_gone().await;
    for _ in 0..2 {
        assert_eq!(bench.kill().await, KillOutcome::Dead);
    }
    std::fs::write(bench.workspace().join("go"), "").expect("go");
    let (printed, record) = neighbour.read_to_end(0, 4096).await;
    assert_eq!((printed.as_slice(), record.exit), (b"survived\n".as_slice(), 0));
    assert_eq!(bench.read_to_end(0, 4096).await.1.exit, 0, "a kill after the end changes nothing");
}
