//! Snapshots of workspaces.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;

use super::{destroy_sandbox, json, objects, run};
use crate::support::{Bench, Proc, eventually, is_stopped};

#[track_caller]
fn refs(bench: &Bench, thread: &str) -> Vec<Value> {
    json(bench, &["workspace", "ls", thread]).as_array().expect("snapshots").clone()
}

/// The thread's next run finds its files after the sandbox was destroyed: content, modes, links; not the secrets.
#[test]
fn come_back_after_the_sandbox_is_gone() {
    let bench = Bench::new();
    let make = "mkdir -p sub/empty; echo one > a; printf 'x\\377y' > sub/b; chmod 755 a; chmod 600 sub/b; \
                ln -s ../a sub/link; ln -s /etc/passwd out; echo KEY > .env; mkfifo pipe";
    run(&bench, "r1", "t", make);
    let made = refs(&bench, "t");
    assert_eq!((made.len(), &made[0]["trigger"], &made[0]["runId"]), (1, &"run_ended".into(), &"r1".into()));
    assert_eq!(made[0]["consistency"], "quiescent");
    destroy_sandbox(&bench, "t");
    assert_eq!(refs(&bench, "t").len(), 1, "nothing has changed since: no other snapshot");
    let seen = run(
        &bench,
        "r2",
        "t",
        "cat a; od -An -tx1 sub/b; readlink sub/link out; stat -c %a a sub/b; ls -A; echo two >> a",
    );
    assert_eq!(seen, "one\n 78 ff 79\n../a\n/etc/passwd\n755\n600\na\nout\nsub\n");
    let shown = json(&bench, &["session", "show", "t"]);
    assert_eq!(shown["workspace"]["ref"], refs(&bench, "t")[1]["ref"]);
    // And again, what the second run has added.
    destroy_sandbox(&bench, "t");
    assert_eq!(run(&bench, "r3", "t", "cat a; test -d sub/empty && echo empty"), "one\ntwo\nempty\n");
}

/// The same tree has the same name, and is stored once.
#[test]
fn name_content() {
    let bench = Bench::new();
    run(&bench, "r1", "t", "seq 100000 > numbers; echo x > x");
    let stored = objects(&bench, "workspaces");
    let first = json(&bench, &["workspace", "checkpoint", "t"]);
    assert_eq!((&first["uploadedObjects"], &first["uploadedBytes"]), (&0.into(), &0.into()));
    assert_eq!(first["ref"], refs(&bench, "t")[0]["ref"]);
    assert_eq!(
        bench.outlast(["workspace", "checkpoint", "t"]).ok().trim(),
        first["ref"].as_str().expect("ref")
    );
    // Another thread, other times, another order: the same content.
    run(&bench, "r2", "u", "echo x > x; seq 100000 > numbers; touch -d 2001-01-01 x");
    assert_eq!(refs(&bench, "u")[0]["ref"], first["ref"]);
    assert_eq!(objects(&bench, "workspaces"), stored);
    run(&bench, "r3", "t", "echo y > x");
    assert_eq!(objects(&bench, "workspaces").len(), stored.len() + 2, "one file and a manifest");
    // A lent directory is snapshotted when somebody asks, and never by itself.
    fs::write(bench.workspace().join("mine"), "1").expect("written");
    let work = bench.workspace();
    let lent = ["run", "--thread", "v", "--workspace", work.to_str().expect("utf-8"), "--", "true"];
    bench.outlast(lent).ok();
    assert_eq!(refs(&bench, "v").len(), 0);
    let made = json(&bench, &["workspace", "checkpoint", "v"]);
    assert_eq!((&made["files"], &made["consistency"]), (&1.into(), &"fuzzy".into()));
    let (code, message) = bench.outlast(["workspace", "checkpoint", "none", "--json"]).failure();
    assert_eq!(code, "not_found");
    assert!(message.contains("--dir"), "{message}");
}

/// By name, by run, by number; into the workspace, or elsewhere; and nothing that is in the way is lost.
#[test]
fn are_restored() {
    let bench = Bench::new();
    run(&bench, "r1", "t", "echo one > a; mkdir d; echo d > d/d");
    run(&bench, "r2", "t", "echo two > a; echo new > b");
    let made = refs(&bench, "t");
    let reference = made[0]["ref"].as_str().expect("ref");
    let seq = made[0]["seq"].to_string();
    for (n, which) in [vec![reference], vec!["--run", "r1"], vec!["--seq", &seq]].into_iter().enumerate() {
        let into = bench.path().join(format!("into{n}"));
        let args =
            [["workspace", "restore", "t"].as_slice(), &which, &["--into", into.to_str().expect("utf-8")]];
        json(&bench, &args.concat());
        assert_eq!(fs::read_to_string(into.join("a")).expect("restored"), "one\n", "{which:?}");
        assert!(into.join("d/d").exists() && !into.join("b").exists());
    }
    // A directory that has something else: exact puts it all aside, overlay only what is replaced.
    for (mode, b_stays) in [("exact", false), ("overlay", true)] {
        let into = bench.path().join(mode);
        fs::create_dir(&into).expect("made");
        fs::write(into.join("a"), "mine").expect("written");
        fs::write(into.join("b"), "mine, too").expect("written");
        let args =
            ["workspace", "restore", "t", reference, "--mode", mode, "--into", into.to_str().expect("utf-8")];
        let restored = json(&bench, &args);
        assert_eq!(fs::read_to_string(into.join("a")).expect("restored"), "one\n");
        assert_eq!(into.join("b").exists(), b_stays, "{mode}");
        let aside = std::path::PathBuf::from(restored["aside"].as_str().expect("aside"));
        assert_eq!(fs::read_to_string(aside.join("a")).expect("kept"), "mine");
        assert_eq!(aside.join("b").exists(), !b_stays, "{mode}");
        assert_eq!(json(&bench, &args)["unchanged"], mode == "exact" || b_stays, "{mode}");
    }
    // Into the thread's own workspace; its next run finds that.
    json(&bench, &["workspace", "restore", "t", reference]);
    assert_eq!(run(&bench, "r3", "t", "cat a; ls"), "one\na\nd\n");
    // Without a sandbox: the next run begins with it.
    destroy_sandbox(&bench, "t");
    let chosen = json(&bench, &["workspace", "restore", "t", "--run", "r2"]);
    assert_eq!(chosen["next"], true);
    assert_eq!(run(&bench, "r4", "t", "cat a b"), "two\nnew\n");
    let refused = |args: &[&str]| {
        let args: Vec<&str> = ["workspace", "restore", "t"].into_iter().chain(args.iter().copied()).collect();
        bench.outlast(args.iter().chain(&["--json"])).failure()
    };
    let unknown = format!("v1:sha256:{}", "0".repeat(64));
    assert_eq!(refused(&[&unknown, "--into", "/tmp/outlast-never"]).0, "snapshot_unavailable");
    assert_eq!(refused(&["--run", "none"]).0, "snapshot_unavailable");
    assert_eq!(refused(&["--seq", "1"]).0, "snapshot_unavailable", "a record of another kind");
    assert_eq!(refused(&["v2:sha256:00"]).0, "invalid_request");
}

/// No run works in the workspace when a restore begins, and one that begins meanwhile is told of.
#[test]
fn are_not_restored_beside_a_run() {
    let bench = Bench::new();
    run(&bench, "r1", "t", "echo one > a");
    let restore = ["workspace", "restore", "t", "--run", "r1", "--json"];
    let mut command = bench.command(restore);
    command.env("OUTLAST_FAILPOINT", "restore.done=stop");
    let restoring = Proc::new(command.spawn().expect("spawn"));
    eventually("in mid restore", || is_stopped(restoring.pid()).then_some(()));
    run(&bench, "r2", "t", "echo two > a");
    restoring.signal(Signal::CONT);
    let (code, message) = restoring.finish().failure();
    assert_eq!(code, "thread_busy");
    assert!(message.contains("\"r2\""), "{message}");
    let (go, wait) = (bench.path().join("go"), "until [ -e \"$0\" ]; do sleep 0.05; done");
    let args = ["run", "--run-id", "r3", "--thread", "t", "--", "sh", "-c", wait];
    let mut command = bench.command(args.iter().map(std::ffi::OsStr::new).chain([go.as_os_str()]));
    let running = Proc::new(command.spawn().expect("spawn"));
    eventually("the run", || bench.status("r3"));
    let (code, message) = bench.outlast(restore).failure();
    assert_eq!(code, "thread_busy");
    assert!(message.contains("\"r3\"") && message.contains("--into"), "{message}");
    fs::write(go, "").expect("written");
    assert_eq!(running.finish().code(), 0);
    assert_eq!(bench.outlast(restore).code(), 0);
}

/// A sandbox whose workspace cannot be snapshotted is not destroyed, unless a person insists.
#[test]
fn are_durable_before_the_sandbox_goes() {
    let bench = Bench::with_config(
        "[driver]\nlease = \"1500ms\"\n[sandbox]\nkeep_alive = \"0s\"\n[workspace]\ncheckpoint = \"idle\"\n",
    );
    run(&bench, "r", "t", "echo kept > file");
    assert_eq!(refs(&bench, "t").len(), 0, "only when it goes");
    let objects = bench.data_dir().join("objects");
    fs::remove_dir_all(&objects).expect("removed");
    fs::create_dir(&objects).expect("made");
    let root = rustix::process::geteuid().is_root();
    // A file in the place of a directory stops root, too.
    fs::write(objects.join("workspaces"), "in the way").expect("written");
    let result = json_of_failure(&bench, &["reclaim"]);
    assert_eq!(result["sandboxes"][0]["outcome"], "destroy-failed", "{result} (root: {root})");
    assert!(
        result["sandboxes"][0]["error"].as_str().is_some_and(|error| error.contains("snapshot")),
        "{result}"
    );
    assert_eq!(json(&bench, &["sandbox", "ls"])[0]["failedAttempts"], 1);
    fs::remove_file(objects.join("workspaces")).expect("removed");
    eventually("it is tried again", || {
        bench.outlast(["reclaim"]);
        json(&bench, &["sandbox", "ls"]).as_array().expect("list").is_empty().then_some(())
    });
    assert_eq!(refs(&bench, "t")[0]["trigger"], "idle");
    assert_eq!(run(&bench, "s", "t", "cat file"), "kept\n");
}

#[track_caller]
fn json_of_failure(bench: &Bench, args: &[&str]) -> Value {
    let failed = bench.outlast(args.iter().chain(&["--json"]));
    assert_eq!(failed.code(), 1, "{failed:?}");
    serde_json::from_str(&failed.stdout).expect("json")
}

/// With `manual`, nothing is snapshotted, and what was in a workspace goes with its sandbox.
#[test]
fn only_where_they_are_wanted() {
    let bench = Bench::with_config("[driver]\nlease = \"1500ms\"\n[workspace]\ncheckpoint = \"manual\"\n");
    run(&bench, "r", "t", "echo x > x");
    destroy_sandbox(&bench, "t");
    assert_eq!(run(&bench, "s", "t", "ls"), "");
    assert_eq!(objects(&bench, "workspaces"), [""; 0]);
    let excluded = Bench::with_config(
        "[driver]\nlease = \"1500ms\"\n[workspace]\nexclude = [\"*.log\", \"cache/\"]\ninclude_secrets = true\n",
    );
    run(&excluded, "r", "t", "mkdir cache; touch cache/x a.log b .env; echo '/c' > .outlastignore; touch c");
    destroy_sandbox(&excluded, "t");
    assert_eq!(run(&excluded, "s", "t", "ls -A"), ".env\n.outlastignore\nb\n");
}

/// What no session names is put aside, then deleted; what one names stays, and what is aside is still found.
#[test]
fn that_nothing_names_are_collected() {
    let bench = Bench::new();
    run(&bench, "r1", "t", "echo kept > kept");
    run(&bench, "r2", "gone", "echo gone > gone");
    let reference = refs(&bench, "gone")[0]["ref"].as_str().expect("ref").to_owned();
    let now = ["--grace", "0s", "--quarantine", "0s"];
    let gc = |more: &[&str]| json(&bench, &[["workspace", "gc"].as_slice(), more].concat());
    assert_eq!(gc(&now)["quarantined"], 0, "both are named");
    bench.outlast(["session", "rm", "gone", "--yes"]).ok();
    assert_eq!(gc(&[])["quarantined"], 0, "too young");
    assert_eq!(gc(&["--dry-run", "--grace", "0s"])["quarantined"], 2);
    let aside = gc(&["--grace", "0s"]);
    assert_eq!((&aside["quarantined"], &aside["liveRefs"]), (&2.into(), &1.into()));
    assert_eq!(objects(&bench, "workspaces/quarantine").len(), 2);
    json(&bench, &["workspace", "show", &reference]);
    assert_eq!(gc(&["--grace", "0s"])["deleted"], 0, "not aside for long enough");
    assert_eq!(gc(&now)["deleted"], 2);
    assert_eq!(bench.outlast(["workspace", "show", &reference]).code(), 1);
    destroy_sandbox(&bench, "t");
    assert_eq!(run(&bench, "r3", "t", "cat kept"), "kept\n");
}

/// Nobody but the owner reads what is restored for a run before its modes are set.
#[test]
fn keep_their_modes() {
    let bench = Bench::new();
    run(&bench, "r1", "t", "mkdir closed; echo x > closed/x; chmod 400 closed/x; chmod 500 closed");
    destroy_sandbox(&bench, "t");
    run(&bench, "r2", "t", "true");
    let work = fs::read_dir(bench.data_dir().join("sandboxes"))
        .expect("sandboxes")
        .flatten()
        .map(|entry| entry.path().join("work/closed"))
        .find(|path| path.exists())
        .expect("restored");
    assert_eq!(fs::metadata(&work).expect("there").permissions().mode() & 0o777, 0o500);
    fs::set_permissions(&work, fs::Permissions::from_mode(0o700)).expect("opened again");
}
