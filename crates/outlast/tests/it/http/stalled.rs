//! Viewers that stop reading: they slow nobody, cost little, and miss nothing.

use super::client::{Ask, Connection, End, Event, Stream, lines};
use super::site::Site;
use crate::support::{gated_script, resident_memory};

/// What the agent prints: far more than all buffers between it and a viewer hold.
const MUCH: usize = 52_000_000;
/// How many do not read.
const STALLED: usize = 21;

fn much(bytes: usize) -> String {
    let print = format!("line=$(head -c 3999 /dev/zero | tr '\\0' x); yes \"$line\" | head -c {bytes}");
    gated_script(&print)[2].clone()
}

#[test]
fn they_slow_nobody_cost_little_and_miss_nothing() {
    let site = Site::new();
    site.bench.open_gate();
    // What a server needs once for a run of this kind.
    site.start("first", &much(MUCH / 8)).whole();
    std::fs::remove_file(site.bench.workspace().join("gate-is-open")).expect("the gate");

    let mut reading = site.start("r", &much(MUCH));
    reading.wait_for("RUN_STARTED");
    let targets =
        ["/api/chat?runId=r&offset=-1", "/api/chat?runId=r&offset=-1&format=ndjson", "/v1/runs/r/events"];
    let stalled: Vec<Connection> = (0..STALLED)
        .map(|n| {
            let mut connection = site.connect();
            connection.send(&Ask::get(targets[n % targets.len()]));
            connection.peek();
            connection
        })
        .collect();
    let memory = || resident_memory(site.proc.pid()).expect("memory");
    let before = memory();
    site.bench.open_gate();
    let events = reading.whole();
    assert_eq!(site.run("r")["status"], "completed", "while others have read nothing");
    let grown = memory().saturating_sub(before);
    eprintln!("{STALLED} stalled viewers cost {grown} KiB");
    assert!(grown < STALLED as u64 * 1024, "{STALLED} stalled viewers cost {grown} KiB");
    let said: usize = events.iter().map(|event| event.json.len()).sum();
    assert!(said >= MUCH, "all of it: {said}");
    assert!(lines(&events) == site.stored("r"), "as it is stored");

    // Some read on after all, one of each form; the others leave as they are.
    for connection in stalled.into_iter().take(targets.len()) {
        let mut late = Stream::of(connection.answer());
        assert_eq!(late.rest(), End::Clean);
        check_same(&late.events(), &events);
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < STALLED as u64 * 1024, "{grown} KiB are left");
}

/// Without printing all of it where it is not so.
#[track_caller]
fn check_same(got: &[Event], expected: &[Event]) {
    let differs = got.iter().zip(expected).position(|(got, expected)| got != expected);
    assert_eq!((got.len(), differs), (expected.len(), None));
}

/// One that reads a little, stalls and reads on, again and again, gets every event once and in order.
#[test]
fn one_that_reads_in_fits() {
    let site = Site::new();
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"line $i of many\"; i=$((i+1)); done";
    let mut reading = site.start("r", &gated_script(script)[2]);
    let mut fitful = site.join("r", "-1");
    site.bench.open_gate();
    for n in 1..6 {
        reading.wait_for(&format!("line {} of many", n * 500));
        // Meanwhile it has read nothing, and now something.
        fitful.wait_for(&format!("line {} of many", n * 300));
    }
    let events = reading.whole();
    assert_eq!(lines(&fitful.whole()), lines(&events));
    site.check_all("r", &events);
}
