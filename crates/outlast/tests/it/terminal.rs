//! A person at a terminal closes it, or presses Ctrl-C.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};

use serde_json::Value;

use crate::support::{Bench, eventually, gated_agent, numbered_text, terminal};

const LINES: u32 = 6;

/// Starts a run whose agent has printed three lines and waits, in a session of its own on a terminal.
fn run_on_a_terminal(bench: &Bench) -> (Child, File) {
    let (mut person, programs) = terminal();
    let run = bench.command(bench.run_args("r", &[], &gated_agent(3, LINES, 7)));
    let mut command = Command::new("setsid");
    command.arg("-c").arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let end = || programs.try_clone().expect("clone");
    command.current_dir(bench.path()).stdin(end()).stdout(end()).stderr(end());
    let child = command.spawn().expect("spawn");
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("line 2") {
        let count = person.read(&mut buffer).expect("read");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    (child, person)
}

#[track_caller]
fn status_of(mut child: Child) -> Option<i32> {
    eventually("the program has left", || child.try_wait().expect("wait")).code()
}

/// Nobody drives the run, the agent waits as before, and whoever attaches gets everything.
#[track_caller]
fn check_goes_on(bench: &Bench) {
    let record = bench.record("r");
    assert_eq!(record["status"], "running");
    assert_eq!(record["driver"], Value::Null, "the claim was given back: {record}");
    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(LINES));
    assert_eq!(bench.starts(), 1);
}

#[test]
fn a_closed_terminal_detaches() {
    let bench = Bench::new();
    let (child, person) = run_on_a_terminal(&bench);
    drop(person);
    let status = status_of(child);
    assert!(matches!(status, Some(129 | 141)), "by the hang-up, or by what it could not write: {status:?}");
    check_goes_on(&bench);
}

#[test]
fn ctrl_c_reaches_the_viewer_and_not_the_agent() {
    let bench = Bench::new();
    let (child, mut person) = run_on_a_terminal(&bench);
    person.write_all(b"\x03").expect("Ctrl-C");
    assert_eq!(status_of(child), Some(130));
    check_goes_on(&bench);
}
