//! A run is started on one host, followed on another, and goes on when its driver goes.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::http::Served;
use super::place::{Schema, bench};
use crate::support::{Bench, eventually, eventually_within, gated_agent, numbered_text};

/// Everything that holds for a run that has ended, whoever drove it.
#[track_caller]
fn check_ended(bench: &Bench, run: &str, lines: u32) {
    let log = bench.check_ended(run);
    assert_eq!(Bench::text(&log), numbered_text(lines), "every line once, in order");
    bench.outlast(["verify", run]).ok();
}

#[test]
fn a_viewer_goes_on_when_the_driver_is_killed() {
    for notifications in [true, false] {
        let schema = Schema::new();
        let bench = bench(&schema.url, notifications);
        let mut driver = bench.spawn(bench.run_args("r", &[], &gated_agent(3, 6, 0)));
        driver.wait_for("line 2");
        let mut viewer = bench.spawn(["attach", "--json", "r"]);
        viewer.wait_for("line 2");
        let first = bench.record("r");
        assert_eq!(first["driverEpoch"], 1);
        driver.kill9();
        // Nothing tells that its owner is dead, so the lease has to run out.
        let second = eventually("another driver", || {
            let record = bench.record("r");
            (record["driverEpoch"] == 2 && !record["driver"].is_null()).then_some(record)
        });
        assert_ne!(second["driver"]["owner"], first["driver"]["owner"]);
        assert!(second["driver"]["since"].as_u64() > first["driver"]["since"].as_u64());
        bench.open_gate();
        let ended = viewer.finish();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        assert_eq!(ended.stdout, bench.outlast(["logs", "--json", "r"]).ok());
        check_ended(&bench, "r", 6);
        assert_eq!(bench.starts(), 1);
    }
}

/// Where the hosts tell each other nothing, each looks by itself, soon enough.
#[test]
fn a_viewer_on_another_machine_gets_everything_within_two_seconds_without_notifications() {
    let schema = Schema::new();
    let (here, there) = (bench(&schema.url, false), bench(&schema.url, false));
    let mut driver = here.spawn(here.run_args("r", &[], &gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    let served = Served::start(&there);
    let stream = served.follow("r");
    stream.wait_for("line 2");
    here.open_gate();
    driver.wait_for("line 5");
    eventually_within(Duration::from_secs(2), "the last line", || stream.has("line 5").then_some(()));
    assert_eq!(driver.finish().code(), 0);
    let events = stream.events();
    assert_eq!(events.len(), here.log("r").len());
    check_ended(&here, "r", 6);
    // The other machine knows the run, and does not reach its sandbox.
    assert_eq!(there.record("r"), here.record("r"));
}

/// Who drives the run, as this server says.
fn driver(served: &Served, run: &str) -> Option<(String, u64)> {
    let record = served.get(&format!("/v1/runs/{run}"))?;
    Some((record["driver"]["owner"].as_str()?.to_owned(), record["driverEpoch"].as_u64()?))
}

/// Whether or not anybody watches, and whether or not the hosts tell each other.
#[test]
fn a_peer_goes_on_within_a_second_of_sigterm() {
    for (notifications, watched) in [(true, true), (true, false), (false, true), (false, false)] {
        let schema = Schema::new();
        let bench = bench(&schema.url, notifications);
        bench.start_waiting(6);
        let first = Served::start(&bench);
        let (owner, epoch) = eventually("the first server drives", || driver(&first, "r"));
        let second = Served::start(&bench);
        let stream = watched.then(|| second.follow("r"));
        if let Some(stream) = &stream {
            stream.wait_for("line 2");
        }
        assert_eq!(driver(&second, "r"), Some((owner.clone(), epoch)), "the second one only reads");

        first.process.signal(Signal::TERM);
        let (other, next) = eventually_within(Duration::from_secs(1), "the second server drives", || {
            driver(&second, "r").filter(|(other, _)| *other != owner)
        });
        assert_eq!(next, epoch + 1);
        assert_eq!(first.process.finish().code(), 0);

        shown(&bench, &second, &other, next);
        bench.open_gate();
        let events = stream.unwrap_or_else(|| second.follow("r")).events();
        assert_eq!(events.len(), bench.log("r").len());
        check_ended(&bench, "r", 6);
        assert_eq!(bench.starts(), 1);
    }
}

/// How long a lease runs here: see [`bench`].
const LEASE: Duration = Duration::from_millis(1500);

/// Nobody can know at once that a host on another machine has died, so it takes its lease; and a second.
#[test]
fn a_viewer_waits_no_longer_than_a_lease_and_a_second_when_the_driver_is_killed() {
    let schema = Schema::new();
    let bench = bench(&schema.url, true);
    bench.start_waiting(6);
    let first = Served::start(&bench);
    let (owner, _) = eventually("the first server drives", || driver(&first, "r"));
    let second = Served::start(&bench);
    let stream = second.follow("r");
    stream.wait_for("line 2");
    assert_eq!(driver(&second, "r").expect("driven").0, owner);

    first.process.kill9();
    bench.open_gate();
    eventually_within(LEASE + Duration::from_secs(1), "the next line", || stream.has("line 3").then_some(()));
    let events = stream.events();
    assert_eq!(events.len(), bench.log("r").len());
    check_ended(&bench, "r", 6);
    assert_eq!(bench.starts(), 1);
}

/// Both faces say who drives, since when, at which epoch.
#[track_caller]
fn shown(bench: &Bench, served: &Served, owner: &str, epoch: u64) {
    let runs: Value = served.get("/v1/runs?status=live").expect("answered");
    let listed: Value = serde_json::from_str(&bench.outlast(["ps", "--json"]).ok()).expect("json");
    for run in [&runs["runs"][0], &listed[0]] {
        assert_eq!(
            (run["driver"]["owner"].as_str(), run["driverEpoch"].as_u64()),
            (Some(owner), Some(epoch))
        );
        let since = run["driver"]["since"].as_u64().expect("a time");
        assert!(since > run["startedAt"].as_u64().expect("a time"), "{run}");
    }
    let text = bench.outlast(["ps"]).ok();
    let says = format!("driven by {} for ", &owner[..8]);
    assert!(text.contains(&says) && text.contains(&format!(", epoch {epoch}")), "{text}");
}
