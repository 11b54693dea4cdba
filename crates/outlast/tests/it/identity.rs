//! A run id names one run and one agent; a thread has one live run, and a lent workspace one user.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Finished, Proc, eventually, gated_agent, is_stopped, numbered_text};

/// The commands, all set off at the same instant, right before they ask the store.
fn at_the_same_instant(bench: &Bench, commands: Vec<Vec<String>>) -> Vec<Finished> {
    let started = commands.into_iter().map(|args| {
        let mut command = bench.command(args);
        command.env("OUTLAST_FAILPOINT", "accept.before=stop");
        Proc::new(command.spawn().expect("spawn"))
    });
    let procs: Vec<Proc> = started.collect();
    for proc in &procs {
        eventually("at the line", || is_stopped(proc.pid()).then_some(()));
    }
    procs.iter().for_each(|proc| proc.signal(Signal::CONT));
    procs.into_iter().map(Proc::finish).collect()
}

#[track_caller]
fn check_refused(refused: &Finished, code: &str, says: &[&str]) {
    assert_eq!(refused.code(), 125, "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
    let (found, message) = refused.failure();
    assert_eq!(found, code, "{message}");
    for text in says {
        assert!(message.contains(text), "{text}: {message}");
    }
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

#[test]
fn the_second_shows_the_firsts_run() {
    let bench = Bench::new();
    let args = bench.run_args("r", &[], &gated_agent(3, 30, 7));
    let mut first = bench.spawn(&args);
    first.wait_for("line 2");
    let mut second = bench.spawn(&args);
    second.wait_for("line 2");
    bench.open_gate();
    let (first, second) = (first.finish(), second.finish());
    assert_eq!((first.code(), second.code()), (7, 7), "{} {}", first.stderr, second.stderr);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(30));
    let record = bench.record("r");

    let third = bench.outlast(&args);
    assert_eq!(third.code(), 7, "also after the end: {}", third.stderr);
    assert_eq!(third.stdout, first.stdout);
    let mut detached = args;
    detached.insert(1, "-d".to_owned());
    let fourth = bench.outlast(&detached);
    assert!(fourth.stdout.contains("\"r\""), "{}", fourth.stdout);
    assert_eq!(fourth.code(), 0, "{}", fourth.stderr);
    assert_eq!(bench.record("r"), record, "nothing of it changes");
    assert_eq!(bench.starts(), 1);
}

#[test]
fn the_second_names_the_firsts_thread() {
    let bench = Bench::new();
    let args = ["run", "--run-id", "r", "--", "echo", "hi"];
    bench.outlast(args).ok();
    let thread = bench.record("r")["threadId"].as_str().expect("thread").to_owned();
    let second = bench.outlast(args);
    assert!(second.stderr.contains(&format!("run r on thread {thread}")), "{thread}: {}", second.stderr);
    assert_eq!(second.ok(), "hi\n");
}

#[test]
fn eight_at_the_same_instant_start_one_agent() {
    let bench = Bench::new();
    bench.open_gate();
    let args = bench.run_args("r", &[], &gated_agent(3, 30, 7));
    let finished = at_the_same_instant(&bench, vec![args; 8]);
    let log = bench.outlast(["logs", "--json", "r"]).ok();
    for one in &finished {
        assert_eq!(one.code(), 7, "{}", one.stderr);
        assert_eq!(one.stdout, log);
    }
    assert_eq!(bench.starts(), 1);
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(30));
}

#[test]
fn frozen_just_before_its_launch() {
    let bench = Bench::new();
    let args = bench.run_args("r", &[], &gated_agent(3, 30, 7));
    let mut command = bench.command(&args);
    command.env("OUTLAST_FAILPOINT", "launch.before=stop");
    let frozen = Proc::new(command.spawn().expect("spawn"));
    eventually("frozen", || is_stopped(frozen.pid()).then_some(()));
    assert_eq!(bench.starts(), 0);
    let mut second = bench.spawn(&args);
    second.wait_for("line 2");
    assert_eq!(bench.starts(), 1, "the second has launched it, once the first's lease was over");
    frozen.signal(Signal::CONT);
    // Thawed, it first finds the latch taken, and then that it drives no longer; both before the run ends.
    eventually("the first is a reader", || frozen.stdout().contains("line 2").then_some(()));
    bench.open_gate();
    let (first, second) = (frozen.finish(), second.finish());
    assert_eq!((first.code(), second.code()), (7, 7), "{} {}", first.stderr, second.stderr);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(bench.starts(), 1, "still one");
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(30));
}

#[test]
fn another_request_under_a_taken_id() {
    let config = "[agents.one]\nkind = \"command\"\nargv = [\"cat\"]\n[agents.two]\nkind = \"command\"\nargv = [\"cat\"]\n";
    let bench = Bench::with_config(config);
    let elsewhere = bench.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("mkdir");
    let base = ["run", "--json", "--run-id", "r", "--thread", "t", "--agent", "one", "hello"];
    bench.outlast(base).ok();
    let record = bench.record("r");
    let variant =
        |from: &str, to: &str| base.map(|arg| if arg == from { to.to_owned() } else { arg.to_owned() });
    let mut lent = owned(&base);
    lent.insert(1, format!("--workspace={}", elsewhere.display()));
    let mut model = owned(&base);
    model.insert(1, "--model=m".to_owned());
    for (what, args) in [
        ("agent", variant("one", "two").to_vec()),
        ("prompt", variant("hello", "hello ").to_vec()),
        ("thread", variant("t", "u").to_vec()),
        ("workspace", lent),
        ("model", model),
        ("command", owned(&["run", "--json", "--run-id", "r", "--thread", "t", "hello", "--", "cat"])),
    ] {
        let refused = bench.outlast(&args);
        eprintln!("{what}: {}", refused.stderr);
        check_refused(
            &refused,
            "run_id_conflict",
            &["\"r\"", if what == "thread" { "thread" } else { "another" }],
        );
    }
    assert_eq!(bench.record("r"), record);
    assert_eq!(bench.outlast(base).code(), 0, "the same request is still answered");
    // Whoever names no thread means whichever the run has.
    assert_eq!(bench.outlast(["run", "--json", "--run-id", "r", "--agent", "one", "hello"]).code(), 0);
}

#[test]
fn a_thread_has_one_live_run() {
    let bench = Bench::new();
    bench.outlast(["run", "-d", "--run-id", "first", "--thread", "t", "--", "sleep", "600"]).ok();
    let refused = bench.outlast(["run", "--json", "--run-id", "second", "--thread", "t", "--", "true"]);
    check_refused(&refused, "thread_busy", &["\"first\"", "\"t\""]);
    let refused = bench.outlast(["run", "-d", "--json", "--thread", "t", "--", "true"]);
    check_refused(&refused, "thread_busy", &["\"first\""]);
    assert_eq!(bench.status("second"), None, "nothing was recorded");
    let person = bench.outlast(["run", "--thread", "t", "--", "true"]);
    assert!(person.stderr.contains("\"first\""), "{}", person.stderr);
    bench.outlast(["run", "--run-id", "other", "--thread", "u", "--", "true"]).ok();
    bench.outlast(["cancel", "first"]).ok();
    bench.outlast(["run", "--run-id", "second", "--thread", "t", "--", "true"]).ok();
}

#[test]
fn six_at_the_same_instant_on_one_thread() {
    let bench = Bench::new();
    let agent = "echo start >> \"$STARTS\"; sleep 600";
    let starts = bench.path().join("all-starts");
    let config = format!(
        "[agents.a]\nkind = \"command\"\nargv = [\"sh\", \"-c\", '{agent}']\nenv = {{ STARTS = {starts:?} }}\n"
    );
    fs::write(bench.data_dir().join("outlast.toml"), config).expect("configuration");
    let args = |n: usize| {
        owned(&["run", "-d", "--json", "--thread", "t", "--agent", "a"])
            .into_iter()
            .chain([format!("--run-id=r{n}")])
            .collect()
    };
    let finished = at_the_same_instant(&bench, (0..6).map(args).collect());
    let (accepted, refused): (Vec<_>, Vec<_>) = finished.iter().partition(|one| one.code() == 0);
    assert_eq!((accepted.len(), refused.len()), (1, 5), "{finished:?}");
    let said: Value = serde_json::from_str(&accepted[0].stdout).expect("json");
    let winner = said["runId"].as_str().expect("id");
    for one in refused {
        check_refused(one, "thread_busy", &[&format!("{winner:?}")]);
    }
    let all: Value = serde_json::from_str(&bench.outlast(["ps", "-a", "--json"]).ok()).expect("json");
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    eventually("it works", || starts.exists().then_some(()));
    bench.outlast(["cancel", winner]).ok();
    assert_eq!(fs::read_to_string(&starts).expect("starts"), "start\n");
}

fn in_workspace(workspace: &Path, run: &str, share: bool, agent: &[&str]) -> Vec<String> {
    let mut args = owned(&["run", "-d", "--json", "--run-id", run, "--thread", run, "--workspace"]);
    args.push(workspace.to_str().expect("utf-8").to_owned());
    if share {
        args.push("--share-workspace".to_owned());
    }
    args.push("--".to_owned());
    args.extend(owned(agent));
    args
}

#[test]
fn a_lent_workspace_has_one_user() {
    let bench = Bench::new();
    let workspace = bench.workspace();
    let sleep = ["sleep", "600"];
    bench.outlast(in_workspace(&workspace, "first", false, &sleep)).ok();
    let refused = bench.outlast(in_workspace(&workspace, "second", false, &sleep));
    check_refused(&refused, "thread_busy", &["\"first\"", workspace.to_str().expect("utf-8")]);
    let refused = bench.outlast(in_workspace(&workspace, "second", true, &sleep));
    check_refused(&refused, "thread_busy", &["\"first\""]);
    let link = bench.path().join("link");
    std::os::unix::fs::symlink(&workspace, &link).expect("symlink");
    for same in [link, workspace.join("."), workspace.join("../work")] {
        let refused = bench.outlast(in_workspace(&same, "second", false, &sleep));
        check_refused(&refused, "thread_busy", &["\"first\""]);
    }
    // Another directory is free, and so is a workspace of the run's own.
    let other = bench.path().join("other");
    fs::create_dir(&other).expect("mkdir");
    bench.outlast(in_workspace(&other, "elsewhere", false, &["true"])).ok();
    bench.outlast(["run", "--", "true"]).ok();

    fs::write(workspace.join("precious"), "mine").expect("write");
    bench.outlast(["cancel", "first"]).ok();
    bench.outlast(in_workspace(&workspace, "second", false, &["true"])).ok();
    assert_eq!(bench.outlast(["attach", "second"]).code(), 0, "free again after the end");
    assert_eq!(fs::read_to_string(workspace.join("precious")).expect("still there"), "mine");
}

#[test]
fn a_shared_workspace_has_many() {
    let bench = Bench::new();
    let workspace = bench.workspace();
    let sleep = ["sleep", "600"];
    bench.outlast(in_workspace(&workspace, "first", true, &sleep)).ok();
    bench.outlast(in_workspace(&workspace, "second", true, &sleep)).ok();
    let refused = bench.outlast(in_workspace(&workspace, "third", false, &sleep));
    check_refused(&refused, "thread_busy", &[workspace.to_str().expect("utf-8")]);
    bench.outlast(["cancel", "first"]).ok();
    let refused = bench.outlast(in_workspace(&workspace, "third", false, &sleep));
    check_refused(&refused, "thread_busy", &["\"second\""]);
    assert_eq!(bench.status("second").as_deref(), Some("running"), "the other's cancel has not harmed it");
    bench.outlast(["cancel", "second"]).ok();
    bench.outlast(in_workspace(&workspace, "third", false, &["true"])).ok();
    assert_eq!(bench.outlast(["attach", "third"]).code(), 0);
}

#[test]
fn six_at_the_same_instant_in_one_workspace() {
    let bench = Bench::new();
    let args = |n: usize| in_workspace(&bench.workspace(), &format!("r{n}"), false, &["sleep", "600"]);
    let finished = at_the_same_instant(&bench, (0..6).map(args).collect());
    let (accepted, refused): (Vec<_>, Vec<_>) = finished.iter().partition(|one| one.code() == 0);
    assert_eq!((accepted.len(), refused.len()), (1, 5), "{finished:?}");
    let said: Value = serde_json::from_str(&accepted[0].stdout).expect("json");
    let winner = said["runId"].as_str().expect("id");
    for one in refused {
        check_refused(one, "thread_busy", &[&format!("{winner:?}")]);
    }
    bench.outlast(["cancel", winner]).ok();
}
