//! What a server does by itself, and over HTTP.

use std::time::Duration;

use serde_json::Value;

use super::leave;
use crate::http::client::Ask;
use crate::http::site::{Site, configure, input, serve_on, serve_with};
use crate::support::{Bench, SmallDisk, eventually, eventually_within};

const QUICK: &str = "[reap]\ninterval = \"100ms\"\nreclaim_interval = \"100ms\"\norphan_grace = \"0s\"\n\
                     [retention]\nevents = \"300ms\"\ninterval = \"100ms\"\n[sandbox]\nreuse = \"none\"\n";

/// Every job of the shipped program does its work without anybody asking for it.
#[test]
fn each_job_does_its_work() {
    let bench = Bench::new();
    configure(&bench, "1500ms", "", QUICK);
    leave(&bench, "done", &[], "echo hi");
    leave(&bench, "late", &["--detach-ttl", "1ms"], "echo up; sleep 1000");
    let label = bench.record("done")["instanceId"]
        .as_str()
        .and_then(|id| id.split_once('-'))
        .expect("a label")
        .0
        .to_owned();
    let orphan = bench.data_dir().join("sandboxes").join(format!("{label}-{}", "ab".repeat(16)));
    std::fs::create_dir_all(orphan.join("runs")).expect("an orphan");
    let server = serve_on(&bench);
    let status = |run: &str| bench.record(run)["status"].as_str().expect("status").to_owned();
    eventually("the adopter completes one", || (status("done") == "completed").then_some(()));
    eventually("the sweep stops one", || (status("late") == "aborted").then_some(()));
    eventually("their sandboxes and the orphan are destroyed", || {
        let left = std::fs::read_dir(bench.data_dir().join("sandboxes")).expect("sandboxes").flatten();
        (left.filter(|entry| entry.path().is_dir()).count() == 0).then_some(())
    });
    eventually("their events age out", || {
        let logs = bench.outlast(["logs", "--json", "done"]);
        logs.stderr.contains("cursor_expired").then_some(())
    });
    for job in ["announce", "adopt", "reap", "reclaim", "prune", "retain"] {
        let line = format!("outlast_job_successes_total{{name=\"{job}\"}} ");
        eventually(&format!("{job} has succeeded"), || {
            let metrics = server.get("/metrics").text();
            let found = metrics.lines().find_map(|found| found.strip_prefix(&line))?;
            found.parse::<f64>().is_ok_and(|value| value > 0.0).then_some(())
        });
    }
}

#[test]
fn numbers_for_operators() {
    let site = Site::with("", "[reap]\nschedule = false\n");
    leave(&site.bench, "r", &[], "sleep 1000");
    drop(site.start("watched", "echo hi"));
    eventually("one has ended", || {
        (site.bench.status("watched").as_deref() == Some("completed")).then_some(())
    });
    let metrics = site.get("/metrics").text();
    for line in [
        "outlast_runs{status=\"running\"} 1",
        "outlast_runs{status=\"completed\"} 1",
        "outlast_runs_detached 1",
        "outlast_sandboxes{state=\"live\"} 2",
        "outlast_reclaims_failed 0",
        "outlast_viewers 0",
        "# EOF",
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line} in {metrics}");
    }
    for name in [
        "outlast_oldest_detached_age_seconds",
        "outlast_store_size_bytes",
        "outlast_journals_size_bytes",
        "outlast_events_appended_total",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} in {metrics}");
    }
    assert!(!metrics.contains("name=\"reap\""), "it is switched off");
    site.bench.outlast(["cancel", "r"]).ok();
}

/// The sweep that platforms call: always with a token.
#[test]
fn called_over_http() {
    let open = Site::with("", "[reap]\nschedule = false\n");
    for method in ["GET", "POST"] {
        let (code, message) = open.ask(&Ask::new(method, "/v1/reap")).refused(401);
        assert!(code == "unauthorized" && message.contains("outlast reap"), "{message}");
    }
    let bench = Bench::new();
    configure(&bench, "1500ms", "", "[reap]\nschedule = false\n");
    let server = serve_with(&bench, &[], &[("OUTLAST_TOKEN", "a-token-of-sixteen-or-more")]);
    for method in ["GET", "POST"] {
        server.ask(&Ask::new(method, "/v1/reap")).refused(401);
        let run = format!("late-{method}");
        leave(&bench, &run, &["--detach-ttl", "1h"], "sleep 1000");
        let ask = |target: &str| {
            Ask::new(method, target).header("Authorization", "Bearer a-token-of-sixteen-or-more")
        };
        let result = server.ask(&ask("/v1/reap?timeLimit=20s")).ok();
        assert_eq!((&result["considered"], &result["outcomes"]["producing"]), (&1.into(), &1.into()));
        let result = server.ask(&ask("/v1/reap?ttl=1ms&maxRuns=5")).ok();
        assert_eq!(
            (&result["runs"][0]["runId"], &result["outcomes"]["expired"]),
            (&Value::from(run), &1.into()),
            "{result}"
        );
        for wrong in ["ttl=5", "maxRuns=0", "maxRuns=x", "timeLimit=soon"] {
            server.ask(&ask(&format!("/v1/reap?{wrong}"))).refused(400);
        }
    }
}

/// What a platform's scheduler takes for a failure, and a person should look at.
#[test]
fn a_sandbox_that_stays_is_a_failure() {
    let bench = Bench::new();
    configure(
        &bench,
        "1500ms",
        "",
        "[reap]\nschedule = false\nreclaim_schedule = false\n[sandbox]\nreuse = \"none\"\n",
    );
    let server = serve_with(&bench, &[], &[("OUTLAST_TOKEN", "a-token-of-sixteen-or-more")]);
    leave(&bench, "r", &["--detach-ttl", "1h"], "sleep 1000");
    let journal = eventually("its journal", || bench.run_file("r", ".ndjson"));
    let busy = journal.parent().and_then(|runs| runs.parent()).expect("a sandbox").join("work/busy");
    std::fs::create_dir(&busy).expect("directory");
    // What is mounted there cannot be removed.
    let Some(disk) = SmallDisk::mount(&busy, "1m") else { return };
    let ask =
        Ask::new("POST", "/v1/reap?ttl=1ms").header("Authorization", "Bearer a-token-of-sixteen-or-more");
    let answer = server.ask(&ask);
    assert_eq!(answer.status, 503);
    let result = answer.json();
    let swept = &result["runs"][0];
    assert_eq!(
        (&swept["outcome"], &swept["status"]),
        (&"reclaim-failed".into(), &"aborted".into()),
        "{result}"
    );
    let metrics =
        server.ask(&Ask::get("/metrics").header("Authorization", "Bearer a-token-of-sixteen-or-more")).text();
    assert!(metrics.contains("\noutlast_reclaims_failed 1\n"), "the leak alert fires: {metrics}");
    // It was moved out of its place, with what is mounted in it.
    let name = busy
        .ancestors()
        .nth(2)
        .and_then(|path| path.file_name())
        .and_then(|name| name.to_str())
        .expect("a name");
    let moved = bench.data_dir().join("sandboxes").join(format!(".trash-{name}/work/busy"));
    let unmounted = std::process::Command::new("umount").arg(&moved).status().expect("umount");
    assert!(unmounted.success());
    drop(disk);
    eventually("it is gone", || {
        let sandboxes: Value =
            serde_json::from_str(&bench.outlast(["sandbox", "ls", "--json"]).ok()).expect("json");
        let id = sandboxes[0]["instanceId"].as_str()?.to_owned();
        (bench.outlast(["sandbox", "rm", &id]).code() == 0).then_some(())
    });
}

/// The thread of a run whose events have gone is told of, and shown from its messages.
#[test]
fn a_log_that_has_aged_out() {
    let site = Site::with("", "[retention]\nevents = \"100ms\"\nschedule = false\n");
    let body = input("r 1", "thread/1", "echo hi");
    crate::http::client::Stream::of(site.post("/api/chat", &body)).whole();
    eventually("its events are gone", || {
        let gc = site.bench.outlast(["gc", "--json"]).ok();
        gc.contains("\"logs\":1").then_some(())
    });
    let targets =
        ["/api/chat?runId=r%201&offset=-1", "/api/chat?runId=r%201&offset=now", "/v1/runs/r%201/events"];
    for target in targets {
        let error = site.get(target).refusal(410);
        let expected = ("cursor_expired".into(), "/api/chat?threadId=thread%2F1".into());
        assert_eq!((&error["code"], &error["url"]), (&expected.0, &expected.1), "{target}");
    }
    assert_eq!(site.post("/api/chat", &body).status, 410, "the same request again");
    let thread = site.get("/api/chat?threadId=thread%2F1").ok();
    let said: Vec<&str> = thread["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| message["role"].as_str().expect("role"))
        .collect();
    assert_eq!(said, ["user", "assistant"]);
}

/// A viewer that comes back while the sweep is at it sees the end.
#[test]
fn a_viewer_who_comes_back() {
    let site = Site::with("", "[reap]\ninterval = \"50ms\"\n");
    leave(&site.bench, "r", &["--detach-ttl", "300ms"], "echo up; sleep 1000");
    let mut viewer = site.join("r", "-1");
    viewer.wait_for("up");
    // Longer than it may go on without one.
    let sweeps = || -> f64 {
        let metrics = site.get("/metrics").text();
        let line = "outlast_job_successes_total{name=\"reap\"} ";
        metrics
            .lines()
            .find_map(|found| found.strip_prefix(line))
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0)
    };
    let before = sweeps();
    eventually("many sweeps", || (sweeps() > before + 20.0).then_some(()));
    assert_eq!(site.bench.record("r")["cancelRequested"], Value::Null, "it is watched");
    drop(viewer);
    let mut native = site.native("r");
    native.wait_for("up");
    drop(native);
    eventually_within(Duration::from_secs(40), "its time is up", || {
        (site.bench.status("r").as_deref() == Some("aborted")).then_some(())
    });
}
