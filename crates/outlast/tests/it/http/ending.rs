//! A server that ends hands over: no run is harmed, and another goes on at once.

use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Ask, Connection, End, Stream};
use super::site::{Site, gated, input, serve_on, serve_with};
use crate::store::lock;
use crate::support::{Bench, eventually, eventually_within, numbered_text};

/// Nobody can wait for the end of a lease.
const LONG: &str = "300s";
/// Within this time a server has ended, whatever its clients do.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn its_successor_goes_on_with_all_runs_within_a_second() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        let mut site = Site::with_lease(LONG, "", "");
        let runs: Vec<String> = (0..5).map(|n| format!("r{n}")).collect();
        let mut streams: Vec<Stream> = runs.iter().map(|run| site.start(run, &gated(8))).collect();
        streams.iter_mut().for_each(|stream| drop(stream.wait_for("line 2")));
        // Some are watched, some are not.
        streams.truncate(2);
        site.server.proc.signal(signal);
        eventually_within(SOON, "it has ended", || site.server.proc.has_ended().then_some(()));
        assert!(streams.iter_mut().all(|stream| stream.rest() == End::Cut));
        if signal != Signal::KILL {
            for run in &runs {
                assert_eq!(
                    site.bench.record(run)["driver"],
                    Value::Null,
                    "{signal:?}: the lease was released"
                );
            }
        }
        let next = serve_on(&site.bench);
        let ended = std::mem::replace(&mut site.server, next).proc.finish();
        assert_eq!(
            ended.code(),
            if signal == Signal::KILL { 137 } else { 0 },
            "{signal:?}: {}",
            ended.stderr
        );
        eventually_within(Duration::from_secs(1), "all are driven on", || {
            runs.iter().all(|run| site.run(run)["driverEpoch"] == 2).then_some(())
        });
        site.bench.open_gate();
        for run in &runs {
            let record = site.wait_for_end(run);
            assert_eq!(
                (&record["exitCode"], &record["cancelRequested"]),
                (&json!(7), &Value::Null),
                "{record}"
            );
            assert_eq!(Bench::text(&site.bench.check_ended(run)), numbered_text(8));
        }
        assert_eq!(site.bench.starts(), runs.len());
    }
}

#[test]
fn clients_that_stay_hold_up_no_end() {
    let mut site = Site::new();
    let mut live = site.start("r", &gated(8));
    live.wait_for("line 2");
    let idle = site.connect();
    let mut used = site.connect();
    used.send(&Ask::get("/health"));
    let used = used.answer().done();
    let mut half = site.connect();
    half.send_part(&Ask::post("/api/chat", &input("half", "h", "true")), 20);
    let mut unread = site.connect();
    unread.send(&Ask::get("/api/chat?runId=r&offset=-1"));
    let waiting = {
        let mut waiting = site.connect();
        waiting.send(&Ask::new("POST", "/v1/runs/r/cancel?wait=60"));
        waiting
    };
    site.wait_until("r", "cancelled", |record| record["cancelRequested"].is_object());
    site.server.proc.signal(Signal::TERM);
    eventually_within(SOON, "it has ended", || site.server.proc.has_ended().then_some(()));
    drop((idle, used, half, unread, waiting, live));
    site.server = serve_on(&site.bench);
    site.wait_for_end("r");
    assert_eq!(site.get("/v1/runs/half").status, 404);
}

/// Many clients ask for runs while the server ends. Whatever became of each request: asked again of the successor, it is
/// one run with one agent.
#[test]
fn in_the_middle_of_requests() {
    let mut site = Site::with_lease(LONG, "", "");
    let (address, gone) = (site.address, Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let gone = &gone;
            scope.spawn(move || {
                for n in 0.. {
                    let run = format!("{client}-{n}");
                    gone.lock().expect("lock").push(run.clone());
                    let Some(mut connection) = Connection::try_open(address) else { return };
                    // It may end in between.
                    if connection.try_send(&Ask::post("/api/chat", &work(&run))).is_err() {
                        continue;
                    }
                    let Some(answer) = connection.try_answer() else { continue };
                    match answer.status {
                        200 => drop(Stream::of(answer).rest()),
                        503 => assert_eq!(answer.refused(503).0, "unavailable"),
                        other => panic!("{other}"),
                    }
                }
            });
        }
        eventually("they are at it", || (gone.lock().expect("lock").len() > 20).then_some(()));
        site.server.proc.signal(Signal::TERM);
        eventually_within(SOON, "it has ended", || site.server.proc.has_ended().then_some(()));
    });
    let next = serve_on(&site.bench);
    let ended = std::mem::replace(&mut site.server, next).proc.finish();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let runs = gone.into_inner().expect("lock");
    for run in &runs {
        let events = Stream::of(site.post("/api/chat", &work(run))).whole();
        assert!(events.iter().any(|event| event.json.contains("\"hi\\n\"")), "{run}: {events:?}");
        assert_eq!(site.run(run)["status"], "completed", "{run}");
        let starts =
            std::fs::read_to_string(site.bench.workspace().join(format!("starts-{run}"))).expect("starts");
        assert_eq!(starts, "start\n", "{run}");
    }
}

fn work(run: &str) -> Value {
    input(run, run, "echo start >> starts-$OUTLAST_RUN_ID; echo hi")
}

/// The end takes a while here, since nobody can write down that leases are given back.
#[test]
fn while_it_ends_it_is_not_ready_and_a_second_signal_does_not_wait() {
    let mut site = Site::with_lease(LONG, "", "");
    let mut live = site.start("r", &gated(8));
    live.wait_for("line 2");
    let mut before: Vec<_> = (0..4).map(|_| site.connect()).collect();
    for connection in &mut before {
        connection.send(&Ask::get("/ready"));
    }
    let mut before: Vec<_> = before
        .into_iter()
        .map(|connection| {
            let answer = connection.answer();
            assert_eq!(answer.status, 200);
            answer.done()
        })
        .collect();
    let locked = lock(&site.bench);
    site.server.proc.signal(Signal::TERM);
    eventually("it says so", || site.server.proc.stderr().contains("ending").then_some(()));
    eventually("no new connections", || std::net::TcpStream::connect(site.address).is_err().then_some(()));
    let mut ask = |ask: &Ask| {
        let mut connection = before.pop().expect("a connection");
        connection.send(ask);
        connection.answer()
    };
    for refused in [Ask::post("/api/chat", &input("s", "s", "true")), Ask::get("/v1/runs")] {
        let answer = ask(&refused);
        assert_eq!(answer.header("retry-after"), Some("1"), "{refused:?}");
        assert_eq!(answer.refused(503).0, "unavailable", "{refused:?}");
    }
    let ready = ask(&Ask::get("/ready"));
    assert_eq!((ready.status, ready.json()), (503, json!({"status": "ending"})));
    assert_eq!(ask(&Ask::get("/health")).status, 200, "it lives");
    assert!(!site.server.proc.has_ended());
    site.server.proc.signal(Signal::TERM);
    eventually_within(SOON, "it has ended", || site.server.proc.has_ended().then_some(()));
    drop(locked);
    let next = serve_on(&site.bench);
    let ended = std::mem::replace(&mut site.server, next).proc.finish();
    assert_eq!(ended.code(), 143, "{}", ended.stderr);
    // A dead process holds nothing, however it died.
    site.wait_until("r", "driven on", |record| record["driverEpoch"] == 2);
    site.bench.open_gate();
    site.check_all("r", &site.join("r", "-1").whole());
    assert_eq!(site.get("/v1/runs/s").status, 404);
}

#[test]
fn ready_and_healthy_until_then() {
    let site = Site::new();
    assert_eq!(site.get("/health").ok()["status"], "ok");
    let ready = site.get("/ready").ok();
    assert_eq!(ready["status"], "ready", "{ready}");
    let mut live = site.start("r", &gated(8));
    live.wait_for("line 2");
    assert_eq!(site.get("/ready").ok()["runs"], 1);
    site.bench.open_gate();
    live.whole();
    eventually("nothing to do", || (site.get("/ready").ok()["runs"] == 0).then_some(()));
}

#[test]
fn what_it_cannot_start_with_it_says() {
    let site = Site::new();
    let taken = site.address.to_string();
    let refused = site.bench.outlast(["serve", "--json", "--listen", &taken]);
    assert_eq!(refused.code(), 1, "{}", refused.stderr);
    let (_, message) = refused.failure();
    assert!(message.contains(&taken) && message.contains("--listen"), "{message}");
    assert_eq!(refused.stdout, "", "nothing is announced that is not so");
    for bad in ["nonsense", "127.0.0.1", "127.0.0.1:99999", ":", "http://127.0.0.1:80"] {
        let refused = site.bench.outlast(["serve", "--json", "--listen", bad]);
        assert_eq!(refused.code(), 2, "{bad}: {}", refused.stderr);
        assert!(refused.failure().1.contains("HOST:PORT"), "{bad}: {}", refused.stderr);
    }
    let refused = site.bench.outlast(["serve", "--json", "--listen", "127.0.0.1:0", "--agent", "nobody"]);
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.failure().1.contains("nobody"), "{}", refused.stderr);
    assert_eq!(site.get("/health").status, 200, "the one that serves is not harmed");
    // Where it listens may be said in three places.
    let listens = serve_with(&site.bench, &[], &[("OUTLAST_LISTEN", "nonsense")]);
    assert_eq!(listens.get("/health").status, 200, "the argument wins");
    let mut command = site.bench.command(["serve", "--json"]);
    command.env("OUTLAST_LISTEN", "nonsense");
    let refused = crate::support::Proc::new(command.spawn().expect("spawn")).finish();
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
}
