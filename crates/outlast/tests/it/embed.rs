//! The example for those who embed Outlast, run as they would run it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Bench, Proc, parse_stream};

/// Cargo builds the examples with the tests of a package, beside the directory that holds this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let built =
        test.parent().and_then(|deps| deps.parent()).expect("the profile's directory").join("examples/embed");
    assert!(
        built.is_file(),
        "{} is missing: `cargo build -p outlast --example embed` makes it",
        built.display()
    );
    built
}

#[test]
fn starts_detaches_takes_over_and_cancels() {
    let bench = Bench::new();
    let data_dir = bench.path().join("embedded");
    let mut command = Command::new(example());
    command
        .arg(&data_dir)
        .current_dir(bench.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let shown = Proc::new(command.spawn().expect("spawn")).finish().ok();

    let (events, told): (Vec<&str>, Vec<&str>) = shown.lines().partition(|line| line.starts_with("0000"));
    assert_eq!(told.len(), 3, "{shown}");
    let first: usize = told[0]
        .strip_prefix("the first host has seen ")
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .expect("a count");
    assert_eq!(told[1], "the second host saw it end: completed at epoch 2");
    assert_eq!(told[2], "the second run was stopped: aborted");
    let stream: String = events
        .iter()
        .map(|line| line.split_once(' ').expect("offset and event"))
        .map(|(offset, event)| format!("{{\"id\":\"{offset}\",\"chunk\":{event}}}\n"))
        .collect();
    let seen = parse_stream(&stream);
    assert!(first < seen.len(), "both hosts have shown something: {shown}");
    assert!(seen[first - 1].raw.contains("step 2"), "the first host leaves in the middle: {shown}");

    // What both have shown together is the log, each event once; the command line reads the same directory.
    let stored = |run: &str| {
        let mut command = bench.command(["logs", "--json", run]);
        command.env("OUTLAST_DATA_DIR", &data_dir);
        parse_stream(&Proc::new(command.spawn().expect("spawn")).finish().ok())
    };
    assert_eq!(seen, stored("embedded-1"));
    assert_eq!(Bench::text(&seen), (1..=6).map(|n| format!("step {n}\n")).collect::<String>());
    let cancelled = stored("embedded-2");
    assert_eq!(cancelled[cancelled.len() - 1].json["code"], "aborted");
}
