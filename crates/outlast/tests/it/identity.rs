//! A run id names one run and one agent, a thread has one live run, a lent workspace one user; and an id is never more
//! than a name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use outlast::core::encoding;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Bench, Finished, Proc, eventually, gated_agent, gated_script, is_stopped, numbered_text,
};

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
    let last = refused.stderr.lines().last().unwrap_or_default();
    let error: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", refused.stderr));
    assert_eq!(error["error"]["code"], code, "{error}");
    let message = error["error"]["message"].as_str().expect("message");
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
    let mut detached = args.clone();
    detached.insert(1, "-d".to_owned());
    let fourth = bench.outlast(&detached);
    assert!(fourth.stdout.contains("\"r\""), "{}", fourth.stdout);
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
    assert!(second.stderr.contains(&format!("run r on thread {thread}\n")), "{thread}: {}", second.stderr);
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
    let variant = |from: &str, to: &str| base.map(|arg| if arg == from { to.to_owned() } else { arg.to_owned() });
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
        check_refused(&refused, "run_id_conflict", &["\"r\"", if what == "thread" { "thread" } else { "another" }]);
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
    let accepted: Vec<_> = finished.iter().filter(|one| one.code() == 0).collect();
    assert_eq!(accepted.len(), 1, "{finished:?}");
    let said: Value = serde_json::from_str(&accepted[0].stdout).expect("json");
    bench.outlast(["cancel", said["runId"].as_str().expect("id")]).ok();
}

/// Ids that people try. The crab is four bytes long, so twelve of them are near the limit.
const ODD: &[&str] = &[
    "../../x", "/etc/passwd", ".", "..", "...", "a/b", "a\\b", "a'b; rm -rf ~", "$(touch pwned)", "`touch pwned`",
    "x; touch pwned #", "CON", "nul.txt", "-x", "--json", "--", "a b", " ", "é", "e\u{301}", "🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀",
    "%2e%2e", "_", "__", "%s%n", "*", "~", "\"", "'", "now", "-1", "\u{202e}txt.exe", "{\"a\":1}", "' OR 1=1 --",
];

/// Pairs and more that one careless encoding or another would take for one.
const ALIKE: &[&str] = &[
    "run", "Run", "RUN", "con", "Con", "COn", "a_b", "a_5fb", "a_5Fb", "a%5fb", "a%5Fb", "a.b", "a-b", "a/b", "a_2fb", "_2e",
    ".", "_5f2e", "a b", "a+b", "a%20b", "a_20b", "ß", "ss", "K", "\u{212a}", "k",
];

/// Everything below a directory, as paths relative to it.
fn files_below(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = vec![dir.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            found.insert(path.strip_prefix(dir).expect("below").to_str().expect("utf-8").to_owned());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                rest.push(path);
            }
        }
    }
    found
}

/// Every file beside the runs' own ones: of the data directory without who is alive at the moment, and of the rest.
fn files_of_no_run(bench: &Bench) -> BTreeSet<String> {
    let of_a_run = |path: &str| path.contains("/runs/") || path.contains("/prompts/") || path.contains("/owners/");
    files_below(bench.path()).into_iter().filter(|path| !of_a_run(path)).collect()
}

/// One run of each id on one thread, so that all share a sandbox and its directory of runs. Each prints its own id.
fn run_each(bench: &Bench, ids: &[&str]) {
    for id in ids {
        let id_arg = format!("--run-id={id}");
        let script = "echo start >> starts; printf %s \"$OUTLAST_RUN_ID\"";
        let ran = bench.outlast(["run", &id_arg, "--thread", "t", "--", "sh", "-c", script]);
        assert_eq!(ran.code(), 0, "{id:?}: {}", ran.stderr);
        let expected = if ran.stdout.ends_with('\n') { format!("{id}\n") } else { (*id).to_owned() };
        assert_eq!(ran.stdout, expected, "{id:?}");
    }
}

#[test]
fn odd_ids_are_names_and_nothing_else() {
    let bench = Bench::new();
    bench.outlast(["run", "--run-id", "plain", "--thread", "t", "--", "sh", "-c", "echo start >> starts"]).ok();
    let before = files_of_no_run(&bench);
    run_each(&bench, ODD);
    for id in ODD {
        assert_eq!(bench.record(id)["runId"], *id);
        assert_eq!(Bench::text(&bench.check_ended(id)), *id);
        assert_eq!(bench.outlast(["attach", "--", id]).stdout.trim_end_matches('\n'), *id);
        let cancelled = bench.outlast(["cancel", "--", id]);
        assert_eq!(cancelled.code(), 0, "{id:?}: {}", cancelled.stderr);
    }
    assert_eq!(files_of_no_run(&bench), before, "every file of theirs is where runs have their files");
    let known: BTreeSet<String> = ODD.iter().map(|id| (*id).to_owned()).chain(["plain".to_owned()]).collect();
    let runs: BTreeSet<String> = files_below(bench.path())
        .into_iter()
        .filter_map(|path| path.split_once("/runs/").map(|(_, name)| name.to_owned()))
        .collect();
    let names_a_run = |name: &str| {
        let dots = name.match_indices('.').map(|(at, _)| &name[..at]);
        dots.chain([name]).filter_map(encoding::decode).any(|id| known.contains(&id))
    };
    for name in &runs {
        assert!(names_a_run(name), "{name} is no file of a run");
    }
    assert!(runs.len() >= 2 * ODD.len(), "{runs:?}");
    let listed: Value = serde_json::from_str(&bench.outlast(["ps", "-a", "--json"]).ok()).expect("json");
    let listed: BTreeSet<String> =
        listed.as_array().expect("array").iter().filter_map(|run| run["runId"].as_str().map(str::to_owned)).collect();
    assert_eq!(listed, known);
    bench.outlast(["ps", "-a"]).ok();
}

#[test]
fn odd_threads_are_names_and_nothing_else() {
    let bench = Bench::new();
    bench.outlast(["run", "--", "true"]).ok();
    let top = |bench: &Bench| -> BTreeSet<String> {
        files_of_no_run(bench).into_iter().filter(|path| path.matches('/').count() < 2).collect()
    };
    let before = top(&bench);
    let long = "t".repeat(1024);
    for thread in ODD.iter().copied().chain([long.as_str()]) {
        let ran = bench.outlast(["run", "--json", &format!("--thread={thread}"), "--", "printenv", "OUTLAST_THREAD_ID"]);
        assert_eq!(ran.code(), 0, "{thread:?}: {}", ran.stderr);
        let told = outlast_text(&ran.stdout);
        assert_eq!(told, format!("{thread}\n"));
    }
    assert_eq!(top(&bench), before);
}

fn outlast_text(stream: &str) -> String {
    Bench::text(&crate::support::parse_stream(stream))
}

#[test]
fn ids_that_look_alike_do_not_collide() {
    let bench = Bench::new();
    run_each(&bench, ALIKE);
    for id in ALIKE {
        assert_eq!(bench.record(id)["runId"], *id);
        assert_eq!(Bench::text(&bench.check_ended(id)), *id);
    }
    let starts: String = files_below(&bench.data_dir())
        .into_iter()
        .filter(|path| path.ends_with("/starts"))
        .map(|path| fs::read_to_string(bench.data_dir().join(path)).expect("starts"))
        .collect();
    assert_eq!(starts.lines().count(), ALIKE.len(), "each has had its own agent");
}

#[test]
fn ids_that_are_refused_say_why() {
    let bench = Bench::new();
    let long = "x".repeat(10_000);
    let just_too_long = "x".repeat(151);
    let refused: [(&str, &str); 7] = [
        ("", "empty"),
        (&long, "too long"),
        (&just_too_long, "too long"),
        ("a\nb", "control"),
        ("a\rb", "control"),
        ("\x1b[2J", "control"),
        ("a\tb", "control"),
    ];
    for (id, says) in refused {
        for args in [
            vec!["run".to_owned(), format!("--run-id={id}"), "--".to_owned(), "true".to_owned()],
            owned(&["attach", "--", id]),
            owned(&["show", "--", id]),
            owned(&["cancel", "--", id]),
            owned(&["logs", "--", id]),
        ] {
            let refused = bench.outlast(&args);
            assert_eq!(refused.code(), 2, "{args:?}: {}", refused.stderr);
            assert!(refused.stderr.contains(says), "{args:?}: {}", refused.stderr);
            assert!(refused.stderr.len() < 1000, "{args:?}: {}", refused.stderr);
            assert!(!refused.stderr.contains('\x1b'), "{args:?}");
        }
    }
    for thread in ["", "a\nb", &"t".repeat(1025)] {
        let refused = bench.outlast(["run", &format!("--thread={thread}"), "--", "true"]);
        assert_eq!(refused.code(), 2, "{thread:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("thread id"), "{}", refused.stderr);
    }
    let mut not_text = bench.command(["run", "--run-id"]);
    not_text.arg(OsStr::from_bytes(b"a\xff")).args(["--", "true"]);
    assert_eq!(not_text.output().expect("output").status.code(), Some(2));
    assert_eq!(bench.outlast(["ps", "-a", "--json"]).ok(), "[]\n", "nothing was recorded");
}

/// What the program says to do is done by a shell, letter for letter.
#[test]
fn a_shell_takes_the_printed_commands_as_they_are() {
    for id in ["a'b; rm -rf ~", "$(touch pwned)", "-x", "--json", "a b", "~", "\u{202e}x", "é", "plain"] {
        let bench = Bench::new();
        let id_arg = format!("--run-id={id}");
        let agent = gated_script("printf done");
        let workspace = format!("--workspace={}", bench.workspace().display());
        let start = ["run".to_owned(), id_arg, workspace, "--".to_owned()].into_iter().chain(agent);
        let run = bench.spawn(start);
        eventually("started", || (bench.starts() == 1).then_some(()));
        run.signal(Signal::INT);
        let left = run.finish();
        assert_eq!(left.code(), 130, "{}", left.stderr);
        let hints: Vec<&str> = left.stderr.split('`').skip(1).step_by(2).collect();
        let [attach, cancel] = hints.as_slice() else { panic!("two commands: {}", left.stderr) };
        assert!(attach.starts_with("outlast attach ") && cancel.starts_with("outlast cancel "), "{}", left.stderr);
        let listed = bench.outlast(["ps"]).ok();
        assert!(listed.contains(attach), "{attach}: {listed}");
        bench.open_gate();
        let shell = |line: &str| {
            let mut shell = Command::new("sh");
            let program = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().expect("directory");
            let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("PATH"));
            shell.args(["-c", line]).env("PATH", path).env("OUTLAST_DATA_DIR", bench.data_dir());
            shell.current_dir(bench.path()).output().expect("sh")
        };
        let attached = shell(attach);
        let stderr = String::from_utf8_lossy(&attached.stderr);
        assert!(attached.status.success(), "{attach}: {stderr}");
        assert!(String::from_utf8_lossy(&attached.stdout).starts_with("done"), "{attach}");
        let cancelled = shell(cancel);
        assert!(cancelled.status.success(), "{cancel}: {}", String::from_utf8_lossy(&cancelled.stderr));
        assert!(!files_below(bench.path()).iter().any(|path| path.ends_with("pwned")));
    }
}
