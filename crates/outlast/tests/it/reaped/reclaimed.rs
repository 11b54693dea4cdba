//! The end of sandboxes.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{entry, leave, reap, until_ended};
use crate::support::{Bench, eventually, kill9};

fn config(sandbox: &str) -> String {
    format!("[driver]\nlease = \"1500ms\"\n[sandbox]\n{sandbox}\n")
}

fn sandboxes(bench: &Bench) -> Vec<Value> {
    serde_json::from_str(&bench.outlast(["sandbox", "ls", "--json"]).ok()).expect("json")
}

fn dirs(bench: &Bench) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.data_dir().join("sandboxes")).expect("sandboxes").flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn a_sandbox_of_one_run_goes_with_it() {
    let bench = Bench::with_config(&config("reuse = \"none\""));
    bench.outlast(["run", "--run-id", "r", "--thread", "t", "--", "true"]).ok();
    assert_eq!(sandboxes(&bench)[0]["threadId"], "t");
    let result: Value = serde_json::from_str(&bench.outlast(["reclaim", "--json"]).ok()).expect("json");
    assert_eq!((&result["considered"], &result["destroyed"]), (&1.into(), &1.into()));
    assert_eq!(result["sandboxes"][0]["outcome"], "destroyed");
    assert_eq!((sandboxes(&bench).len(), dirs(&bench).len()), (0, 0));
    let again: Value = serde_json::from_str(&bench.outlast(["reclaim", "--json", "r"]).ok()).expect("json");
    assert_eq!(again["outcome"], "already-gone");
    // The thread goes on in another.
    bench.outlast(["run", "--run-id", "s", "--thread", "t", "--", "true"]).ok();
    assert_ne!(bench.record("s")["instanceId"], bench.record("r")["instanceId"]);
}

#[test]
fn a_threads_sandbox_waits_for_its_next_run() {
    let bench = Bench::with_config(&config("keep_alive = \"1s\""));
    bench.outlast(["run", "--run-id", "r", "--thread", "t", "--", "sh", "-c", "echo kept > file"]).ok();
    let kept: Value = serde_json::from_str(&bench.outlast(["reclaim", "--json", "r"]).ok()).expect("json");
    assert_eq!(kept["outcome"], "kept");
    assert!(kept["remaining"].as_u64().is_some_and(|time| time <= 1000), "{kept}");
    let said = bench.outlast(["run", "--run-id", "s", "--thread", "t", "--", "cat", "file"]).ok();
    assert_eq!(said, "kept\n");
    eventually("its time is up", || {
        bench.outlast(["reclaim"]).ok();
        dirs(&bench).is_empty().then_some(())
    });
}

/// One that is shared by two runs of a thread, of which the first is expired, is not destroyed under the second.
#[test]
fn not_while_another_run_of_it_lives() {
    let bench = Bench::with_config(&config("keep_alive = \"1h\""));
    leave(&bench, "first", &["--thread", "t", "--detach-ttl", "1ms"], "echo kept > file; sleep 1000");
    eventually("its file", || {
        dirs(&bench).first().map(|dir| dir.join("work/file")).filter(|path| path.exists())
    });
    assert_eq!(entry(&reap(&bench, &[]), "first")["outcome"], "expired");
    leave(&bench, "second", &["--thread", "t"], "cat file; sleep 1000");
    assert_eq!(bench.record("second")["instanceId"], bench.record("first")["instanceId"]);
    let refused = bench.outlast(["reclaim", "--json", "first"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stdout.contains("\"in-use\"") && refused.stderr.contains("second"), "{refused:?}");
    let id = sandboxes(&bench)[0]["instanceId"].as_str().expect("id").to_owned();
    let forced = bench.outlast(["sandbox", "rm", &id]);
    assert_eq!(forced.code(), 1);
    assert!(forced.stdout.contains("in use by run second"), "{}", forced.stdout);
    assert_eq!(sandboxes(&bench)[0]["state"], "live");
    bench.outlast(["cancel", "second"]).ok();
    assert_eq!(Bench::text(&bench.check_ended("second")), "kept\n");
    bench.outlast(["sandbox", "rm", &id]).ok();
    assert_eq!(dirs(&bench), [] as [PathBuf; 0]);
}

/// Destroying fails three times; it is seen, and tried until it is gone.
#[test]
fn tried_until_it_is_gone() {
    let Some(ordinary) = crate::support::Ordinary::new() else { return };
    let bench = ordinary.bench(&config("reuse = \"none\""));
    bench.outlast(["run", "--run-id", "r", "--", "true"]).ok();
    let sandbox = dirs(&bench).pop().expect("a sandbox");
    // Another user's file in it: the ordinary user cannot remove what is in there.
    let foreign = sandbox.join("work/foreign");
    fs::create_dir(&foreign).expect("directory");
    fs::write(foreign.join("file"), "").expect("file");
    for attempt in 1..=3 {
        let failed = bench.outlast([
            "sandbox",
            "rm",
            "--json",
            sandbox.file_name().expect("name").to_str().expect("utf-8"),
        ]);
        assert_eq!(failed.code(), 1, "{failed:?}");
        let seen = &sandboxes(&bench)[0];
        assert_eq!((&seen["state"], &seen["failedAttempts"]), (&"destroying".into(), &attempt.into()));
        assert!(
            seen["error"]
                .as_str()
                .is_some_and(|error| error.contains("denied") || error.contains("permitted")),
            "{seen}"
        );
        assert!(seen["reclaimAt"].as_u64().is_some());
    }
    let shown = bench.outlast(["sandbox", "ls"]).ok();
    assert!(shown.contains("3 failed"), "{shown}");
    // The thread does not find it any more, and goes on at once.
    let trash: Vec<PathBuf> = dirs(&bench);
    fs::remove_dir_all(trash[0].join("work/foreign")).expect("removed");
    bench.outlast(["sandbox", "rm", sandbox.file_name().expect("name").to_str().expect("utf-8")]).ok();
    assert_eq!((sandboxes(&bench).len(), dirs(&bench).len()), (0, 0));
}

/// What the user lent outlives cancel, reclaim, `sandbox rm` and the hunt for orphans.
#[test]
fn a_lent_directory_stays() {
    let bench = Bench::with_config(&config("reuse = \"none\""));
    let lent = bench.workspace();
    fs::write(lent.join("mine"), "precious").expect("file");
    let lent_text = lent.to_str().expect("utf-8");
    for run in ["cancelled", "reclaimed", "removed"] {
        leave(&bench, run, &["--workspace", lent_text], "echo hi >> made; sleep 1000");
        eventually("it works there", || lent.join("made").exists().then_some(()));
        assert_eq!(sandboxes(&bench)[0]["lent"], true);
        bench.outlast(["cancel", run]).ok();
        match run {
            "reclaimed" => drop(bench.outlast(["reclaim", run]).ok()),
            "removed" => {
                let id = sandboxes(&bench)[0]["instanceId"].as_str().expect("id").to_owned();
                bench.outlast(["sandbox", "rm", &id]).ok();
            }
            _ => drop(bench.outlast(["reclaim"]).ok()),
        }
        bench.outlast(["sandbox", "orphans", "--destroy", "--grace", "0s"]).ok();
        assert_eq!(dirs(&bench), [] as [PathBuf; 0], "{run}");
        assert_eq!(fs::read_to_string(lent.join("mine")).expect("mine"), "precious");
        fs::remove_file(lent.join("made")).expect("made");
    }
}

fn orphans(bench: &Bench, flags: &[&str]) -> Vec<Value> {
    let mut args = vec!["sandbox", "orphans", "--json"];
    args.extend(flags);
    serde_json::from_str(&bench.outlast(args).ok()).expect("json")
}

/// Put aside first, destroyed later; what is not ours is not even listed.
#[test]
fn what_no_record_knows_of() {
    let bench = Bench::with_config(&config("keep_alive = \"none\""));
    bench.outlast(["run", "--run-id", "r", "--", "true"]).ok();
    let known = dirs(&bench).pop().expect("a sandbox");
    let name = known.file_name().expect("name").to_str().expect("utf-8").to_owned();
    let (label, _) = name.split_once('-').expect("a label");
    let ours = format!("{label}-{}", "0123456789abcdef".repeat(2));
    let others = [
        format!("{}-{}", "0".repeat(16), "ab".repeat(16)),
        "ab".repeat(16),
        "notes".to_owned(),
        "Zcaps".to_owned(),
    ];
    let root = bench.data_dir().join("sandboxes");
    for dir in others.iter().chain([&ours]) {
        fs::create_dir_all(root.join(dir).join("runs")).expect("directory");
        fs::write(root.join(dir).join("file"), "").expect("file");
    }
    assert_eq!(orphans(&bench, &["--destroy"])[0]["state"], "too-young");
    assert!(root.join(&ours).exists());
    let found = orphans(&bench, &["--grace", "0s"]);
    assert_eq!(
        (found.len(), &found[0]["state"], &found[0]["instanceId"]),
        (1, &"unrecorded".into(), &Value::from(ours.as_str()))
    );
    assert_eq!(orphans(&bench, &["--destroy", "--grace", "0s"])[0]["state"], "quarantined");
    let aside = root.join(format!(".quarantine-{ours}"));
    assert!(aside.join("file").exists() && !root.join(&ours).exists());
    assert_eq!(orphans(&bench, &["--destroy"])[0]["state"], "quarantined", "its time begins anew");
    assert_eq!(orphans(&bench, &["--destroy", "--grace", "0s"])[0]["state"], "destroyed");
    assert!(!aside.exists());
    assert_eq!(orphans(&bench, &["--destroy", "--grace", "0s"]), [] as [Value; 0]);
    for dir in &others {
        assert!(root.join(dir).join("file").exists(), "{dir} is not ours");
    }
    assert!(known.exists());
}

/// The maker of a sandbox dies, or is frozen until its run has been ended and its intent given up, at each step of making
/// it: what it leaves is found.
#[test]
fn made_after_it_was_given_up() {
    for point in ["ensure.bind.after", "ensure.created"] {
        let bench = Bench::with_config("[driver]\nlease = \"300ms\"\n[sandbox]\nreuse = \"none\"\n");
        let mut command = bench.command(["run", "-d", "--run-id", "r", "--", "sleep", "1000"]);
        command.env("OUTLAST_FAILPOINT", format!("{point}=stop"));
        let maker = crate::support::Proc::new(command.spawn().expect("spawn"));
        eventually("it is frozen", || crate::support::is_stopped(maker.pid()).then_some(()));
        eventually("its run is ended by another", || {
            bench.outlast(["cancel", "r"]);
            (bench.status("r").as_deref() == Some("aborted")).then_some(())
        });
        bench.outlast(["reclaim"]).ok();
        maker.signal(rustix::process::Signal::CONT);
        drop(maker.finish());
        for _ in 0..2 {
            orphans(&bench, &["--destroy", "--grace", "0s"]);
        }
        assert_eq!((dirs(&bench).len(), bench.shims().len()), (0, 0), "{point}");
        assert_eq!(sandboxes(&bench), [] as [Value; 0]);
    }
}

/// A destroyer that was frozen, and one that was killed, are succeeded.
#[test]
fn a_destroyer_that_died() {
    for point in ["reclaim.begin.after", "reclaim.destroyed"] {
        let bench = Bench::with_config(&config("reuse = \"none\""));
        bench.outlast(["run", "--run-id", "r", "--", "true"]).ok();
        let mut command = bench.command(["reclaim"]);
        command.env("OUTLAST_FAILPOINT", format!("{point}=stop"));
        let destroyer = crate::support::Proc::new(command.spawn().expect("spawn"));
        eventually("it is frozen", || crate::support::is_stopped(destroyer.pid()).then_some(()));
        assert_eq!(sandboxes(&bench)[0]["state"], "destroying");
        kill9(destroyer.pid());
        drop(destroyer);
        bench.outlast(["reclaim"]).ok();
        assert_eq!((sandboxes(&bench).len(), dirs(&bench).len()), (0, 0), "{point}");
    }
}

#[test]
fn what_is_not_there() {
    let bench = Bench::new();
    let refused = bench.outlast(["reclaim", "none"]);
    assert!(refused.code() == 1 && refused.stderr.contains("outlast ps -a"), "{}", refused.stderr);
    let refused = bench.outlast(["sandbox", "rm", "none"]);
    assert!(refused.code() == 1 && refused.stderr.contains("outlast sandbox ls"), "{}", refused.stderr);
    assert_eq!(bench.outlast(["sandbox", "ls"]).stderr, "outlast: no sandboxes\n");
    leave(&bench, "r", &[], "true");
    until_ended(&bench, "r");
    let refused = bench.outlast(["reclaim", "r"]);
    assert!(refused.code() == 1 && refused.stderr.contains("in use by run r"), "{}", refused.stderr);
}
