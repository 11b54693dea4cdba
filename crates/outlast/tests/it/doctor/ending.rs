//! What ends by itself, and who sees to it.

use std::fs;

use super::report::Report;
use crate::http::site::serve_on;
use crate::support::{Bench, Ordinary, eventually};

fn doctor(bench: &Bench) -> Report {
    Report::of(&bench.outlast(["doctor", "--json"]))
}

#[test]
fn a_run_past_its_time_and_nobody_who_sees_to_it() {
    let bench = Bench::with_config("[reap]\ninterval = \"200ms\"\ndetached_run_ttl = \"24h\"\n");
    let report = doctor(&bench);
    let (level, finding, advice) = report.check("servers");
    assert_eq!((level, finding), ("ok", "no `outlast serve` is alive"), "and nothing waits for one");
    assert!(advice.contains("outlast reap"), "{advice}");
    for check in ["clock", "sweep", "overdue", "undriven", "sandboxes"] {
        assert_eq!(report.check(check).0, "ok", "{:?}", report.check(check));
    }
    bench.outlast(["run", "-d", "--run-id", "r", "--detach-ttl", "1ms", "--", "sleep", "1000"]).ok();
    let (finding, advice) = eventually("it is past its time", || {
        let report = doctor(&bench);
        let (level, finding, advice) = report.check("overdue");
        (level == "problem").then(|| (finding.to_owned(), advice.to_owned()))
    });
    assert!(finding.starts_with("1 run has gone on"), "{finding}");
    assert!(advice.contains("`outlast reap`"), "{advice}");
    let report = doctor(&bench);
    assert_eq!(report.check("servers").0, "warning", "a run waits for one: {:?}", report.check("servers"));
    assert!(report.check("undriven").1.starts_with("1 live run"), "{:?}", report.check("undriven"));
    bench.outlast(["reap"]).ok();
    let report = doctor(&bench);
    for check in ["overdue", "undriven", "servers", "orphans"] {
        assert_eq!(report.check(check).0, "ok", "{:?}", report.check(check));
    }
}

#[test]
fn a_server_that_is_alive() {
    let bench = Bench::new();
    bench.outlast(["run", "-d", "--run-id", "r", "--", "sleep", "1000"]).ok();
    let server = serve_on(&bench);
    eventually("it has announced itself", || {
        let report = doctor(&bench);
        let (level, finding, _) = report.check("servers");
        (level == "ok" && finding.starts_with("1 server alive") && finding.contains("/metrics")).then_some(())
    });
    eventually("it drives the run", || {
        (doctor(&bench).check("undriven").1 == "no live run is without a driver").then_some(())
    });
    drop(server);
    bench.outlast(["cancel", "r"]).ok();
}

#[test]
fn a_sandbox_that_cannot_be_destroyed() {
    let Some(ordinary) = Ordinary::new() else { return };
    let bench = ordinary.bench("[sandbox]\nreuse = \"none\"\n");
    bench.outlast(["run", "--run-id", "r", "--", "true"]).ok();
    let instance = bench.record("r")["instanceId"].as_str().expect("id").to_owned();
    let report = doctor(&bench);
    assert_eq!(report.check("sandboxes"), ("ok", "1 due to be destroyed", ""));
    // Another user's file in it: the ordinary user cannot remove what is in there.
    let foreign = bench.data_dir().join("sandboxes").join(&instance).join("work/foreign");
    fs::create_dir(&foreign).expect("directory");
    fs::write(foreign.join("file"), "").expect("file");
    assert_eq!(bench.outlast(["reclaim"]).code(), 1);
    let report = doctor(&bench);
    let (level, finding, advice) = report.check("sandboxes");
    assert_eq!(level, "problem", "{finding}");
    assert!(finding.contains("of which 1 could not be"), "{finding}");
    assert!(advice.contains("`outlast sandbox ls`"), "{advice}");
}

#[test]
fn a_sandbox_that_no_record_knows_of() {
    let bench = Bench::with_config("[reap]\norphan_grace = \"0s\"\n");
    bench.outlast(["run", "--run-id", "r", "--", "true"]).ok();
    assert_eq!(doctor(&bench).check("orphans").0, "ok");
    let instance = bench.record("r")["instanceId"].as_str().expect("id").to_owned();
    let (label, _) = instance.split_once('-').expect("a label");
    let orphan = bench.data_dir().join("sandboxes").join(format!("{label}-{}", "ab".repeat(16)));
    fs::create_dir_all(orphan.join("runs")).expect("an orphan");
    let report = doctor(&bench);
    let (level, finding, advice) = report.check("orphans");
    assert_eq!((level, finding), ("warning", "1 sandbox that no record knows of"));
    assert!(advice.contains("outlast sandbox orphans"), "{advice}");
    assert!(orphan.exists(), "only looked at");
}

#[test]
fn sweeps_that_come_too_seldom() {
    let bench = Bench::with_config("[reap]\ninterval = \"10m\"\ndetached_run_ttl = \"15m\"\n");
    let report = doctor(&bench);
    let (level, finding, advice) = report.check("sweep");
    assert_eq!(level, "warning", "{finding}");
    assert!(advice.contains("[reap] interval"), "{advice}");
}
