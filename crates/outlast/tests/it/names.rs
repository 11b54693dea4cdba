//! An id is a name and nothing else: no path, no word of a shell, no other run's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use outlast::core::encoding;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Marker, eventually, gated_script, parse_stream};

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// Ids that people try. The crab is four bytes long, so twelve of them are near the limit.
const ODD: &[&str] = &[
    "../../x",
    "/etc/passwd",
    ".",
    "..",
    "...",
    "a/b",
    "a\\b",
    "a'b; rm -rf ~",
    "$(touch pwned)",
    "`touch pwned`",
    "x; touch pwned #",
    "CON",
    "nul.txt",
    "-x",
    "--json",
    "--",
    "a b",
    " ",
    "é",
    "e\u{301}",
    "🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀",
    "%2e%2e",
    "_",
    "__",
    "%s%n",
    "*",
    "~",
    "\"",
    "'",
    "now",
    "-1",
    "\u{202e}txt.exe",
    "{\"a\":1}",
    "' OR 1=1 --",
];

/// Pairs and more that one careless encoding or another would take for one.
const ALIKE: &[&str] = &[
    "run", "Run", "RUN", "con", "Con", "COn", "a_b", "a_5fb", "a_5Fb", "a%5fb", "a%5Fb", "a.b", "a-b", "a/b",
    "a_2fb", "_2e", ".", "_5f2e", "a b", "a+b", "a%20b", "a_20b", "ß", "ss", "K", "\u{212a}", "k",
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

/// Every file beside the runs' own ones: of the data directory without who is alive at the moment, and of the rest. The
/// database is one thing: whether its write-ahead log is folded in when a process ends depends on who else has it open.
fn files_of_no_run(bench: &Bench) -> BTreeSet<String> {
    let passes = |path: &str| {
        ["/runs/", "/prompts/", "/owners/", "/objects/workspaces/"]
            .iter()
            .any(|of_a_run| path.contains(of_a_run))
            || ["outlast.db-wal", "outlast.db-shm"].iter().any(|part| path.ends_with(part))
    };
    files_below(bench.path()).into_iter().filter(|path| !passes(path)).collect()
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
    bench
        .outlast(["run", "--run-id", "plain", "--thread", "t", "--", "sh", "-c", "echo start >> starts"])
        .ok();
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
    let listed: BTreeSet<String> = listed
        .as_array()
        .expect("array")
        .iter()
        .filter_map(|run| run["runId"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(listed, known);
    bench.outlast(["ps", "-a"]).ok();
}

#[test]
fn a_live_run_of_an_odd_id_is_stopped() {
    for id in ["../../x", "a'b; rm -rf ~", "$(touch pwned)", "-x", "CON", "🦀", "."] {
        let bench = Bench::new();
        let marker = Marker::new("odd");
        let sleep = "while :; do sleep 0.05; done";
        let run_id = format!("--run-id={id}");
        bench.outlast(["run", "-d", &run_id, "--", "sh", "-c", sleep, &marker.0]).ok();
        eventually("it works", || (!marker.alive().is_empty()).then_some(()));
        assert_eq!(bench.record(id)["probe"]["state"], "producing", "{id:?}");
        let cancelled = bench.outlast(["cancel", "--", id]);
        assert_eq!(cancelled.code(), 0, "{id:?}: {}", cancelled.stderr);
        assert_eq!(marker.alive(), [], "{id:?}");
        let log = bench.check_ended(id);
        assert_eq!(log[log.len() - 1].json["code"], "aborted", "{id:?}");
    }
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
        let ran = bench.outlast([
            "run",
            "--json",
            &format!("--thread={thread}"),
            "--",
            "printenv",
            "OUTLAST_THREAD_ID",
        ]);
        assert_eq!(ran.code(), 0, "{thread:?}: {}", ran.stderr);
        let told = outlast_text(&ran.stdout);
        assert_eq!(told, format!("{thread}\n"));
    }
    assert_eq!(top(&bench), before);
}

fn outlast_text(stream: &str) -> String {
    Bench::text(&parse_stream(stream))
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
        assert!(
            attach.starts_with("outlast attach ") && cancel.starts_with("outlast cancel "),
            "{}",
            left.stderr
        );
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
