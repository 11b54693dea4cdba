//! The data directory, the store, the launch, the agents.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::report::Report;
use crate::support::{Bench, Ordinary, gated_agent};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("directory")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn private(bench: &Bench) {
    fs::set_permissions(bench.data_dir(), fs::Permissions::from_mode(0o700)).expect("permissions");
}

#[test]
fn a_place_where_runs_work() {
    let bench = Bench::new();
    private(&bench);
    let finished = bench.outlast(["doctor", "--json"]);
    let report = Report::of(&finished);
    let start = ["data_directory", "store", "objects", "shim", "fence", "isolation", "machine"];
    assert_eq!(report.names()[..start.len()], start);
    assert!(report.names().ends_with(&["service", "container", "memory"]), "{:?}", report.names());
    assert!(report.check("store").1.starts_with("SQLite, tables of version "), "{:?}", report.check("store"));
    for check in ["store", "objects", "shim", "machine"] {
        assert_eq!(report.check(check).0, "ok", "{:?}", report.check(check));
    }
    assert_eq!(report.check("isolation").0, "warning", "never said to separate");
    assert_eq!(report.about("agent", Some("demo")).0, "ok");
    assert_eq!(finished.code(), 0, "{}", finished.stdout);
    let left: Vec<String> =
        names(&bench.data_dir()).into_iter().filter(|name| name.contains("doctor")).collect();
    assert_eq!(left, [""; 0], "the trial launch leaves nothing");
    assert!(names(&bench.data_dir().join("owners")).is_empty(), "nor does the look at the store");
    // For people: the same checks, a line each.
    let lines = bench.outlast(["doctor"]).ok();
    assert_eq!(lines.lines().count(), report.names().len(), "{lines}");
    assert!(lines.lines().any(|line| line.starts_with("ok       store: SQLite")), "{lines}");
}

#[test]
fn the_fence_that_it_names_is_the_one_that_a_run_gets() {
    let ordinary = Ordinary::new();
    for fence in ["auto", "pid-namespace", "cgroup", "subreaper"] {
        let config = format!("[sandbox]\nfence = \"{fence}\"\n");
        let ordinary = ordinary.as_ref().map(|ordinary| ordinary.bench(&config));
        for bench in [Some(Bench::with_config(&config)), ordinary].into_iter().flatten() {
            let finished = bench.outlast(["doctor", "--json"]);
            let report = Report::of(&finished);
            let (level, finding, _) = report.check("fence");
            let run = bench.outlast(bench.run_args("r", &["-d"], &gated_agent(0, 0, 0)));
            let got = (run.code() == 0).then(|| bench.fence("r").replace('_', "-"));
            match got {
                Some(got) => {
                    assert!(finding.starts_with(&format!("{got}: ")), "the run got {got}: {finding}");
                    assert_eq!(level == "ok", got != "subreaper", "{finding}");
                }
                None => {
                    assert!(finding.starts_with(&format!("{fence} cannot be had: ")), "{finding}");
                    assert_eq!(level, "problem");
                    let why = finding.rsplit(": ").next().expect("why");
                    assert!(run.stderr.contains(why), "{why:?} in {}", run.stderr);
                }
            }
            bench.open_gate();
        }
    }
}

#[test]
fn what_does_not_work_is_a_problem() {
    let bench = Bench::with_config(
        r#"
        [agents.absent]
        kind = "command"
        argv = ["there-is-no-such-program"]
        [agents.locked]
        kind = "command"
        argv = ["locked"]
        [agents.keyed]
        kind = "command"
        argv = ["tool"]
        pass_env = ["THE_KEY", "THE_OTHER_KEY"]
        [agents.fine]
        kind = "command"
        argv = ["tool"]
        pass_env = ["THE_KEY"]
        [agents.elsewhere]
        kind = "command"
        argv = ["./tool"]
        "#,
    );
    private(&bench);
    let programs = bench.path().join("programs");
    fs::create_dir(&programs).expect("directory");
    for (name, mode) in [("tool", 0o755), ("locked", 0o644)] {
        fs::write(programs.join(name), "").expect("program");
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(mode)).expect("mode");
    }
    fs::write(
        bench.data_dir().join("outlast.db"),
        "this is no database, but long enough to be taken for one".repeat(99),
    )
    .expect("database");
    let mut command = bench.command(["doctor", "--json"]);
    command.env("PATH", &programs).env("THE_KEY", "sesame-of-this-test").env_remove("THE_OTHER_KEY");
    let finished = crate::support::Proc::new(command.spawn().expect("spawn")).finish();
    let report = Report::of(&finished);
    assert_eq!(finished.code(), 1);
    let agent = |name: &str| report.about("agent", Some(name));
    for (name, level, says) in [
        ("absent", "problem", "there-is-no-such-program is not there"),
        ("locked", "problem", "programs/locked is no program that this user may execute"),
        ("keyed", "problem", "not set: THE_OTHER_KEY"),
        ("fine", "ok", "programs/tool; gets THE_KEY"),
        ("elsewhere", "warning", "could not tell: ./tool"),
        ("codex", "ok", "not installed: codex"),
        ("claude-code", "ok", "not installed: claude"),
        ("demo", "ok", "outlast"),
    ] {
        assert_eq!(agent(name).0, level, "{name}: {:?}", agent(name));
        assert!(agent(name).1.contains(says), "{says:?}: {:?}", agent(name));
    }
    assert!(
        !finished.stdout.contains("sesame") && !finished.stderr.contains("sesame"),
        "names, never values"
    );
    let (level, finding, _) = report.check("store");
    assert_eq!(level, "problem");
    assert!(finding.contains("outlast.db"), "{finding}");
    assert_eq!(report.check("shim").0, "ok", "the launch does not need the store");
}

#[test]
fn a_data_directory_that_cannot_be_one() {
    let bench = Bench::new();
    fs::write(bench.path().join("file"), "").expect("file");
    let finished = bench.outlast(["doctor", "--json", "--data-dir", "file/below"]);
    let report = Report::of(&finished);
    assert_eq!(report.check("data_directory").0, "problem");
    for check in ["store", "objects", "shim", "fence"] {
        let (level, finding, _) = report.check(check);
        assert_eq!(level, "warning");
        assert!(finding.starts_with("could not tell: "), "{finding}");
    }
}

#[test]
fn what_is_not_there_yet_is_not_made() {
    let bench = Bench::new();
    let finished = bench.outlast(["doctor", "--json", "--data-dir", "new/data"]);
    let report = Report::of(&finished);
    assert!(report.check("data_directory").1.contains("the first run makes it"), "{}", finished.stdout);
    assert_eq!(report.check("shim").0, "ok", "{}", finished.stdout);
    for check in ["store", "objects", "machine"] {
        assert!(report.check(check).1.contains("the first run"), "{:?}", report.check(check));
    }
    assert!(!bench.path().join("new").exists());
}

#[test]
fn object_storage_is_tried_out() {
    let bench = Bench::new();
    fs::write(bench.path().join("file"), "").expect("file");
    fs::create_dir(bench.path().join("made")).expect("directory");
    for (place, level, says) in [
        ("made", "ok", "made; written, read and deleted an object"),
        ("not-made", "ok", "not-made; the first run makes it"),
        ("file", "problem", "file is no directory"),
        ("ftp://somewhere", "problem", "name a directory, or a bucket"),
        ("s3://", "problem", "s3://"),
    ] {
        let mut command = bench.command(["doctor", "--json"]);
        command.env("OUTLAST_OBJECTS", place);
        let finished = crate::support::Proc::new(command.spawn().expect("spawn")).finish();
        let report = Report::of(&finished);
        let (found, finding, _) = report.check("objects");
        assert_eq!(found, level, "{place}: {finding}");
        assert!(finding.contains(says), "{place}: {finding}");
        assert_eq!(finished.code(), i32::from(level == "problem"), "{place}: {}", finished.stdout);
    }
    assert_eq!(names(&bench.path().join("made")), [""; 0], "nothing is left");
    assert!(!bench.path().join("not-made").exists());
}

#[test]
fn nothing_is_left_in_a_directory_of_another_user() {
    let Some(ordinary) = Ordinary::new() else { return };
    let theirs = ordinary.bench("");
    // Root could write there; what it made the owner could not use.
    let root = Bench::new();
    let before = names(&theirs.data_dir());
    let finished =
        root.outlast(["doctor", "--json", "--data-dir", theirs.data_dir().to_str().expect("utf-8")]);
    let report = Report::of(&finished);
    let (level, finding, advice) = report.check("data_directory");
    assert_eq!(level, "warning", "{finding}");
    assert!(
        finding.contains("belongs to user 65534") && advice.contains("sudo -u '#65534'"),
        "{finding} {advice}"
    );
    for check in ["store", "shim", "fence"] {
        assert!(report.check(check).1.starts_with("could not tell"), "{:?}", report.check(check));
    }
    assert_eq!(names(&theirs.data_dir()), before);
    // And the other way round it is a problem.
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let finished =
        theirs.outlast(["doctor", "--json", "--data-dir", root.data_dir().to_str().expect("utf-8")]);
    assert_eq!(Report::of(&finished).check("data_directory").0, "problem", "{}", finished.stdout);
}

#[test]
fn a_database_elsewhere_that_does_not_answer() {
    let bench = Bench::new();
    let url = "postgres://me:sesame@127.0.0.1:1/outlast";
    let finished = bench.outlast(["doctor", "--json", "--store", url]);
    let report = Report::of(&finished);
    assert_eq!(report.check("store").0, "problem");
    assert!(
        !finished.stdout.contains("sesame") && !finished.stderr.contains("sesame"),
        "{}",
        finished.stdout
    );
    assert!(!bench.data_dir().join("outlast.db").exists(), "the database is not here");
    assert_eq!(report.check("shim").0, "ok");
}
