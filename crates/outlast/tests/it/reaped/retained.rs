//! What ages out, and what stays.

use serde_json::Value;

use crate::support::{Bench, eventually};

fn gc(bench: &Bench, flags: &[&str]) -> Value {
    let mut args = vec!["gc", "--json"];
    args.extend(flags);
    serde_json::from_str(&bench.outlast(args).ok()).expect("json")
}

#[test]
fn events_go_and_messages_stay() {
    let bench = Bench::with_config("[retention]\nevents = \"200ms\"\n");
    bench.outlast(["run", "--run-id", "r", "--thread", "t", "--", "sh", "-c", "echo hi"]).ok();
    let (record, messages) = (bench.record("r"), bench.outlast(["show", "--messages", "--json", "r"]).ok());
    let events = bench.log("r").len() as u64;
    let dry = eventually("it is old enough", || {
        let dry = gc(&bench, &["--dry-run"]);
        (dry["logs"] == 1).then_some(dry)
    });
    assert_eq!((&dry["events"], &dry["dryRun"]), (&events.into(), &true.into()));
    assert_eq!(bench.log("r").len() as u64, events, "nothing went");
    let done = gc(&bench, &[]);
    assert_eq!((&done["logs"], &done["events"], &done["records"]), (&1.into(), &events.into(), &0.into()));
    for command in [vec!["logs", "r"], vec!["attach", "r"], vec!["verify", "r"]] {
        let refused = bench.outlast(command.iter().chain(&["--json"]));
        let error: Value =
            serde_json::from_str(refused.stderr.lines().last().expect("an error")).expect("json");
        assert_eq!(error["error"]["code"], "cursor_expired", "{command:?} {error}");
    }
    assert_eq!(bench.record("r"), record);
    assert_eq!(bench.outlast(["show", "--messages", "--json", "r"]).ok(), messages);
    assert_eq!(gc(&bench, &[])["logs"], 0);
}

#[test]
fn records_go_where_the_configuration_says_so() {
    let bench = Bench::with_config(
        "[retention]\nevents = \"100ms\"\nmessages = \"100ms\"\n[sandbox]\nkeep_alive = \"none\"\n",
    );
    bench.outlast(["run", "--run-id", "r", "--", "true"]).ok();
    eventually("its events are gone", || (gc(&bench, &[])["logs"] == 1).then_some(()));
    assert_eq!(gc(&bench, &[])["records"], 0, "its sandbox is there");
    let sandboxes: Value =
        serde_json::from_str(&bench.outlast(["sandbox", "ls", "--json"]).ok()).expect("json");
    bench.outlast(["sandbox", "rm", sandboxes[0]["instanceId"].as_str().expect("id")]).ok();
    assert_eq!(gc(&bench, &[])["records"], 1);
    assert_eq!(bench.outlast(["show", "r"]).code(), 1);
}

#[test]
fn a_configuration_that_would_lose_threads_is_refused() {
    let bench = Bench::with_config("[retention]\nevents = \"30d\"\nmessages = \"7d\"\n");
    let refused = bench.outlast(["gc"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("retention.messages"), "{}", refused.stderr);
}
