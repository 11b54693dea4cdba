//! Object storage that is a bucket: a real server that speaks S3.

use std::process::{Command, Stdio};

use super::{destroy_sandbox, json, run};
use crate::doctor::report::Report;
use crate::support::{Bench, Proc, eventually, skipped};

/// A server that speaks S3, with one bucket; none where it is not installed.
struct Bucket {
    server: std::process::Child,
    endpoint: String,
}

impl Bucket {
    fn start() -> Option<Bucket> {
        let Some(python) = std::env::var_os("OUTLAST_TEST_S3") else {
            skipped("OUTLAST_TEST_S3 names no Python with moto (scripts/test installs one)");
            return None;
        };
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("port").port();
        let server = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto starts");
        let bucket = Bucket { server, endpoint: format!("http://127.0.0.1:{port}") };
        eventually("the bucket", || {
            let made = http(port, "PUT /bucket HTTP/1.1")?;
            made.contains(" 200 ").then_some(())
        });
        Some(bucket)
    }

    fn command(&self, bench: &Bench, args: &[&str]) -> Command {
        let mut command = bench.command(args);
        command
            .env("OUTLAST_OBJECTS", "s3://bucket/of/tests")
            .env("AWS_ACCESS_KEY_ID", "k")
            .env("AWS_SECRET_ACCESS_KEY", "s")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ENDPOINT", &self.endpoint)
            .env("AWS_ALLOW_HTTP", "true");
        command
    }

    #[track_caller]
    fn outlast(&self, bench: &Bench, args: &[&str]) -> String {
        Proc::new(self.command(bench, args).spawn().expect("spawn")).finish().ok()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn http(port: u16, request: &str) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "{request}\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Bodies, snapshots and collections, as in a directory; nothing of them on this machine.
#[test]
fn of_s3() {
    let Some(bucket) = Bucket::start() else { return };
    let bench = Bench::new();
    let run = |id: &str, script: &str| {
        bucket.outlast(&bench, &["run", "--run-id", id, "--thread", "t", "--", "sh", "-c", script])
    };
    let printed = run("r", "seq 1000 > numbers; head -c 700000 /dev/zero | tr '\\0' x; echo");
    assert_eq!(printed.trim_end().len(), 700_000);
    let logs = bucket.outlast(&bench, &["logs", "r"]);
    assert!(logs.contains(&"x".repeat(700_000)));
    assert!(!bench.data_dir().join("objects").exists());
    let json = |args: &[&str]| -> serde_json::Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&bucket.outlast(&bench, &args)).expect("json")
    };
    let again = json(&["workspace", "checkpoint", "t"]);
    assert_eq!(again["uploadedObjects"], 0);
    let sandbox = json(&["sandbox", "ls"])[0]["instanceId"].as_str().expect("id").to_owned();
    bucket.outlast(&bench, &["sandbox", "rm", &sandbox]);
    assert_eq!(run("s", "tail -1 numbers"), "1000\n");
    let collected = json(&["session", "gc", "t", "--grace", "0s"]);
    assert_eq!((&collected["scanned"], &collected["referenced"]), (&2.into(), &2.into()));
    let snapshots = json(&["workspace", "gc", "--grace", "0s", "--quarantine", "0s"]);
    assert_eq!((&snapshots["liveRefs"], &snapshots["quarantined"]), (&1.into(), &0.into()));
    let deleted = json(&["session", "rm", "t", "--yes"]);
    assert_eq!(deleted["objects"], 2);
    let aside = json(&["workspace", "gc", "--grace", "0s"]);
    assert!(aside["quarantined"].as_u64().is_some_and(|count| count >= 2), "{aside}");
}

#[test]
fn that_doctor_tries_out() {
    let Some(bucket) = Bucket::start() else { return };
    let bench = Bench::new();
    for (place, level, says) in [
        ("s3://bucket/of/tests", "ok", "written, read and deleted an object"),
        ("s3://no-such-bucket/of/tests", "problem", "NoSuchBucket"),
    ] {
        let mut command = bucket.command(&bench, &["doctor", "--json"]);
        command.env("OUTLAST_OBJECTS", place);
        let report = Report::of(&Proc::new(command.spawn().expect("spawn")).finish());
        let (found, finding, _) = report.check("objects");
        assert_eq!(found, level, "{place}: {finding}");
        assert!(finding.contains(says), "{place}: {finding}");
    }
}

/// Storage that is away is waited for: the agent works on, and everything is there in the end.
#[test]
fn that_are_away_for_a_while() {
    let Some(mut bucket) = Bucket::start() else { return };
    let bench = Bench::new();
    let pid = rustix::process::Pid::from_raw(i32::try_from(bucket.server.id()).expect("pid")).expect("pid");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    let args = ["run", "--run-id", "r", "--thread", "t", "--", "sh", "-c"];
    let script = "echo before; head -c 700000 /dev/zero | tr '\\0' x; echo; echo after";
    let mut command = bucket.command(&bench, &[args.as_slice(), &[script]].concat());
    let mut process = Proc::new(command.spawn().expect("spawn"));
    process.wait_for("before");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("goes on");
    let printed = process.finish().ok();
    assert!(printed.ends_with("after\n") && printed.len() > 700_000, "{}", printed.len());
    bucket.server.kill().expect("killed");
    // Of what cannot be reached, what stands for it is shown.
    let mut command = bucket.command(&bench, &["session", "show", "t"]);
    assert_eq!(Proc::new(command.spawn().expect("spawn")).finish().code(), 0);
}

/// A place that is none is refused with what to do.
#[test]
fn that_are_none() {
    let bench = Bench::new();
    for (place, says) in [("ftp://x/y", "s3://"), ("s3://", "no place"), ("/proc/none/x", "directory")] {
        let mut command = bench.command(["session", "ls"]);
        command.env("OUTLAST_OBJECTS", place);
        let refused = Proc::new(command.spawn().expect("spawn")).finish();
        assert_eq!(refused.code(), 2, "{place}: {refused:?}");
        assert!(refused.stderr.contains(says), "{place}: {}", refused.stderr);
    }
    // The directory of before is not touched by that.
    run(&bench, "r", "t", "echo x > x");
    destroy_sandbox(&bench, "t");
    assert_eq!(json(&bench, &["workspace", "ls", "t"]).as_array().expect("list").len(), 1);
}
