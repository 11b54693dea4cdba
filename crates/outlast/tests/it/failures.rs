//! Agents, shims, disks and machines that fail: each run ends in a record that says why, in words that a person
//! understands, and no agent is ever started twice.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Bench, Logged, Marker, Proc, SmallDisk, eventually, kill9, numbered_agent, stubborn_agent, wait_for_tree,
};

/// The arguments of `outlast run` of the command in the bench's workspace.
fn run_args(bench: &Bench, run: &str, command: &[&str]) -> Vec<String> {
    let workspace = bench.workspace();
    let workspace = workspace.to_str().expect("utf-8");
    let args = ["run", "--json", "--run-id", run, "--workspace", workspace, "--"];
    args.iter().chain(command).map(|arg| (*arg).to_owned()).collect()
}

/// The run has failed with this code, and says so everywhere: in the record, in the log, and in words with all of
/// these. The log.
#[track_caller]
fn check_failed(bench: &Bench, run: &str, code: &str, words: &[&str]) -> Vec<Logged> {
    let log = bench.check_ended(run);
    let record = bench.record(run);
    assert_eq!((&record["status"], &record["error"]["code"]), (&"failed".into(), &code.into()), "{record}");
    let message = record["error"]["message"].as_str().expect("a cause");
    for word in words {
        assert!(message.contains(word), "{word:?} in {message:?}");
    }
    assert_eq!(log[log.len() - 1].json["message"], message);
    log
}

fn starts(bench: &Bench) -> usize {
    fs::read_to_string(bench.workspace().join("starts")).map_or(0, |text| text.lines().count())
}

#[test]
fn an_agent_that_is_killed() {
    let bench = Bench::new();
    let ended = bench.outlast(run_args(&bench, "r", &["sh", "-c", "echo hi; echo oh >&2; kill -KILL $$"]));
    assert_eq!(ended.code(), 137);
    let log = check_failed(&bench, "r", "agent_failed", &["SIGKILL", "oh"]);
    assert_eq!(Bench::text(&log), "hi\n");
    assert_eq!(bench.record("r")["exitCode"], 137);
}

#[test]
fn a_shim_that_is_killed() {
    std::thread::scope(|scope| {
        for fence in ["auto", "pid-namespace", "cgroup", "subreaper"] {
            for attached in [true, false] {
                scope.spawn(move || shim_killed(fence, attached));
            }
        }
    });
}

fn shim_killed(fence: &str, attached: bool) {
    let bench =
        Bench::with_config(&format!("[sandbox]\nfence = \"{fence}\"\n[driver]\nlease = \"1500ms\"\n"));
    let probe = bench.outlast(["run", "--run-id", "probe", "--", "true"]);
    if probe.code() != 0 {
        assert!(matches!(fence, "pid-namespace" | "cgroup"), "{}", probe.stderr);
        eprintln!("SKIPPED fence {fence}: {}", probe.stdout.trim());
        return;
    }
    let marker = Marker::new("shimless");
    // The weakest fence holds no orphans once its shim is dead, and promises none.
    let agent = if fence == "subreaper" {
        ["sh", "-c", "echo up; while :; do sleep 0.1; done", &marker.0].map(str::to_owned)
    } else {
        stubborn_agent(&marker)
    };
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let mut driver = bench.spawn(run_args(&bench, "r", &agent));
    driver.wait_for("up");
    if fence != "subreaper" {
        wait_for_tree(&marker);
    }
    let shim = bench.shim("r").expect("shim");
    if attached {
        kill9(shim);
    } else {
        driver.kill9();
        kill9(shim);
        if fence != "cgroup" {
            marker.wait_until_gone(Duration::from_secs(8));
        }
        assert_eq!(bench.status("r").as_deref(), Some("running"), "nobody has looked");
        let listed = bench.outlast(["ps"]).ok();
        assert!(listed.contains("lost, not collected: outlast attach r"), "{listed}");
        driver = bench.spawn(["attach", "r"]);
    }
    assert_eq!(driver.finish().code(), 1, "{fence}");
    assert_eq!(marker.alive(), [], "{fence}: the agent has died with its shim");
    let log = check_failed(&bench, "r", "agent_lost", &["killed"]);
    assert_eq!(Bench::text(&log), "up\n", "what it had printed is there");
    assert_eq!(bench.record("r")["exitCode"], Value::Null, "an exit status that nobody knows is not made up");
}

#[test]
fn a_command_that_cannot_be_started() {
    let bench = Bench::new();
    let script = bench.path().join("script");
    fs::write(&script, "#!/bin/sh\necho hi\n").expect("write");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).expect("permissions");
    let orphan = bench.path().join("orphan");
    fs::write(&orphan, "#!/no/such/interpreter\n").expect("write");
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).expect("permissions");
    let text = |path: &std::path::Path| path.to_str().expect("utf-8").to_owned();
    for (run, program, status, words) in [
        ("no-such-command", "no-such-command-anywhere".to_owned(), 127, vec!["no such command in PATH"]),
        ("no-such-file", text(&bench.path().join("nothing")), 127, vec!["no such file"]),
        ("not-executable", text(&script), 126, vec!["permission denied", "not executable"]),
        ("no-interpreter", text(&orphan), 127, vec!["interpreter"]),
        ("a-directory", text(bench.path()), 126, vec!["permission denied"]),
    ] {
        let ended = bench.outlast(run_args(&bench, run, &[&program]));
        assert_eq!(ended.code(), status, "{run}: {}", ended.stderr);
        let mut words = words;
        words.extend(["cannot start", &program]);
        let log = check_failed(&bench, run, "launch_failed", &words);
        assert_eq!(Bench::text(&log), "");
        assert_eq!(bench.record(run)["exitCode"], status, "{run}");
        let mut detached = run_args(&bench, &format!("{run}-detached"), &[&program]);
        detached.insert(1, "-d".to_owned());
        assert_eq!(bench.outlast(&detached).code(), 0, "{run}: a start that fails is told by the run");
        let attached = bench.outlast(["attach", &format!("{run}-detached")]);
        assert_eq!(attached.code(), status, "{run}: {}", attached.stderr);
        assert!(attached.stderr.contains("cannot start") || attached.stdout.contains("cannot start"));
    }
}

#[test]
fn a_working_directory_that_is_gone() {
    let bench = Bench::with_config("[agents.mine]\nkind = \"command\"\nargv = [\"true\"]\ncwd = \"gone\"\n");
    let workspace = bench.workspace();
    let workspace = workspace.to_str().expect("utf-8");
    let ended = bench.outlast(["run", "--run-id", "r", "--agent", "mine", "--workspace", workspace, "hi"]);
    assert_eq!(ended.code(), 127, "{}", ended.stderr);
    check_failed(&bench, "r", "launch_failed", &["working directory", "gone", "does not exist"]);
}

#[test]
fn quotas() {
    let bench = Bench::with_config("[sandbox]\nmax_output = \"64KiB\"\nmax_stderr = \"4KiB\"\n");
    let marker = Marker::new("quota");
    let loop_to = |redirection: &str| {
        format!("i=0; while :; do echo \"line $i\"{redirection}; i=$((i+1)); done; echo \"$0\"")
    };
    let ended = bench.outlast(run_args(&bench, "out", &["sh", "-c", &loop_to(""), &marker.0]));
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let log = check_failed(&bench, "out", "output_limit", &["more than the 65536 bytes"]);
    let expected: String = (0..10_000).map(|i| format!("line {i}\n")).collect();
    assert!(Bench::text(&log) == expected[..65536], "every byte that it may print is there");
    assert_eq!(bench.record("out")["endReason"], "output_limit");

    let ended = bench.outlast(run_args(&bench, "err", &["sh", "-c", &loop_to(" >&2"), &marker.0]));
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    check_failed(&bench, "err", "output_limit", &["more than the 4096 bytes", "standard error"]);
    assert_eq!(marker.alive(), [], "it is killed");
}

#[test]
fn a_disk_that_fills() {
    let bench = Bench::new();
    let sandboxes = bench.data_dir().join("sandboxes");
    fs::create_dir(&sandboxes).expect("directory");
    let Some(_disk) = SmallDisk::mount(&sandboxes, "1m") else {
        return;
    };
    let marker = Marker::new("full");
    let script = "i=0; while :; do echo \"line $i of an agent that prints more than the disk holds\"; \
                  i=$((i+1)); done; echo \"$0\"";
    let ended = bench.outlast(run_args(&bench, "r", &["sh", "-c", script, &marker.0]));
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let log = check_failed(&bench, "r", "output_limit", &["disk", "is full"]);
    let text = Bench::text(&log);
    let lines = text.lines().count();
    let expected: String =
        (0..=lines).map(|i| format!("line {i} of an agent that prints more than the disk holds\n")).collect();
    assert!(expected.starts_with(&text), "all that the disk took, in order");
    assert!(text.len() > 900_000, "{} bytes", text.len());
    assert_eq!(marker.alive(), [], "it is killed");
}

#[test]
fn a_disk_that_fills_under_the_store_and_is_given_room() {
    let bench = Bench::new();
    let Some(_disk) = SmallDisk::mount(&bench.data_dir(), "4m") else {
        return;
    };
    fs::write(bench.data_dir().join("outlast.toml"), "[driver]\nlease = \"1500ms\"\n").expect("write");
    let filler = bench.data_dir().join("filler");
    let filler_text = filler.to_str().expect("utf-8");
    // Its journal's last page has room for the few lines that follow.
    let script = "echo start >> starts; echo before; cat /dev/zero > \"$1\" 2> /dev/null; touch full; \
                  i=0; while [ $i -lt 20 ]; do echo \"line $i\"; i=$((i+1)); sleep 0.05; done; touch done";
    let driver = bench.spawn(run_args(&bench, "r", &["sh", "-c", script, "agent", filler_text]));
    eventually("the driver says that it holds", || driver.stderr().contains("holding").then_some(()));
    assert!(driver.stderr().contains("no space left"), "{}", driver.stderr());
    eventually("the agent goes on and ends", || bench.workspace().join("done").exists().then_some(()));
    let mut driver = driver;
    assert!(!driver.has_ended(), "{}", driver.stderr());
    fs::remove_file(&filler).expect("remove");
    let ended = driver.finish();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("available again"), "{}", ended.stderr);
    let lines: String = (0..20).map(|i| format!("line {i}\n")).collect();
    let log = bench.check_ended("r");
    assert_eq!(Bench::text(&log), format!("before\n{lines}"), "nothing is lost or doubled");
    assert_eq!(ended.stdout, bench.outlast(["logs", "--json", "r"]).ok());
    assert_eq!(starts(&bench), 1);
}

#[test]
fn a_machine_that_is_restarted() {
    // Its driver dies with it, in the middle of the work or between the latch and its record.
    for step in [None, Some("launch.after"), Some("launched.before")] {
        let bench = Bench::new();
        let agent = numbered_agent(10_000, "0.05", 0);
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let mut command = bench.command(run_args(&bench, "r", &agent));
        if let Some(step) = step {
            command.env("OUTLAST_FAILPOINT", format!("{step}=kill"));
        }
        let mut driver = Proc::new(command.spawn().expect("spawn"));
        match step {
            Some(_) => assert_eq!(driver.finish().code(), 137),
            None => {
                driver.wait_for("line 3");
                driver.kill9();
            }
        }
        eventually("the agent works", || (starts(&bench) == 1).then_some(()));
        kill9(bench.shim("r").expect("shim"));
        eventually("the shim is gone", || bench.shim("r").is_none().then_some(()));

        let mut command = bench.command(["attach", "r"]);
        command.env("OUTLAST_TEST_BOOT_ID", "another-boot");
        let attached = Proc::new(command.spawn().expect("spawn")).finish();
        assert_eq!(attached.code(), 1, "{step:?}: {}", attached.stderr);
        check_failed(&bench, "r", "agent_lost", &["machine was restarted"]);
        assert_eq!(starts(&bench), 1, "{step:?}: never a second start");
        assert_eq!(bench.outlast(["attach", "r"]).code(), 1);
        assert_eq!(starts(&bench), 1, "{step:?}: nor later");
    }
}
