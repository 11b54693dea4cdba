//! One step for each version. A step that has been released is never changed: databases exist that it made.

use rusqlite::Connection;

use super::sessions;
use crate::failure::Tried;

/// What makes the tables of a version from those of the version before.
pub(super) struct Step {
    /// The version that the step leads to.
    pub(super) version: i64,
    /// Its statements, run in one transaction.
    pub(super) sql: &'static str,
    /// What of an older version's rows takes more than SQL, in the same transaction.
    pub(super) then: Option<fn(&Connection) -> Tried<()>>,
}

/// All steps, in order. The first makes the tables in an empty database.
pub(super) const STEPS: &[Step] = &[
    Step { version: 1, sql: V1, then: None },
    Step { version: 2, sql: V2, then: None },
    Step { version: 3, sql: V3, then: None },
    Step { version: 4, sql: V4, then: Some(sessions::of_threads) },
];

/// The version that this program reads and writes.
pub(crate) const CURRENT: i64 = STEPS[STEPS.len() - 1].version;

/// `runs` holds what changes often, so it stays small; what is written once and may be large is in `specs`. An event's
/// key is `run << 32 | seq`: one tree, ordered as it is read, with a number as its key. Measured against a table
/// `WITHOUT ROWID` (reads small events at 3/4 of the speed and those of a megabyte at 1/7, since its pages keep less of
/// a row) and one with an index beside it (writes 64 runs in turns faster, reads them seven times slower).
const V1: &str = r#"
CREATE TABLE meta (
    schema_version INTEGER NOT NULL,
    deployment_id  TEXT NOT NULL
);

CREATE TABLE runs (
    run              INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id           TEXT NOT NULL UNIQUE,
    tenant           TEXT NOT NULL,
    thread_id        TEXT NOT NULL,
    digest           TEXT NOT NULL,
    exit_secret      TEXT NOT NULL,
    status           TEXT NOT NULL,
    phase            TEXT NOT NULL,
    started_at       INTEGER NOT NULL,
    finished_at      INTEGER,
    error            TEXT,
    end_reason       TEXT,
    usage            TEXT,
    exit_code        INTEGER,
    sandbox_key      TEXT,
    instance_id      TEXT,
    machine          TEXT,
    workspace        TEXT,
    workspace_shared INTEGER NOT NULL,
    detached_ttl     INTEGER,
    on_disconnect    TEXT NOT NULL,
    cancel_reason    TEXT,
    cancel_at        INTEGER,
    epoch            INTEGER NOT NULL,
    lease_owner      TEXT,
    lease_nonce      TEXT,
    lease_boot       TEXT,
    lease_until      INTEGER,
    claimed_at       INTEGER,
    agent_session    TEXT,
    tail             INTEGER NOT NULL,
    last_batch       TEXT,
    closed           INTEGER NOT NULL,
    sealed           INTEGER NOT NULL,
    cursor           TEXT
);
CREATE UNIQUE INDEX runs_live_thread ON runs (tenant, thread_id)
    WHERE status IN ('running', 'interrupted');
CREATE UNIQUE INDEX runs_live_workspace ON runs (workspace)
    WHERE status IN ('running', 'interrupted') AND workspace IS NOT NULL AND workspace_shared = 0;
CREATE INDEX runs_live_workspace_any ON runs (workspace)
    WHERE status IN ('running', 'interrupted') AND workspace IS NOT NULL;
CREATE INDEX runs_live_newest ON runs (tenant, started_at, run_id)
    WHERE status IN ('running', 'interrupted');
CREATE INDEX runs_newest ON runs (tenant, started_at, run_id);
CREATE INDEX runs_thread ON runs (tenant, thread_id, run);
CREATE INDEX runs_lease ON runs (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX runs_live_instance ON runs (instance_id)
    WHERE status IN ('running', 'interrupted') AND instance_id IS NOT NULL;

CREATE TABLE specs (
    run  INTEGER PRIMARY KEY REFERENCES runs (run),
    json TEXT NOT NULL
);

CREATE TABLE events (
    id           INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    origin_byte  INTEGER,
    origin_index INTEGER,
    json         TEXT NOT NULL
);

CREATE TABLE messages (
    run     INTEGER NOT NULL REFERENCES runs (run),
    ordinal INTEGER NOT NULL,
    json    TEXT NOT NULL,
    UNIQUE (run, ordinal)
);

CREATE TABLE presence (
    run   INTEGER NOT NULL REFERENCES runs (run),
    host  TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (run, host)
) WITHOUT ROWID;

CREATE TABLE instances (
    instance    INTEGER PRIMARY KEY AUTOINCREMENT,
    instance_id TEXT NOT NULL UNIQUE,
    sandbox_key TEXT NOT NULL,
    provider    TEXT NOT NULL,
    machine     TEXT,
    state       TEXT NOT NULL,
    created_at  INTEGER NOT NULL
);
CREATE INDEX instances_usable ON instances (sandbox_key, created_at)
    WHERE state IN ('creating', 'live');
"#;

/// Which sessions a thread's agents have had is asked at every turn; without the kind beside it, every spec of the
/// thread would be read for that.
const V2: &str = r"
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT '';
UPDATE runs SET kind = coalesce((SELECT json_extract(json, '$.kind') FROM specs WHERE specs.run = runs.run), '');
CREATE INDEX runs_sessions ON runs (tenant, thread_id, kind, run) WHERE agent_session IS NOT NULL;
";

/// The end of what nobody comes back to: how often a run made no progress, when a sandbox is due to be destroyed, which
/// logs have aged out, which processes are alive. A sandbox of an older version has no lifecycle, so it is kept until
/// somebody removes it.
const V3: &str = r"
ALTER TABLE runs ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stalls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stalled_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_ended_events ON runs (finished_at) WHERE finished_at IS NOT NULL AND expired < 2;

ALTER TABLE instances ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE instances ADD COLUMN thread_id TEXT;
ALTER TABLE instances ADD COLUMN lent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN keep_alive INTEGER;
ALTER TABLE instances ADD COLUMN reclaim_at INTEGER;
ALTER TABLE instances ADD COLUMN reclaim_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN reclaim_error TEXT;
ALTER TABLE instances ADD COLUMN reclaim_owner TEXT;
ALTER TABLE instances ADD COLUMN reclaim_until INTEGER;
CREATE INDEX instances_due ON instances (reclaim_at) WHERE state <> 'gone' AND reclaim_at IS NOT NULL;
CREATE INDEX instances_there ON instances (created_at, instance_id) WHERE state <> 'gone';

CREATE TABLE hosts (
    owner   TEXT PRIMARY KEY,
    machine TEXT,
    version TEXT NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL
) WITHOUT ROWID;
";

/// What outlasts the delivery log. A record's key is `session << 32 | seq`, as that of an event: a ledger lies in one piece,
/// in order. What may be large comes last in a row, so that whoever passes over a row does not read it.
///
/// A transcript that is there stays in `messages` until the next write to its thread gives it to the ledger
/// (`runs.ledgered`): the migration is as short for a large database as it can be.
const V4: &str = r"
CREATE TABLE sessions (
    session    INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    thread_id  TEXT NOT NULL,
    state      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    active_at  INTEGER NOT NULL,
    deleted_at INTEGER,
    tip        INTEGER NOT NULL,
    barrier    INTEGER NOT NULL,
    fold       TEXT,
    UNIQUE (tenant, thread_id)
);
CREATE INDEX sessions_newest ON sessions (tenant, active_at, session_id);
CREATE INDEX sessions_state ON sessions (state, session_id, active_at);

CREATE TABLE records (
    id        INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    skip      INTEGER NOT NULL,
    record_id TEXT NOT NULL,
    sum       TEXT NOT NULL,
    blob_key  TEXT,
    blob_size INTEGER,
    body      TEXT NOT NULL
);
CREATE UNIQUE INDEX records_id ON records (session, record_id);
CREATE INDEX records_workspace ON records (session)
    WHERE kind NOT IN ('message', 'run_started', 'run_ended', 'session_stopped', 'barrier');
CREATE INDEX records_blob ON records (blob_key, blob_size) WHERE blob_key IS NOT NULL;

CREATE TABLE condemned (
    session  INTEGER NOT NULL,
    blob_key TEXT NOT NULL,
    PRIMARY KEY (session, blob_key)
) WITHOUT ROWID;

CREATE TABLE leases (
    name     TEXT PRIMARY KEY,
    epoch    INTEGER NOT NULL,
    owner    TEXT,
    nonce    TEXT,
    boot     TEXT,
    until    INTEGER,
    note     INTEGER,
    noted_at INTEGER
) WITHOUT ROWID;
CREATE INDEX leases_owner ON leases (owner) WHERE owner IS NOT NULL;

CREATE TABLE pins (
    pin   TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN ledgered INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_unledgered ON runs (tenant, thread_id) WHERE ledgered < 2;

ALTER TABLE events ADD COLUMN blob_key TEXT;
ALTER TABLE events ADD COLUMN blob_size INTEGER;
CREATE INDEX events_blob ON events (blob_key, blob_size) WHERE blob_key IS NOT NULL;

ALTER TABLE messages ADD COLUMN blob_key TEXT;
ALTER TABLE messages ADD COLUMN blob_size INTEGER;
ALTER TABLE messages ADD COLUMN sum TEXT;
CREATE INDEX messages_blob ON messages (blob_key, blob_size) WHERE blob_key IS NOT NULL;

CREATE INDEX instances_thread ON instances (tenant, thread_id) WHERE state <> 'gone' AND thread_id IS NOT NULL;
";
