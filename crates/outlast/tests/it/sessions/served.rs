//! A server looks after sessions by itself.

use super::{json, objects, run};
use crate::support::{Bench, eventually};

const CONFIG: &str = "[driver]\nlease = \"1500ms\"\n[sandbox]\nkeep_alive = \"0s\"\n[reap]\nreclaim_interval = \"100ms\"\n\
                      [sessions]\ngrace = \"0s\"\nquarantine = \"0s\"\ninterval = \"200ms\"\n";

/// Orphans of a thread that nobody visits go, snapshots that nothing names go, a deletion that was interrupted is finished, and
/// the end of activity is recorded.
#[test]
fn what_nobody_visits() {
    let bench = Bench::with_config(CONFIG);
    run(&bench, "r", "t", "echo x > x; head -c 700000 /dev/zero | tr '\\0' x; echo");
    run(&bench, "s", "gone", "echo gone > gone");
    let id = json(&bench, &["session", "show", "t"])["sessionId"].as_str().expect("id").to_owned();
    let orphan = bench.data_dir().join(format!("objects/sessions/{id}/blobs/{}", "ab".repeat(32)));
    std::fs::write(&orphan, "left behind").expect("written");
    let mut killed = bench.command(["session", "rm", "gone", "--yes"]);
    killed.env("OUTLAST_FAILPOINT", "delete.tombstone.after=kill");
    assert_eq!(crate::support::Proc::new(killed.spawn().expect("spawn")).finish().code(), 137);
    let mut server = bench.spawn(["serve", "--json", "--listen", "127.0.0.1:0"]);
    server.wait_for("listening");
    eventually("the orphan is gone", || (!orphan.exists()).then_some(()));
    eventually("the deletion is finished", || (bench.outlast(["show", "s"]).code() == 1).then_some(()));
    eventually("the end of activity", || {
        let shown = json(&bench, &["session", "show", "t"]);
        (shown["stopped"]["reason"] == "idle").then_some(())
    });
    eventually("only what is named", || (objects(&bench, "workspaces").len() == 2).then_some(()));
    assert_eq!(objects(&bench, "sessions").len(), 2);
    // Another turn: the activity begins again.
    assert_eq!(run(&bench, "r2", "t", "cat x"), "x\n");
    drop(server);
}
