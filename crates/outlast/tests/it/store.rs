//! The store is locked, damaged, of another version, or cannot be had at all.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;

use crate::support::{Bench, Finished, Ordinary, Proc, eventually, eventually_within, numbered_text};

fn database(bench: &Bench) -> PathBuf {
    bench.data_dir().join("outlast.db")
}

/// Keeps every other connection from writing until it is dropped.
pub fn lock(bench: &Bench) -> Connection {
    let connection = Connection::open(database(bench)).expect("open");
    connection.busy_timeout(Duration::from_secs(30)).expect("timeout");
    connection.execute_batch("BEGIN EXCLUSIVE").expect("lock");
    connection
}

/// An agent that says in a file of its own what it prints.
const AGENT: &str =
    "i=0; while [ ! -e go ]; do echo \"line $i\"; echo $i >> own; i=$((i+1)); sleep 0.05; done";

fn run_args(bench: &Bench, run: &str) -> Vec<String> {
    let workspace = bench.workspace();
    let workspace = workspace.to_str().expect("utf-8");
    ["run", "--json", "--run-id", run, "--workspace", workspace, "--", "sh", "-c", AGENT]
        .map(str::to_owned)
        .to_vec()
}

/// How many lines the agent has noted in its own file.
fn own_lines(bench: &Bench) -> usize {
    fs::read_to_string(bench.workspace().join("own")).map_or(0, |text| text.lines().count())
}

fn wait_for_holding(driver: &Proc) {
    eventually("the driver says that it holds", || driver.stderr().contains("holding").then_some(()));
    let said = driver.stderr();
    assert!(said.contains("outlast.db is locked by another process"), "{said}");
    assert!(said.contains("the agent works on"), "{said}");
}

#[track_caller]
fn check_whole(bench: &Bench, ended: &Finished) {
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let log = bench.check_ended("r");
    let lines = u32::try_from(own_lines(bench)).expect("lines");
    assert_eq!(Bench::text(&log), numbered_text(lines), "every line once, in order");
    assert_eq!(ended.stdout, bench.outlast(["logs", "--json", "r"]).ok());
    assert!(ended.stderr.contains("available again"), "{}", ended.stderr);
}

#[test]
fn locked_while_the_agent_works() {
    let bench = Bench::new();
    let mut driver = bench.spawn(run_args(&bench, "r"));
    driver.wait_for("line 2");
    let locked = lock(&bench);
    let before = own_lines(&bench);
    wait_for_holding(&driver);
    // Beyond the lease, which nobody can renew now.
    eventually_within(Duration::from_secs(30), "the agent does not notice", || {
        (own_lines(&bench) > before + 60).then_some(())
    });
    assert!(!driver.has_ended(), "{}", driver.stderr());
    let shown = driver.stdout();
    drop(locked);
    let next = format!("line {}", own_lines(&bench));
    driver.wait_for(&next);
    assert!(driver.stdout().starts_with(&shown));
    fs::write(bench.workspace().join("go"), "").expect("write");
    check_whole(&bench, &driver.finish());
}

#[test]
fn locked_when_the_agent_ends() {
    let bench = Bench::new();
    let mut driver = bench.spawn(run_args(&bench, "r"));
    driver.wait_for("line 2");
    let locked = lock(&bench);
    fs::write(bench.workspace().join("go"), "").expect("write");
    wait_for_holding(&driver);
    drop(locked);
    check_whole(&bench, &driver.finish());
}

#[test]
fn locked_when_the_run_starts() {
    let bench = Bench::new();
    bench.outlast(["ps"]).ok();
    let locked = lock(&bench);
    let driver = bench.spawn(run_args(&bench, "r"));
    wait_for_holding(&driver);
    assert_eq!(own_lines(&bench), 0, "nothing is launched that is not recorded");
    drop(locked);
    eventually("the agent works", || (own_lines(&bench) > 3).then_some(()));
    fs::write(bench.workspace().join("go"), "").expect("write");
    check_whole(&bench, &driver.finish());
}

/// Every command, with the exit status that it has when Outlast itself cannot go on.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["run", "--run-id", "new", "--", "true"], 125),
    (&["run", "-d", "--run-id", "new", "--", "true"], 125),
    (&["attach", "r"], 125),
    (&["ps"], 1),
    (&["ps", "-a", "--json"], 1),
    (&["show", "r"], 1),
    (&["show", "--messages", "r"], 1),
    (&["logs", "r"], 1),
    (&["cancel", "r"], 1),
];

/// Every command fails, and says all of this.
#[track_caller]
fn check_refused(bench: &Bench, words: &[&str]) {
    for (args, status) in COMMANDS {
        let ended = bench.outlast(*args);
        assert_eq!(ended.code(), *status, "{args:?}: {}{}", ended.stdout, ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{args:?}: {word:?} in {:?}", ended.stderr);
        }
    }
}

/// A bench with a run that has ended, and no process that has its database open.
fn with_a_run() -> Bench {
    let bench = Bench::new();
    let script = "i=0; while [ $i -lt 2000 ]; do echo \"line $i\"; i=$((i+1)); done";
    let ended = bench.outlast(["run", "--run-id", "r", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    // Everything is in the file itself, and nothing in the log beside it.
    let connection = Connection::open(database(&bench)).expect("open");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("checkpoint");
    bench
}

#[test]
fn a_damaged_file() {
    let whole = fs::read(database(&with_a_run())).expect("read");
    for damage in ["header", "first page only", "cut in half", "garbage"] {
        eprintln!("damage: {damage}");
        let bench = with_a_run();
        let path = database(&bench);
        let file = fs::File::options().write(true).open(&path).expect("open");
        match damage {
            "header" => file.write_all_at(&[0xA5; 40], 0).expect("write"),
            "first page only" => file.set_len(4096).expect("cut"),
            "cut in half" => file.set_len(whole.len() as u64 / 2 / 4096 * 4096).expect("cut"),
            _ => {
                let garbage: Vec<u8> = (0..whole.len()).map(|n| (n * 131 + n / 7) as u8).collect();
                file.write_all_at(&garbage, 0).expect("write");
            }
        }
        drop(file);
        let damaged = fs::read(&path).expect("read");
        let path = path.to_str().expect("utf-8").to_owned();
        check_refused(&bench, &[&path, "damaged", "restore", "backup"]);
        assert!(fs::read(&path).expect("read") == damaged, "{damage}: what is damaged is left as it is");
    }
}

#[test]
fn a_file_of_a_newer_version() {
    let bench = with_a_run();
    let connection = Connection::open(database(&bench)).expect("open");
    connection.execute("UPDATE meta SET schema_version = 9999", []).expect("update");
    drop(connection);
    check_refused(&bench, &[database(&bench).to_str().expect("utf-8"), "version 9999", "newer outlast"]);
}

#[test]
fn a_file_of_somebody_else() {
    let bench = Bench::new();
    let connection = Connection::open(database(&bench)).expect("open");
    connection.execute_batch("CREATE TABLE songs (title TEXT)").expect("create");
    drop(connection);
    check_refused(&bench, &[database(&bench).to_str().expect("utf-8"), "not a database of Outlast"]);
}

#[test]
fn a_data_directory_that_may_not_be_written() {
    // Root may write everywhere, so this takes somebody else.
    let ordinary = Ordinary::new();
    let bench = match &ordinary {
        Some(ordinary) => ordinary.bench("[driver]\nlease = \"1500ms\"\n"),
        None => Bench::new(),
    };
    let data_dir = bench.data_dir();
    fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o555)).expect("permissions");
    check_refused(&bench, &[data_dir.to_str().expect("utf-8"), "ermission denied"]);
    fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o755)).expect("permissions");
}

#[test]
fn a_data_directory_that_is_a_file() {
    let bench = Bench::new();
    fs::remove_dir_all(bench.data_dir()).expect("remove");
    fs::write(bench.data_dir(), "a file").expect("write");
    check_refused(&bench, &["cannot make the directory", bench.data_dir().to_str().expect("utf-8")]);
    assert_eq!(fs::read_to_string(bench.data_dir()).expect("read"), "a file");
}
