//! `outlast.toml`, and what may be said on the command line.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Marker, eventually, gated_script};

fn agent_that_says(text: &str) -> String {
    format!("[agents.a]\nkind = \"command\"\nargv = [\"echo\", \"{text}\"]\n")
}

#[test]
fn where_it_is_looked_for() {
    let bench = Bench::with_config(&agent_that_says("data directory"));
    let said = |args: &[&str]| bench.outlast(args).ok();
    let run = ["run", "--agent", "a"];
    assert_eq!(said(&run), "data directory\n");
    fs::write(bench.path().join("outlast.toml"), agent_that_says("working directory")).expect("write");
    assert_eq!(said(&run), "working directory\n");
    fs::write(bench.path().join("named.toml"), agent_that_says("named")).expect("write");
    assert_eq!(said(&["run", "--agent", "a", "--config", "named.toml"]), "named\n");
    let mut command = bench.command(run);
    let output = command.env("OUTLAST_CONFIG", bench.path().join("named.toml")).output().expect("output");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "named\n");
    fs::remove_file(bench.path().join("outlast.toml")).expect("remove");
    fs::remove_file(bench.data_dir().join("outlast.toml")).expect("remove");
    assert_eq!(said(&["run", "--", "echo", "nothing configured"]), "nothing configured\n");
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let bench = Bench::new();
    for args in [["ps", "--config", "nope.toml"], ["--config", "nope.toml", "ps"]] {
        let refused = bench.outlast(args);
        assert_eq!(refused.code(), 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("nope.toml") && refused.stderr.contains("No such file"),
            "{}",
            refused.stderr
        );
    }
    let directory = bench.outlast(["ps", "--config", "work"]);
    assert_eq!(directory.code(), 2, "{}", directory.stderr);
}

#[test]
fn mistakes_name_the_file_and_the_nearest_that_is_valid() {
    for (text, says) in [
        ("[agents.a]\nkind = \"command\"\nargs = [\"x\"]", "did you mean \"argv\"?"),
        ("[agents.a]\nkind = \"command\"\nargv = [\"x\"]\npassenv = []", "did you mean \"pass_env\"?"),
        ("[agent.a]\nkind = \"codex\"", "did you mean \"agents\"?"),
        ("[drivers]\nlease = \"5s\"", "did you mean \"driver\"?"),
        ("[driver]\nleese = \"5s\"", "did you mean \"lease\"?"),
        ("[reap]\ndetached_ttl = \"5s\"", "did you mean \"detached_run_ttl\"?"),
        ("[sandbox]\nmax_out = \"5s\"", "did you mean \"max_output\"?"),
        ("[agents.a]\nkind = \"claude\"", "claude-code"),
        ("[agents.a]\nkind = \"comand\"\nargv = [\"x\"]", "command"),
        ("[agents.a]\nkind = \"command\"", "argv"),
        ("[agents.a]\nargv = [\"x\"]", "kind"),
        ("[agents.a]\nkind = \"command\"\nargv = \"x\"", "argv"),
        ("[agents.a]\nkind = \"codex\"\nenv = { \"A=B\" = \"c\" }", "environment variable"),
        ("[agents.a]\nkind = \"codex\"\nstdin = \"file\"", "none"),
        ("[driver]\nlease = \"5\"", "unit"),
        ("[driver]\nlease = 5", "lease"),
        ("[reap]\ndetached_run_ttl = \"soon\"", "none"),
        ("[sandbox]\nmax_output = \"1GB\"", "GiB"),
        ("[sandbox]\nfence = \"strong\"", "subreaper"),
        ("this is no toml", "line 1"),
    ] {
        let bench = Bench::with_config(text);
        for json in [false, true] {
            let args = if json { ["ps", "--json"].as_slice() } else { &["ps"] };
            let refused = bench.outlast(args);
            assert_eq!(refused.code(), 2, "{text}: {}", refused.stderr);
            assert_eq!(refused.stdout, "");
            let message = if json {
                let error: Value = serde_json::from_str(refused.stderr.trim_end()).expect("json");
                assert_eq!(error["error"]["code"], "invalid_request");
                error["error"]["message"].as_str().expect("message").to_owned()
            } else {
                refused.stderr.clone()
            };
            assert!(message.contains(says), "{text}\n{message}");
            assert!(message.contains("data/outlast.toml"), "which file: {message}");
        }
    }
}

/// The command is refused as wrong usage, with a text that says these things; nothing is recorded.
#[track_caller]
fn check_usage(bench: &Bench, args: &[&str], says: &[&str]) {
    let refused = bench.outlast(args);
    assert_eq!(refused.code(), 2, "{args:?}: {}", refused.stderr);
    assert_eq!(refused.stdout, "", "{args:?}");
    for text in says {
        assert!(refused.stderr.contains(text), "{args:?} says {text:?}: {}", refused.stderr);
    }
}

#[test]
fn wrong_usage_is_said_so_and_says_what_is_right() {
    let bench = Bench::with_config(&agent_that_says("hi"));
    check_usage(&bench, &[], &["Usage", "attach"]);
    check_usage(&bench, &["runn"], &["run"]);
    check_usage(&bench, &["run"], &["--agent", "-- COMMAND", "claude-code", "codex", "demo"]);
    check_usage(&bench, &["run", "what to do"], &["--agent"]);
    check_usage(&bench, &["run", "--agent", "a", "--", "true"], &["--agent", "not both"]);
    check_usage(&bench, &["run", "--agent", "claude", "hi"], &["did you mean \"claude-code\"?", "demo"]);
    check_usage(&bench, &["run", "--agent", "b"], &["did you mean", "Agents:"]);
    check_usage(&bench, &["run", "--agent", "command"], &["--", "make test"]);
    check_usage(&bench, &["run", "--agent", "claude-code"], &["what is claude-code to do?"]);
    check_usage(&bench, &["run", "--agent", "codex"], &["what is codex to do?"]);
    for ttl in ["", "5", "soon", "-1s", "1.5h", "5 parsecs"] {
        let ttl = format!("--detach-ttl={ttl}");
        check_usage(&bench, &["run", &ttl, "--", "true"], &["90s", "none"]);
    }
    check_usage(&bench, &["run", "--on-disconnect", "kill", "--", "true"], &["detach", "cancel"]);
    check_usage(
        &bench,
        &["run", "--workspace", "nowhere", "--", "true"],
        &["--workspace", "nowhere", "No such file"],
    );
    fs::write(bench.path().join("file"), "").expect("write");
    check_usage(&bench, &["run", "--workspace", "file", "--", "true"], &["file", "not a directory"]);
    check_usage(&bench, &["run", "--share-workspace", "--", "true"], &["--workspace"]);
    check_usage(&bench, &["run", "--"], &["--agent"]);
    check_usage(&bench, &["attach"], &["<RUN>"]);
    check_usage(&bench, &["cancel"], &["<RUN>"]);
    check_usage(&bench, &["show", "--mesages", "r"], &["--messages"]);
    assert_eq!(bench.outlast(["ps", "-a", "--json"]).ok(), "[]\n", "nothing was recorded");
    for help in [["--help"].as_slice(), &["run", "--help"], &["help", "attach"], &["--version"]] {
        assert!(bench.outlast(help).ok().contains("outlast"), "{help:?}");
    }
}

#[test]
fn the_kind_command_needs_no_configuration() {
    let bench = Bench::new();
    assert_eq!(bench.outlast(["run", "--agent", "command", "--", "echo", "hi"]).ok(), "hi\n");
    let mut empty = bench.command(["ps"]);
    let data_dir = bench.data_dir();
    empty.env("OUTLAST_CONFIG", "").env("OUTLAST_DATA_DIR", "").env("XDG_DATA_HOME", data_dir.join("xdg"));
    let output = empty.output().expect("output");
    assert!(
        output.status.success(),
        "an empty variable is none: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(data_dir.join("xdg/outlast/outlast.db").exists());
}

#[test]
fn the_data_directory_is_made_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let home = bench.path().join("home");
    let mut command = bench.command(["run", "--", "echo", "hi"]);
    command.env_remove("OUTLAST_DATA_DIR").env("HOME", &home).env_remove("XDG_DATA_HOME");
    assert_eq!(String::from_utf8_lossy(&command.output().expect("output").stdout), "hi\n");
    let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&home.join(".local/share/outlast")), 0o700);
    assert_eq!(mode(&home.join(".local/share/outlast/outlast.db")), 0o600);
    let xdg = bench.path().join("xdg");
    let mut command = bench.command(["run", "--", "true"]);
    command.env_remove("OUTLAST_DATA_DIR").env("XDG_DATA_HOME", &xdg);
    assert!(command.output().expect("output").status.success());
    assert!(xdg.join("outlast/outlast.db").exists());
    let flag = bench.path().join("flag");
    let flag_text = flag.to_str().expect("utf-8");
    bench.outlast(["run", "--data-dir", flag_text, "--", "true"]).ok();
    assert!(flag.join("outlast.db").exists(), "the flag is stronger than the variable");
    let mut command = bench.command(["ps"]);
    command.env_remove("OUTLAST_DATA_DIR").env_remove("HOME").env_remove("XDG_DATA_HOME");
    let lost = command.output().expect("output");
    assert_eq!(lost.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&lost.stderr).contains("--data-dir"));
}

#[test]
fn how_long_a_run_may_go_on_alone() {
    let day = 24 * 3_600_000_u64;
    for (config, flags, expected) in [
        ("", vec![], Value::from(day)),
        ("", vec!["--detach-ttl", "90s"], Value::from(90_000)),
        ("", vec!["--detach-ttl", "1h30m"], Value::from(5_400_000)),
        ("", vec!["--detach-ttl", "none"], Value::Null),
        ("[reap]\ndetached_run_ttl = \"7d\"\n", vec![], Value::from(7 * day)),
        ("[reap]\ndetached_run_ttl = \"none\"\n", vec![], Value::Null),
        ("[reap]\ndetached_run_ttl = \"none\"\n", vec!["--detach-ttl", "2s"], Value::from(2000)),
    ] {
        let bench = Bench::with_config(config);
        let mut args = vec!["run", "--run-id", "r"];
        args.extend(&flags);
        args.extend(["--", "true"]);
        bench.outlast(&args).ok();
        assert_eq!(bench.record("r")["detachedTtl"], expected, "{config} {flags:?}");
    }
}

#[test]
fn on_disconnect_cancel() {
    for signal in [Signal::INT, Signal::HUP, Signal::TERM] {
        let bench = Bench::new();
        let marker = Marker::new("disconnect");
        let agent = gated_script(&format!("sh -c 'while :; do sleep 0.05; done' {}", marker.0));
        let run = bench.spawn(bench.run_args("r", &["--on-disconnect", "cancel"], &agent));
        bench.open_gate();
        eventually("the agent works", || (!marker.alive().is_empty()).then_some(()));
        assert_eq!(bench.record("r")["onDisconnect"], "cancel");
        run.signal(signal);
        let left = run.finish();
        assert!(left.stderr.contains("the run is cancelled"), "{signal:?}: {}", left.stderr);
        assert_eq!(marker.alive(), [], "{signal:?}: nothing of it lives when the command returns");
        let log = bench.check_ended("r");
        assert_eq!(log[log.len() - 1].json["code"], "aborted");
        let record = bench.record("r");
        assert_eq!(record["status"], "aborted");
        assert_eq!(record["cancelRequested"]["reason"], "disconnect", "{record}");
    }
}

/// What the run was started with counts, not who leaves last.
#[test]
fn on_disconnect_cancel_counts_for_attach_and_only_there() {
    let bench = Bench::new();
    let agent = gated_script("true");
    bench.outlast(bench.run_args("r", &["-d", "--on-disconnect", "cancel"], &agent)).ok();
    eventually("the agent works", || (bench.starts() == 1).then_some(()));
    assert_eq!(bench.record("r")["status"], "running", "-d is not a viewer that leaves");
    let viewer = bench.spawn(["attach", "r"]);
    eventually("watched", || bench.record("r")["detachedSince"].is_null().then_some(()));
    viewer.signal(Signal::INT);
    assert_eq!(viewer.finish().code(), 130);
    eventually("cancelled", || (bench.status("r").as_deref() == Some("aborted")).then_some(()));
}

/// It is the last viewer's leaving that cancels.
#[test]
fn on_disconnect_cancel_waits_for_the_last_viewer() {
    let bench = Bench::new();
    let agent = gated_script("echo rest");
    let mut first = bench.spawn(bench.run_args("r", &["--on-disconnect", "cancel"], &agent));
    eventually("the agent works", || (bench.starts() == 1).then_some(()));
    let mut second = bench.spawn(["attach", "--json", "r"]);
    first.wait_for("RUN_STARTED");
    second.wait_for("RUN_STARTED");
    first.signal(Signal::INT);
    first.finish();
    assert_eq!(bench.record("r")["cancelRequested"], Value::Null, "the second still watches");
    bench.open_gate();
    let second = second.finish();
    assert_eq!(second.code(), 0, "{}", second.stderr);
    assert!(second.stdout.contains("rest"), "{}", second.stdout);
}
