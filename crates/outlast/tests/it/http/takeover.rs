//! Runs that another process drives, or nobody: they are shown at once, and driven on.

use rustix::process::Signal;
use serde_json::Value;

use super::client::{End, Stream, lines};
use super::site::{Site, gated, input, serve_on};
use crate::support::{Bench, Proc, gated_agent, numbered_text};
use crate::viewers::stop;

/// A lease that outlasts every test: whoever waits for its end fails.
const LONG: &str = "300s";

/// `outlast run` of a gated agent in another process, which has shown three of `total` lines.
fn driven_elsewhere(site: &Site, total: u32) -> Proc {
    let mut driver = site.bench.spawn(site.bench.run_args("r", &[], &gated_agent(3, total, 7)));
    driver.wait_for("line 2");
    driver
}

#[track_caller]
fn check_whole(site: &Site, total: u32, epoch: u64) {
    assert_eq!(Bench::text(&site.bench.check_ended("r")), numbered_text(total));
    assert_eq!(site.bench.starts(), 1, "one agent");
    let record = site.run("r");
    assert_eq!(record["driverEpoch"], epoch, "{record}");
    assert_eq!(record["exitCode"], 7);
}

#[test]
fn a_run_that_a_living_process_drives_is_followed_live() {
    let site = Site::with_lease(LONG, "", "");
    let driver = driven_elsewhere(&site, 30);
    let mut viewer = site.join("r", "-1");
    viewer.wait_for("line 2");
    let owner = site.run("r")["driver"]["owner"].clone();
    assert!(owner.is_string());
    site.bench.open_gate();
    let events = viewer.whole();
    let driver = driver.finish();
    assert_eq!((driver.code(), driver.stdout.as_str()), (7, lines(&events).as_str()), "{}", driver.stderr);
    check_whole(&site, 30, 1);
}

#[test]
fn what_is_stored_comes_at_once_though_a_frozen_process_holds_the_run() {
    let site = Site::with_lease(LONG, "", "");
    let driver = driven_elsewhere(&site, 12);
    stop(&driver, false);
    let mut viewers = [site.join("r", "-1"), site.native("r")];
    for viewer in &mut viewers {
        viewer.wait_until_caught_up();
        assert_eq!(lines(&viewer.events()), site.stored("r"));
    }
    assert_eq!(site.run("r")["driverEpoch"], 1, "nobody could take it over");
    driver.signal(Signal::CONT);
    site.bench.open_gate();
    for viewer in viewers {
        assert_eq!(lines(&viewer.whole()), site.stored("r"));
    }
    assert_eq!(driver.finish().code(), 7);
    check_whole(&site, 12, 1);
}

#[test]
fn a_frozen_driver_is_succeeded_once_its_lease_has_ended() {
    let site = Site::with_lease("500ms", "", "");
    let driver = driven_elsewhere(&site, 12);
    stop(&driver, false);
    let mut viewer = site.join("r", "-1");
    viewer.wait_for("line 2");
    site.bench.open_gate();
    let events = viewer.whole();
    driver.signal(Signal::CONT);
    let thawed = driver.finish();
    assert_eq!((thawed.code(), thawed.stdout), (7, lines(&events)), "a plain reader: {}", thawed.stderr);
    check_whole(&site, 12, 2);
}

#[test]
fn the_run_of_a_killed_process_is_taken_over_at_once() {
    let site = Site::with_lease(LONG, "", "");
    driven_elsewhere(&site, 12).kill9();
    let mut viewer = site.join("r", "-1");
    viewer.wait_for("line 2");
    site.wait_until("r", "driven again", |record| record["driver"].is_object());
    site.bench.open_gate();
    site.check_all("r", &viewer.whole());
    check_whole(&site, 12, 2);
}

#[test]
fn the_runs_of_a_killed_server_are_taken_over_by_another_and_nobody_need_ask() {
    let mut site = Site::with_lease(LONG, "", "");
    let mut lost = site.start("r", &gated(12));
    lost.wait_for("line 2");
    let other = serve_on(&site.bench);
    site.server.proc.signal(Signal::KILL);
    assert_eq!(lost.rest(), End::Cut);
    other.wait_until("r", "driven by the other", |record| record["driverEpoch"] == 2);
    site.bench.open_gate();
    other.wait_for_end("r");
    site.server = other;
    let mut back = Stream::of(site.get(&format!("/api/chat?runId=r&offset={}", lost.events()[3].id)));
    assert_eq!(back.rest(), End::Clean);
    site.check_all("r", &[&lost.events()[..4], &back.events()].concat());
    check_whole(&site, 12, 2);
}

#[test]
fn runs_without_a_driver_are_found_and_driven_without_any_viewer() {
    let bench = Bench::new();
    bench.outlast(bench.run_args("before", &["-d", "--share-workspace"], &gated_agent(3, 12, 7))).ok();
    let site = Site { server: serve_on(&bench), bench };
    site.wait_until("before", "found at the start", |record| record["driver"].is_object());
    site.bench
        .outlast(site.bench.run_args("after", &["-d", "--share-workspace"], &gated_agent(3, 12, 7)))
        .ok();
    let record = site.wait_until("after", "found", |record| record["driver"].is_object());
    assert!(record["detachedSince"].is_u64(), "driven and watched are two things: {record}");
    site.bench.open_gate();
    for run in ["before", "after"] {
        let record = site.wait_for_end(run);
        assert_eq!((&record["exitCode"], &record["driver"]), (&7.into(), &Value::Null), "{record}");
        assert_eq!(Bench::text(&site.bench.check_ended(run)), numbered_text(12));
    }
    assert_eq!(site.bench.starts(), 2);
}

#[test]
fn two_servers_and_a_shell_on_one_directory_share_its_runs() {
    let site = Site::new();
    let other = serve_on(&site.bench);
    let mut here = site.start("r", &gated(12));
    here.wait_for("line 2");
    let mut there = other.join("r", "-1");
    there.wait_for("line 2");
    let mut again = Stream::of(other.post("/api/chat", &input("r", "thread-r", &gated(12))));
    again.wait_for("line 2");
    let mut shell = site.bench.spawn(["attach", "--json", "r"]);
    shell.wait_for("line 2");
    let busy = other.post("/api/chat", &input("s", "thread-r", "true")).refusal(409);
    assert_eq!((&busy["code"], &busy["runId"]), (&"thread_busy".into(), &"r".into()));
    site.bench.open_gate();
    let events = here.whole();
    assert_eq!(there.whole(), events);
    assert_eq!(again.whole(), events);
    let shell = shell.finish();
    assert_eq!((shell.code(), shell.stdout), (7, lines(&events)), "{}", shell.stderr);
    site.check_all("r", &events);
    check_whole(&site, 12, 1);
}
