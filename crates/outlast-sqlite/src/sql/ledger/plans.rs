//! How SQLite finds what is asked for where there may be much: a statement that loses its index still answers.

use rusqlite::Connection;

use super::{bodies, deleting, list, read, settle, transcript};
use crate::sql::messages;

fn plan(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get(3).unwrap());
    }
    steps
}

#[test]
fn by_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let owner = outlast_core::OwnerId::new("here").unwrap();
    let config = crate::SqliteConfig::new(dir.path(), owner, outlast_store::Ports::system());
    drop(crate::SqliteStore::open(config).unwrap());
    let db = Connection::open(dir.path().join("outlast.db")).unwrap();
    for (name, sql, expected) in [
        ("left", settle::LEFT, vec!["runs USING INDEX runs_unledgered (tenant=? AND thread_id=?)"]),
        (
            "live messages",
            messages::OF_THREAD,
            vec![
                "r USING INDEX runs_unledgered (tenant=? AND thread_id=?)",
                "m USING INDEX sqlite_autoindex_messages_1 (run=?)",
            ],
        ),
        ("latest", transcript::LATEST, vec!["records USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
        (
            "of a run",
            transcript::OF_RUN,
            vec!["records USING INDEX records_id (session=? AND record_id>? AND record_id<?)", "ORDER BY"],
        ),
        ("all", read::ALL, vec!["records USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
        (
            "workspace",
            read::WORKSPACE,
            vec!["records USING INDEX records_workspace (session=? AND rowid>? AND rowid<?)"],
        ),
        (
            "pointers",
            bodies::POINTERS,
            vec![
                "records USING COVERING INDEX records_blob (blob_key>? AND blob_key<?)",
                "events USING COVERING INDEX events_blob (blob_key>? AND blob_key<?)",
                "messages USING COVERING INDEX messages_blob (blob_key>? AND blob_key<?)",
            ],
        ),
        (
            "pointed to",
            bodies::POINTED_TO,
            vec![
                "records USING COVERING INDEX records_blob (blob_key=?)",
                "events USING COVERING INDEX events_blob (blob_key=?)",
                "messages USING COVERING INDEX messages_blob (blob_key=?)",
            ],
        ),
        (
            "first run",
            deleting::FIRST_RUN,
            vec!["s USING INTEGER PRIMARY KEY (rowid=?)", "runs_thread (tenant=? AND thread_id=?)"],
        ),
        ("newest", list::NEWEST_OF_TENANT, vec!["s USING INDEX sessions_newest (tenant=? AND active_at<?)"]),
        (
            "in a state",
            list::IN_STATE,
            vec![
                "s USING INDEX sessions_state (state=? AND session_id>?)",
                "r USING INDEX runs_live_thread (tenant=? AND thread_id=?)",
                "i USING INDEX instances_thread (tenant=? AND thread_id=?)",
                "l USING PRIMARY KEY (name=?)",
            ],
        ),
        ("by id", list::BY_ID, vec!["s USING INDEX sqlite_autoindex_sessions_1 (session_id>?)"]),
    ] {
        let plan = plan(&db, sql);
        assert!(
            plan.iter().all(|step| !step.starts_with("SCAN")
                || step.contains("json_each")
                || step.contains("CONSTANT ROW")),
            "{name}: {plan:#?}"
        );
        for part in expected {
            assert!(plan.iter().any(|step| step.contains(part)), "{name}: {plan:#?} lacks {part}");
        }
        let sorts = plan.iter().any(|step| step.contains("USE TEMP B-TREE FOR ORDER BY"));
        assert_eq!(sorts, name == "of a run", "{name}: {plan:#?}");
    }
}
