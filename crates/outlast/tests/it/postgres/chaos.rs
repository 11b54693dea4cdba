//! Servers in trouble, in short rounds; `outlast-testkit` plays long ones.

use std::path::PathBuf;
use std::time::Duration;

use outlast_testkit::chaos::{Plan, Report, round};

use super::place::server;

/// Plays this round. What it leaves behind stays when a promise was broken.
fn play(plan: impl FnOnce(PathBuf, String, PathBuf) -> Plan) -> Report {
    let dir = tempfile::Builder::new().prefix("outlast-chaos-").tempdir().expect("a directory");
    let plan = plan(env!("CARGO_BIN_EXE_outlast").into(), server(), dir.path().to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let report = runtime.block_on(round(&plan)).expect("a round");
    if !report.broken.is_empty() {
        panic!("seed {}, all of it in {}: {:#?}", report.seed, dir.keep().display(), report.broken);
    }
    assert_eq!(report.ends.values().sum::<usize>(), plan.runs, "{report:?}");
    report
}

/// Killed, frozen for longer than their leases, replaced, cut off from PostgreSQL and from their viewers, all at once.
#[test]
fn every_promise_holds_whatever_happens_to_the_servers() {
    for seed in [11, 12] {
        let report = play(|outlast, database, dir| Plan {
            runs: 12,
            trouble: Duration::from_secs(12),
            ..Plan::new(outlast, database, dir, seed)
        });
        // The round was hard enough to show something.
        assert!(report.deeds.values().sum::<usize>() >= 8, "{report:?}");
        assert!(report.epochs > report.ends.values().sum::<usize>() as u64, "{report:?}");
        assert!(report.connections > report.viewers, "{report:?}");
    }
}

/// Three servers replaced one after the other: nothing is lost or doubled, and no client is told anything that it cannot
/// answer by coming back.
#[test]
fn a_rolling_restart_under_load_loses_and_doubles_nothing() {
    let report = play(|outlast, database, dir| Plan {
        runs: 12,
        trouble: Duration::from_secs(8),
        ..Plan::rolling(outlast, database, dir, 21)
    });
    assert!(report.deeds["restarted"] >= 3, "each of them at least once: {report:?}");
    assert!(!report.ends.keys().any(|end| end.starts_with("aborted")), "{report:?}");
}
