//! Bodies that are too large for the database.

use super::{json, objects, run};
use crate::support::Bench;

/// One line of 700 000 characters, which makes an event and a message that are too large.
const LARGE: &str = "head -c 700000 /dev/zero | tr '\\0' x; echo";

/// The database stays lean, and whoever reads gets everything.
#[test]
fn are_elsewhere_and_come_back_whole() {
    let bench = Bench::new();
    let printed = run(&bench, "r", "t", LARGE);
    assert_eq!(printed.trim_end().len(), 700_000, "whoever watches gets it whole");
    let bodies = objects(&bench, "sessions");
    assert_eq!(bodies.len(), 2, "an event and a message: {bodies:?}");
    let id = json(&bench, &["session", "show", "t"])["sessionId"].as_str().expect("id").to_owned();
    assert!(bodies.iter().all(|key| key.starts_with(&format!("sessions/{id}/blobs/"))), "{bodies:?}");
    let database = rusqlite::Connection::open(bench.data_dir().join("outlast.db")).expect("database");
    for query in ["SELECT max(length(json)) FROM events", "SELECT max(length(body)) FROM records"] {
        let largest: i64 = database.query_row(query, [], |row| row.get(0)).expect("a number");
        assert!(largest < 10_000, "{query}: {largest}");
    }
    let log = bench.check_ended("r");
    assert_eq!(Bench::text(&log).trim_end().len(), 700_000);
    bench.outlast(["verify", "r"]).ok();
    assert_eq!(bench.messages("r")[0].content.as_deref().map(|text| text.trim_end().len()), Some(700_000));
    // The next turn adds to the same thread.
    run(&bench, "s", "t", "echo small");
    assert_eq!(json(&bench, &["session", "show", "t"])["messages"], 2);
}

/// A body that is missing or damaged is said, and the rest is shown.
#[test]
fn that_are_missing_are_said() {
    let bench = Bench::new();
    run(&bench, "r", "t", &format!("echo before; {LARGE}; echo after"));
    let root = bench.data_dir().join("objects");
    for (n, key) in objects(&bench, "sessions").iter().enumerate() {
        let path = root.join(key);
        if n == 0 {
            std::fs::remove_file(path).expect("removed");
        } else {
            let mut body = std::fs::read(&path).expect("read");
            let middle = body.len() / 2;
            body[middle] ^= 1;
            std::fs::write(path, body).expect("damaged");
        }
    }
    let log = bench.log("r");
    let text = Bench::text(&log);
    assert!(text.starts_with("before\n") && text.ends_with("after\n"), "{}", &text[text.len() - 200..]);
    assert!(text.contains("bytes are missing"), "a placeholder stands in its place");
    let shown = bench.outlast(["session", "show", "t", "--messages"]);
    assert!(shown.stdout.contains("are missing"), "{}", shown.stdout);
    assert!(shown.stderr.contains("message/r/"), "{}", shown.stderr);
    let file = bench.path().join("t.jsonl");
    let args = ["session", "export", "t", "--json", "--output", file.to_str().expect("utf-8")];
    let (code, message) = bench.outlast(args).failure();
    assert_eq!(code, "body_unavailable");
    assert!(message.contains("--incomplete"), "{message}");
    assert!(!file.exists());
    let exported: serde_json::Value =
        serde_json::from_str(&bench.outlast(args.iter().chain(&["--incomplete"])).ok()).expect("json");
    assert_eq!(exported["incomplete"], 1);
}

/// Orphans go once they are old enough; what is in use, is foreign or too young stays.
#[test]
fn to_which_nothing_points_are_collected() {
    let bench = Bench::new();
    run(&bench, "r", "t", LARGE);
    let id = json(&bench, &["session", "show", "t"])["sessionId"].as_str().expect("id").to_owned();
    let blobs = bench.data_dir().join(format!("objects/sessions/{id}/blobs"));
    let orphan = "ab".repeat(32);
    for name in [orphan.as_str(), "notes.txt"] {
        std::fs::write(blobs.join(name), "left behind").expect("written");
    }
    let result = json(&bench, &["session", "gc", "t"]);
    assert_eq!(
        (&result["scanned"], &result["referenced"], &result["kept"]),
        (&4.into(), &2.into(), &2.into())
    );
    let now = &["--grace", "0s"];
    let dry = json(&bench, &[["session", "gc", "t", "--dry-run"].as_slice(), now].concat());
    let key = format!("sessions/{id}/blobs/{orphan}");
    assert_eq!(dry["deletedKeys"], serde_json::json!([key]));
    assert!(blobs.join(&orphan).exists(), "only told");
    let all = json(&bench, &[["session", "gc", "--all"].as_slice(), now].concat());
    assert_eq!(all[0]["deletedKeys"], serde_json::json!([key]));
    assert!(!blobs.join(&orphan).exists() && blobs.join("notes.txt").exists());
    assert_eq!(bench.check_ended("r").len(), bench.log("r").len());
    let nothing = json(&bench, &[["session", "gc", "t"].as_slice(), now].concat());
    assert_eq!((&nothing["deleted"], &nothing["referenced"]), (&0.into(), &2.into()));
}

/// Somebody else looks after the session: it is said who, and nothing is done.
#[test]
fn are_collected_by_one_at_a_time() {
    let bench = Bench::new();
    run(&bench, "r", "t", LARGE);
    let id = json(&bench, &["session", "show", "t"])["sessionId"].as_str().expect("id").to_owned();
    let blob = bench.data_dir().join(format!("objects/sessions/{id}/blobs/{}", "cd".repeat(32)));
    std::fs::write(&blob, "left behind").expect("written");
    let mut holder = bench.command(["session", "gc", "t", "--grace", "0s"]);
    holder.env("OUTLAST_FAILPOINT", "gc.condemned=stop");
    let holder = crate::support::Proc::new(holder.spawn().expect("spawn"));
    crate::support::eventually("the holder stands still", || {
        crate::support::is_stopped(holder.pid()).then_some(())
    });
    let (code, message) = bench.outlast(["session", "gc", "t", "--json"]).failure();
    assert_eq!(code, "session_held");
    assert!(message.contains("held by"), "{message}");
    let all = bench.outlast(["session", "gc", "--all", "--grace", "0s"]);
    assert_eq!(all.code(), 1);
    assert!(all.stderr.contains("held by"), "{}", all.stderr);
    // A dry run looks only, and takes nothing from anybody.
    json(&bench, &["session", "gc", "t", "--dry-run"]);
    holder.signal(rustix::process::Signal::CONT);
    holder.finish().ok();
    assert!(!blob.exists());
}
