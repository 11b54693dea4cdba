//! Who watches: whether a run is detached, and a run that is to end with its last viewer.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{End, Stream};
use super::site::{Site, gated, input, serve_on};
use crate::support::eventually;

/// A grace that is over soon.
const SHORT: &str = "reconnect_grace = \"300ms\"";
/// One that outlasts every test.
const LONG: &str = "reconnect_grace = \"300s\"";

/// An agent whose runs end with their last viewer.
fn cancelling() -> String {
    "[agents.clinging]\nkind = \"command\"\nargv = [\"sh\", \"-c\", '. \"$OUTLAST_PROMPT_FILE\"']\n\
     stdin = \"none\"\non_disconnect = \"cancel\"\n"
        .to_owned()
}

/// Starts a run that is to end with its last viewer, and follows it until it has said something.
fn cling(site: &Site, run: &str) -> Stream {
    let mut body = input(run, &format!("thread-{run}"), &gated(8));
    body["forwardedProps"] = json!({"onDisconnect": "cancel"});
    let mut stream = Stream::of(site.post("/api/chat", &body));
    stream.wait_for("line 2");
    assert_eq!(site.run(run)["onDisconnect"], "cancel");
    stream
}

fn is_watched(record: &Value) -> bool {
    record["detachedSince"].is_null()
}

#[track_caller]
fn check_cancelled(site: &Site, run: &str) {
    let record = site.wait_for_end(run);
    assert_eq!(record["cancelRequested"]["reason"], "disconnect", "{record}");
    assert_eq!(record["status"], "aborted", "{record}");
    let events = site.join(run, "-1").whole();
    site.check_all(run, &events);
    assert!(events.iter().any(|event| event.json.contains("line 2")), "its log still replays");
}

#[test]
fn the_last_viewer_leaves_and_one_comes_back() {
    let site = Site::new();
    let mut first = site.start("r", &gated(8));
    first.wait_for("line 2");
    assert!(is_watched(&site.run("r")));
    let second = site.join("r", "-1");
    drop(first);
    // The server has noticed that one has left once another that came after it was served; the other watches on.
    let native = site.native("r");
    assert!(is_watched(&site.run("r")));
    drop(second);
    assert!(is_watched(&site.run("r")), "whoever reads the native stream watches too");
    drop(native);
    let detached = site.wait_until("r", "detached", |record| !is_watched(record));
    assert_eq!(detached["status"], "running");
    assert!(detached["detachedSince"].as_u64() > detached["startedAt"].as_u64(), "{detached}");
    for watch in [Site::join_from_start, Site::watch_natively] {
        let mut back = watch(&site);
        back.wait_for("line 2");
        site.wait_until("r", "watched again", is_watched);
        drop(back);
        let again = site.wait_until("r", "detached again", |record| !is_watched(record));
        assert!(again["detachedSince"].as_u64() > detached["detachedSince"].as_u64(), "{again}");
    }
    site.bench.open_gate();
    let ended = site.wait_for_end("r");
    assert!(is_watched(&ended), "an ended run is not detached: {ended}");
    assert_eq!(ended["exitCode"], 7, "nobody stopped it");
}

impl Site {
    fn join_from_start(&self) -> Stream {
        self.join("r", "-1")
    }

    fn watch_natively(&self) -> Stream {
        self.native("r")
    }
}

#[test]
fn one_of_two_leaves_for_good() {
    let site = Site::with(SHORT, "");
    let staying = cling(&site, "r");
    let leaving = site.join("r", "-1");
    let other = cling(&site, "other");
    drop(leaving);
    drop(other);
    // Its grace began after that of the one that left; so that one's is over too.
    check_cancelled(&site, "other");
    let record = site.run("r");
    assert!(is_watched(&record) && record["cancelRequested"].is_null(), "{record}");
    site.bench.open_gate();
    site.check_all("r", &staying.whole());
    assert_eq!(site.run("r")["status"], "failed", "with its own status");
}

#[test]
fn a_run_that_is_to_end_with_its_last_viewer_does() {
    let site = Site::with(SHORT, &cancelling());
    // Chosen by the run, and by its agent.
    drop(cling(&site, "of-run"));
    check_cancelled(&site, "of-run");
    let mut body = input("of-agent", "a", "echo 'line 2'; while :; do sleep 0.05; done");
    body["forwardedProps"] = json!({"agent": "clinging"});
    let mut stream = Stream::of(site.post("/api/chat", &body));
    stream.wait_for("line 2");
    drop(stream);
    check_cancelled(&site, "of-agent");
    // The run's own wish wins over its agent's.
    let mut body = input("stays", "s", "echo 'line 2'; while [ ! -e ../go ]; do sleep 0.02; done");
    body["forwardedProps"] = json!({"agent": "clinging", "onDisconnect": "detach"});
    let mut stream = Stream::of(site.post("/api/chat", &body));
    stream.wait_for("line 2");
    drop(stream);
    site.wait_until("stays", "detached", |record| !is_watched(record));
    drop(cling(&site, "later"));
    check_cancelled(&site, "later");
    let record = site.run("stays");
    assert_eq!(
        (&record["status"], &record["cancelRequested"]),
        (&json!("running"), &Value::Null),
        "{record}"
    );
    assert_eq!(site.post("/api/chat/cancel", &json!({"runId": "stays"})).status, 204);
}

#[test]
fn who_comes_back_within_the_grace_keeps_it_alive() {
    let site = Site::with(LONG, "");
    drop(cling(&site, "r"));
    site.wait_until("r", "nobody watches", |record| !is_watched(record));
    let mut back = site.join("r", "-1");
    back.wait_for("line 2");
    site.wait_until("r", "watched", is_watched);
    site.bench.open_gate();
    site.check_all("r", &back.whole());
    assert_eq!(site.run("r")["cancelRequested"], Value::Null);
}

/// Reloads again and again, each time well within the grace; all of them together take longer.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
fn graces_do_not_add_up() {
    let site = Site::with("reconnect_grace = \"1s\"", "");
    let mut stream = cling(&site, "r");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        drop(stream);
        site.wait_until("r", "nobody watches", |record| !is_watched(record));
        stream = site.join("r", "-1");
        stream.wait_for("line 2");
    }
    assert_eq!(site.run("r")["cancelRequested"], Value::Null);
    site.bench.open_gate();
    site.check_all("r", &stream.whole());
}

/// Waits until graces are over that began after now, and shows that the run outlived its own.
#[track_caller]
fn check_outlives_its_grace(site: &Site, run: &str) {
    for n in 0..2 {
        let canary = format!("{run}-canary-{n}");
        drop(cling(site, &canary));
        check_cancelled(site, &canary);
    }
    let record = site.run(run);
    assert!(is_watched(&record) && record["cancelRequested"].is_null(), "{record}");
}

#[test]
fn a_viewer_at_another_process_keeps_it_alive_until_it_leaves() {
    let site = Site::with(SHORT, "");
    let here = cling(&site, "r");
    let mut shell = site.bench.spawn(["attach", "--json", "r"]);
    shell.wait_for("line 2");
    drop(here);
    check_outlives_its_grace(&site, "r");
    shell.signal(Signal::INT);
    assert_eq!(shell.finish().code(), 130);
    check_cancelled(&site, "r");

    let here = cling(&site, "s");
    let other = serve_on(&site.bench);
    let mut there = other.join("s", "-1");
    there.wait_for("line 2");
    drop(here);
    check_outlives_its_grace(&site, "s");
    drop(there);
    check_cancelled(&site, "s");
}

/// Takes as long as a presence lasts that nobody renews.
#[test]
fn a_process_that_was_killed_cannot_say_that_its_viewers_left() {
    // At the same time: they mostly wait.
    std::thread::scope(|scope| {
        scope.spawn(a_viewer_at_a_process_that_was_killed_keeps_it_alive_no_longer_than_its_presence);
        scope.spawn(after_a_kill_of_the_server_only_a_viewer_that_comes_back_keeps_it_alive);
    });
}

fn a_viewer_at_a_process_that_was_killed_keeps_it_alive_no_longer_than_its_presence() {
    let site = Site::with(SHORT, "");
    let (here, served_here) = (cling(&site, "r"), cling(&site, "s"));
    let mut shell = site.bench.spawn(["attach", "--json", "r"]);
    shell.wait_for("line 2");
    let other = serve_on(&site.bench);
    let mut there = other.join("s", "-1");
    there.wait_for("line 2");
    drop((here, served_here));
    check_outlives_its_grace(&site, "r");
    shell.kill9();
    other.proc.kill9();
    assert_eq!(there.rest(), End::Cut);
    check_cancelled(&site, "r");
    check_cancelled(&site, "s");
}

fn after_a_kill_of_the_server_only_a_viewer_that_comes_back_keeps_it_alive() {
    let mut site = Site::with(SHORT, "");
    let (mut lost, mut kept) = (cling(&site, "lost"), cling(&site, "kept"));
    site.kill9_and_serve();
    let mut back = site.join("kept", &kept.events()[0].id);
    back.wait_for("line 2");
    assert_eq!((lost.rest(), kept.rest()), (End::Cut, End::Cut));
    check_cancelled(&site, "lost");
    let record = site.run("kept");
    assert!(is_watched(&record) && record["cancelRequested"].is_null(), "{record}");
    site.bench.open_gate();
    assert_eq!(back.rest(), End::Clean);
    assert_eq!(site.wait_for_end("kept")["status"], "failed", "with its own status");
}

#[test]
fn a_server_that_ends_is_no_viewer_that_leaves() {
    // As short as it can be: the server that ends must not see it pass.
    let mut site = Site::with("reconnect_grace = \"1ms\"", "");
    let runs: Vec<String> = (0..8).map(|n| format!("r{n}")).collect();
    let streams: Vec<Stream> = runs.iter().map(|run| cling(&site, run)).collect();
    site.server.proc.signal(Signal::TERM);
    for mut stream in streams {
        assert_eq!(stream.rest(), End::Cut);
    }
    eventually("it has ended", || site.server.proc.has_ended().then_some(()));
    for run in runs {
        let record = site.bench.record(&run);
        assert_eq!(
            (&record["status"], &record["cancelRequested"]),
            (&json!("running"), &Value::Null),
            "{record}"
        );
        assert_eq!(record["driver"], Value::Null, "its lease was released");
        site.bench.outlast(["cancel", &run]).ok();
    }
}
