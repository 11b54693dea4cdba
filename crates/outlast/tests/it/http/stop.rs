//! Stop: durable, whole, and from anywhere.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Ask, End, Event, Stream};
use super::site::{Server, Site, configure, input, serve_on, serve_with};
use crate::support::{Bench, Marker, eventually, is_stopped, numbered_agent, stubborn_agent, wait_for_tree};

/// Within this time of the call no process of an agent's tree lives, however it clings to life.
const GONE_WITHIN: Duration = Duration::from_secs(8);

/// An agent that does nothing for ever.
fn idle() -> String {
    "echo start >> starts; echo up; while [ -e starts ]; do sleep 0.02; done".to_owned()
}

#[track_caller]
fn check_aborted(site: &Site, run: &str, events: &[Event]) {
    let last: Value = serde_json::from_str(&events.last().expect("events").json).expect("json");
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("aborted")), "{last}");
    site.check_all(run, events);
    let record = site.run(run);
    assert_eq!(
        (&record["status"], &record["endReason"]),
        (&json!("aborted"), &json!("cancelled")),
        "{record}"
    );
}

#[test]
fn a_run_is_stopped_however_it_is_named() {
    let site = Site::new();
    let cancel = "/api/chat/cancel";
    for (run, ask) in [
        ("by-run", Ask::post(cancel, &json!({"runId": "by-run"}))),
        ("by-thread", Ask::post(cancel, &json!({"threadId": "thread-by-thread"}))),
        ("by-header", Ask::new("POST", cancel).header("X-Run-Id", "by-header")),
        ("by-url", Ask::new("POST", "/api/chat/cancel?runId=by-url")),
        ("by-url-thread", Ask::new("POST", "/api/chat/cancel?threadId=thread-by-url-thread")),
        ("by-both", Ask::post(cancel, &json!({"runId": "by-both", "threadId": "another"}))),
        ("v1", Ask::new("POST", "/v1/runs/v1/cancel")),
    ] {
        let mut stream = site.start(run, &idle());
        stream.wait_for("up");
        let answer = site.ask(&ask);
        if run == "v1" {
            let record = answer.ok();
            assert_eq!(
                (&record["runId"], &record["cancelRequested"]["reason"]),
                (&json!("v1"), &json!("user"))
            );
        } else {
            assert_eq!((answer.status, answer.text().as_str()), (204, ""), "{run}");
        }
        assert_eq!(site.run(run)["cancelRequested"]["reason"], "user", "durable when it answers");
        check_aborted(&site, run, &stream.whole());
        // Said again, it changes nothing.
        let record = site.run(run);
        assert_eq!(site.ask(&ask).status, if run == "v1" { 200 } else { 204 }, "{run}");
        assert_eq!(site.run(run), record, "{run}");
    }
}

#[test]
fn where_nothing_lives_there_is_nothing_to_stop() {
    let site = Site::new();
    let all = Stream::of(site.post("/api/chat", &input("r", "t", "echo hi"))).whole();
    let record = site.run("r");
    let cancel = |body: Value| site.post("/api/chat/cancel", &body);
    assert_eq!(cancel(json!({"threadId": "t"})).status, 204, "an idle thread");
    assert_eq!(cancel(json!({"threadId": "never seen"})).status, 204, "a thread that is not there");
    assert_eq!(cancel(json!({"runId": "r"})).status, 204, "an ended run");
    assert_eq!(cancel(json!({"runId": "nobody"})).refused(404).0, "run_not_found");
    let (code, message) = cancel(json!({})).refused(400);
    assert_eq!(code, "invalid_request");
    assert!(message.contains("threadId") && message.contains("runId"), "{message}");
    assert_eq!(site.ask(&Ask::new("POST", "/api/chat/cancel")).refused(400).0, "invalid_request");
    for body in ["{", "[]", "{\"runId\":5}"] {
        let refused = site.ask(&Ask::new("POST", "/api/chat/cancel").body(body));
        assert_eq!(refused.refused(400).0, "invalid_request", "{body}");
    }
    assert_eq!(site.ask(&Ask::new("POST", "/v1/runs/nobody/cancel")).refused(404).0, "run_not_found");
    assert_eq!(site.run("r"), record);
    assert_eq!(site.join("r", "-1").whole(), all);
}

/// The agent's main process ignores SIGTERM, and children of it hide in every way that there is.
#[test]
fn no_process_of_the_agent_is_left() {
    let marker = Marker::new("stop");
    let argv = stubborn_agent(&marker);
    let site = Site::with("", &format!("[agents.stubborn]\nkind = \"command\"\nargv = {argv:?}\n"));
    let mut body = input("r", "t", "x");
    body["forwardedProps"] = json!({"agent": "stubborn"});
    let mut stream = Stream::of(site.post("/api/chat", &body));
    stream.wait_for("up");
    wait_for_tree(&marker);
    assert_eq!(site.post("/api/chat/cancel", &json!({"threadId": "t"})).status, 204);
    marker.wait_until_gone(GONE_WITHIN);
    check_aborted(&site, "r", &stream.whole());
}

#[test]
fn an_answer_may_wait_for_the_end() {
    let site = Site::new();
    let mut stream = site.start("r", &idle());
    stream.wait_for("up");
    let ended = site.ask(&Ask::new("POST", "/v1/runs/r/cancel?wait=30")).ok();
    assert_eq!(ended["status"], "aborted", "{ended}");
    check_aborted(&site, "r", &stream.whole());
    for wait in ["soon", "-1", "1.5"] {
        let refused = site.ask(&Ask::new("POST", &format!("/v1/runs/r/cancel?wait={wait}")));
        assert_eq!(refused.refused(400).0, "invalid_request", "{wait}");
    }
    // A tree that takes longer than the answer may: the record says that the wish is there, and no more.
    let mut stream = site.start("s", "trap '' TERM; echo up; while [ -e starts ]; do sleep 0.02; done");
    stream.wait_for("up");
    let waited = site.ask(&Ask::new("POST", "/v1/runs/s/cancel?wait=1")).ok();
    assert_eq!(
        (&waited["status"], &waited["cancelRequested"]["reason"]),
        (&json!("running"), &json!("user"))
    );
    std::fs::remove_file(site.bench.workspace().join("starts")).expect("remove");
    check_aborted(&site, "s", &stream.whole());
}

#[test]
fn from_another_server_and_from_the_shell() {
    let site = Site::with_lease("300s", "", "");
    let other = serve_on(&site.bench);
    let mut stream = site.start("r", &idle());
    stream.wait_for("up");
    assert_eq!(other.post("/api/chat/cancel", &json!({"threadId": "thread-r"})).status, 204);
    check_aborted(&site, "r", &stream.whole());
    let mut stream = site.start("s", &idle());
    stream.wait_for("up");
    site.bench.outlast(["cancel", "s"]).ok();
    check_aborted(&site, "s", &stream.whole());
    // And the other way round: what the shell drives.
    let driver = site.bench.spawn(["run", "--run-id=c", "--thread=c", "--agent=sh", &idle()]);
    eventually("it works", || (site.bench.starts() == 3).then_some(()));
    assert_eq!(site.post("/api/chat/cancel", &json!({"threadId": "c"})).status, 204);
    assert_eq!(driver.finish().code(), 143);
    assert_eq!(site.run("c")["status"], "aborted");
}

#[test]
fn the_thread_is_free_after_it_and_the_same_request_shows_the_end() {
    let site = Site::new();
    let body = input("r", "t", &idle());
    let mut stream = Stream::of(site.post("/api/chat", &body));
    stream.wait_for("up");
    assert_eq!(site.post("/api/chat/cancel", &json!({"threadId": "t"})).status, 204);
    let events = stream.whole();
    check_aborted(&site, "r", &events);
    assert_eq!(Stream::of(site.post("/api/chat", &body)).whole(), events, "nothing restarts it");
    assert_eq!(site.bench.starts(), 1);
    assert_eq!(site.get("/api/chat/active?threadId=t").ok(), json!({"runId": null}));
    Stream::of(site.post("/api/chat", &input("s", "t", "echo next"))).whole();
    assert_eq!(site.run("s")["status"], "completed");
}

/// The server is frozen on its way to the agent, the run is stopped elsewhere, the server thaws.
#[test]
fn before_the_launch_the_agent_never_starts() {
    let points =
        ["accept.after", "ensure.bind.before", "ensure.bind.after", "ensure.created", "launch.before"];
    let (some, others) = points.split_at(3);
    // At the same time: they mostly wait for leases to end.
    std::thread::scope(|scope| {
        for (action, points) in [("stop", some), ("stop", others), ("kill", points.as_slice())] {
            scope.spawn(move || points.iter().for_each(|point| before_the_launch(point, action)));
        }
    });
}

fn before_the_launch(point: &str, action: &str) {
    let bench = Bench::new();
    configure(&bench, "600ms", "", "");
    let marker = Marker::new("launch");
    let script = format!("exec sh -c '{}' {}", numbered_agent(10_000, "0.1", 0)[2], marker.0);
    let server = serve_with(&bench, &[], &[("OUTLAST_FAILPOINT", &format!("{point}={action}"))]);
    let mut connection = server.connect();
    connection.send(&Ask::post("/api/chat", &input("r", "t", &script)));
    let mut server = server;
    eventually("it is at the point", || {
        (is_stopped(server.proc.pid()) || server.proc.has_ended()).then_some(())
    });
    let stopped: Value =
        serde_json::from_str(&bench.outlast(["cancel", "--json", "r"]).stdout).expect("json");
    assert_eq!(stopped["status"], "aborted", "{action} at {point}");
    let events = if action == "stop" {
        server.proc.signal(Signal::CONT);
        Stream::of(connection.answer()).whole()
    } else {
        server = serve_on(&bench);
        server.join("r", "-1").whole()
    };
    let site = Site { server, bench };
    check_aborted(&site, "r", &events);
    assert_eq!(site.bench.starts(), 0, "{action} at {point}: agents started");
    assert_eq!(marker.alive(), [], "{action} at {point}");
}

#[test]
fn a_stop_that_was_said_is_carried_out_whoever_dies() {
    let mut site = Site::new();
    let marker = Marker::new("said");
    let script = format!(
        "exec sh -c 'echo start >> starts; echo up; trap \"\" TERM; while :; do sleep 0.05; done' {}",
        marker.0
    );
    let mut stream = site.start("r", &script);
    stream.wait_for("up");
    assert_eq!(site.post("/api/chat/cancel", &json!({"runId": "r"})).status, 204);
    // It is still within the grace that the agent is given.
    assert!(!marker.alive().is_empty());
    site.kill9_and_serve();
    marker.wait_until_gone(GONE_WITHIN + Duration::from_secs(3));
    site.wait_for_end("r");
    assert_eq!(stream.rest(), End::Cut);
    let events = site.join("r", "-1").whole();
    check_aborted(&site, "r", &events);
}

#[test]
fn two_at_once() {
    let site = Site::new();
    let mut stream = site.start("r", &idle());
    stream.wait_for("up");
    let stop = |server: &Server| server.post("/api/chat/cancel", &json!({"runId": "r"})).status;
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| stop(&site.server))).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    assert_eq!(answers, [204; 6]);
    check_aborted(&site, "r", &stream.whole());
}
