//! Clients that go away, at whatever moment and however rudely: the run goes on, and so do the others.

use rustix::process::Signal;
use serde_json::json;

use super::client::{Ask, Connection, End, Event, Stream};
use super::site::{Site, configure, gated, input, serve_with};
use crate::support::{Bench, eventually, is_stopped, numbered_text};

/// Nobody can wait for the end of a lease.
const LONG: &str = "300s";

fn quick(run: &str) -> serde_json::Value {
    input(run, &format!("thread-{run}"), "echo start >> starts; echo hi")
}

/// How a client goes away.
#[derive(Debug, Clone, Copy)]
enum Leave {
    Close,
    /// With bytes that it has not read: the connection is reset.
    Reset,
    /// It says that it will send nothing more, and goes on reading.
    Half,
}

#[test]
fn at_any_moment_of_a_request_a_run_is_whole_or_is_not() {
    let site = Site::with_lease(LONG, "", "");
    let mut watching = site.start("watched", &gated(30));
    watching.wait_for("line 2");
    for n in 0..60_usize {
        let run = format!("r{n}");
        let ask = Ask::post("/api/chat", &quick(&run));
        let mut connection = site.connect();
        match n % 6 {
            0 => connection.write(b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-").expect("write"),
            1 => connection.send_part(&ask, n),
            // Right after it was asked: the accept is on its way to the store.
            2 | 3 => connection.send(&ask),
            4 => {
                connection.send(&ask);
                connection.close_half();
            }
            _ => {
                connection.send(&ask);
                connection.peek();
            }
        }
        drop(connection);
    }
    // Whoever comes back with the same request gets everything, at once.
    for n in 0..60 {
        let run = format!("r{n}");
        let events = Stream::of(site.post("/api/chat", &quick(&run))).whole();
        let said: Vec<&Event> = events.iter().filter(|event| event.json.contains("\"hi\\n\"")).collect();
        assert_eq!(said.len(), 1, "{run}: {events:?}");
        assert_eq!(site.run(&run)["status"], "completed", "{run}");
    }
    assert_eq!(site.bench.starts(), 60 + 1, "one agent each");
    site.bench.open_gate();
    site.check_all("watched", &watching.whole());
}

/// The moment that matters most, hit exactly: the accept is on its way to the store when the client goes away.
#[test]
fn while_the_run_is_accepted() {
    for point in ["accept.before", "accept.after"] {
        let bench = Bench::new();
        configure(&bench, LONG, "", "");
        let server = serve_with(&bench, &[], &[("OUTLAST_FAILPOINT", &format!("{point}=stop"))]);
        let site = Site { server, bench };
        let mut connection = site.connect();
        connection.send(&Ask::post("/api/chat", &quick("r")));
        eventually("frozen", || is_stopped(site.server.proc.pid()).then_some(()));
        drop(connection);
        site.server.proc.signal(Signal::CONT);
        // Without anybody's asking.
        eventually("the agent works", || (site.bench.starts() == 1).then_some(()));
        site.wait_for_end("r");
        let events = Stream::of(site.post("/api/chat", &quick("r"))).whole();
        site.check_all("r", &events);
        assert_eq!(site.bench.starts(), 1, "{point}");
        assert_eq!(site.run("r")["driverEpoch"], 1, "{point}: nobody else had to find it");
    }
}

#[test]
fn while_the_sandbox_is_prepared_and_back_for_everything() {
    for point in
        ["ensure.bind.before", "ensure.bind.after", "ensure.created", "launch.before", "launch.after"]
    {
        for action in ["stop", "kill"] {
            let bench = Bench::new();
            configure(&bench, LONG, "", "");
            let mut server = serve_with(&bench, &[], &[("OUTLAST_FAILPOINT", &format!("{point}={action}"))]);
            let mut connection = server.connect();
            connection.send(&Ask::post("/api/chat", &input("r", "t", &gated(6))));
            eventually("at the point", || {
                (is_stopped(server.proc.pid()) || server.proc.has_ended()).then_some(())
            });
            drop(connection);
            if action == "stop" {
                server.proc.signal(Signal::CONT);
            } else {
                server = super::site::serve_on(&bench);
            }
            let site = Site { server, bench };
            let mut back = site.join("r", "-1");
            back.wait_for("line 2");
            site.bench.open_gate();
            site.check_all("r", &back.whole());
            assert_eq!(Bench::text(&site.bench.check_ended("r")), numbered_text(6), "{action} at {point}");
            assert_eq!(site.bench.starts(), 1, "{action} at {point}");
        }
    }
}

#[test]
fn in_mid_stream_however_they_go() {
    let site = Site::with_lease(LONG, "", "");
    let mut staying = site.start("r", &gated(200));
    staying.wait_for("line 2");
    let ask = Ask::get("/api/chat?runId=r&offset=-1");
    let mut halves = Vec::new();
    for leave in [Leave::Close, Leave::Reset, Leave::Half].into_iter().cycle().take(12) {
        let mut connection: Connection = site.connect();
        connection.send(&ask);
        match leave {
            Leave::Close => {
                Stream::of(connection.answer()).wait_for("line 1");
            }
            Leave::Reset => connection.peek(),
            Leave::Half => {
                connection.close_half();
                halves.push(connection);
            }
        }
    }
    site.bench.open_gate();
    let all = staying.whole();
    site.check_all("r", &all);
    for half in halves {
        // Served on or cut, as the server likes; but never as if that were all.
        if let Some(answer) = half.try_answer() {
            let mut stream = Stream::of(answer);
            if stream.rest() == End::Clean {
                assert_eq!(stream.events(), all);
            }
        }
    }
    assert_eq!(site.bench.starts(), 1);
}

#[test]
fn a_request_that_never_ends_holds_up_nobody() {
    let site = Site::new();
    let ask = Ask::post("/api/chat", &quick("slow"));
    let mut slow: Vec<Connection> = (0..20).map(|_| site.connect()).collect();
    for (n, connection) in slow.iter_mut().enumerate() {
        match n % 2 {
            0 => connection.send_part(&ask, 10),
            _ => connection.write(b"GET /v1/ru").expect("write"),
        }
    }
    site.check_all("r", &site.start("r", "echo hi").whole());
    assert_eq!(site.get("/v1/runs/slow").status, 404);
    assert_eq!(site.get("/v1/runs").ok()["next"], json!(null));
}
