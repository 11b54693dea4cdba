//! Sweeps of several machines on one PostgreSQL.

use serde_json::Value;

use super::http::Served;
use super::place::{Schema, bench};
use crate::support::{Bench, eventually};

fn leave(bench: &Bench, run: &str, flags: &[&str]) {
    let mut args = vec!["run", "-d", "--run-id", run];
    args.extend(flags);
    args.extend(["--", "sh", "-c", "echo up; sleep 1000"]);
    bench.outlast(args).ok();
    eventually("its first line", || {
        let journal = bench.run_file(run, ".ndjson")?;
        std::fs::metadata(journal).is_ok_and(|file| file.len() > 0).then_some(())
    });
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("json")
}

/// Its machine has no host that is alive: past its time it is ended by any other, and its sandbox, agent included, is
/// destroyed once a host there is back.
#[test]
fn a_sandbox_that_no_live_host_reaches() {
    let schema = Schema::new();
    let (here, there) = (bench(&schema.url, true), bench(&schema.url, true));
    leave(&here, "fresh", &[]);
    leave(&here, "late", &["--detach-ttl", "1ms"]);
    let before = here.record("fresh");
    let result = json(&there.outlast(["reap", "--json"]).ok());
    assert_eq!((&result["considered"], &result["probed"]), (&1.into(), &0.into()), "{result}");
    let entry = &result["runs"][0];
    assert_eq!(
        (&entry["runId"], &entry["outcome"], &entry["status"]),
        (&"late".into(), &"expired".into(), &"failed".into())
    );
    assert_eq!(entry["error"]["code"], "sandbox_unreachable");
    assert_eq!(entry["error"]["sandboxKey"], here.record("late")["sandboxKey"]);
    let log = there.log("late");
    assert_eq!(log[log.len() - 1].json["code"], "sandbox_unreachable");
    // The other one is its machine's.
    assert_eq!(here.record("fresh"), before);

    // Seen everywhere, destroyed where it is.
    let pending = json(&there.outlast(["sandbox", "ls", "--json"]).ok());
    let pending = pending
        .as_array()
        .expect("a list")
        .iter()
        .find(|sandbox| sandbox["threadId"] == here.record("late")["threadId"])
        .expect("there")
        .clone();
    assert_eq!((&pending["here"], &pending["state"]), (&false.into(), &"live".into()));
    assert!(pending["reclaimAt"].is_u64());
    assert_eq!(json(&there.outlast(["reclaim", "--json"]).ok())["considered"], 0);
    assert!(here.shim("late").is_some());
    let reclaimed = json(&here.outlast(["reclaim", "--json"]).ok());
    assert_eq!((&reclaimed["considered"], &reclaimed["destroyed"]), (&1.into(), &1.into()), "{reclaimed}");
    assert!(here.shim("late").is_none() && here.shim("fresh").is_some());
    here.outlast(["cancel", "fresh"]).ok();
}

/// A live host on its machine is told, and ends it.
#[test]
fn a_sandbox_that_another_host_reaches() {
    let schema = Schema::new();
    let (here, there) = (bench(&schema.url, true), bench(&schema.url, true));
    let served = Served::start(&here);
    eventually("it has said that it is alive", || {
        let announced = "outlast_job_successes_total{name=\"announce\"} 1";
        served.metrics().filter(|metrics| metrics.contains(announced))
    });
    leave(&here, "late", &["--detach-ttl", "1h"]);
    let result = json(&there.outlast(["reap", "--json", "--ttl", "1ms"]).ok());
    assert_eq!(
        (&result["runs"][0]["runId"], &result["runs"][0]["outcome"]),
        (&"late".into(), &"expired".into()),
        "{result}"
    );
    let record =
        eventually("its end", || Some(there.record("late")).filter(|run| run["status"] != "running"));
    assert_eq!((&record["status"], &record["error"]["code"]), (&"aborted".into(), &"expired".into()));
    eventually("nothing of it lives", || here.shim("late").is_none().then_some(()));
}
