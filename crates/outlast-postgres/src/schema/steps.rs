//! One step for each version. A step that has been released is never changed: databases exist that it made.
//!
//! During a rollout two versions run side by side, so a step may only add: the version before must be able to read and
//! write what the step leaves. What it no longer needs goes a version later.

/// What makes the tables of a version from those of the version before.
pub(super) struct Step {
    /// The version that the step leads to.
    pub(super) version: i32,
    /// Its statements, run in one transaction.
    pub(super) sql: &'static str,
    /// The tables that it makes.
    pub(super) tables: &'static [&'static str],
    /// Whether the threads that there are get their sessions after it.
    pub(super) makes_sessions: bool,
}

/// All steps, in order. The first makes the tables.
pub(super) const STEPS: &[Step] = &[
    Step {
        version: 1,
        sql: V1,
        tables: &["runs", "specs", "events", "messages", "presence", "instances"],
        makes_sessions: false,
    },
    Step { version: 2, sql: V2, tables: &["hosts"], makes_sessions: false },
    Step {
        version: 3,
        sql: V3,
        tables: &["sessions", "records", "condemned", "leases", "pins"],
        makes_sessions: true,
    },
];

/// JSON is text, not `jsonb`, which refuses what JSON allows in strings; and an event's is bytes, since it goes out byte for
/// byte as it came and a text of PostgreSQL holds no NUL.
/// `outlast_now` is the one place that reads the clock: milliseconds since 1970, also within a transaction that has
/// waited for a lock.
const V1: &str = r"
CREATE OR REPLACE FUNCTION outlast_now() RETURNS bigint LANGUAGE sql VOLATILE
    AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

CREATE TABLE runs (
    run              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id           text NOT NULL UNIQUE,
    tenant           text NOT NULL,
    thread_id        text NOT NULL,
    digest           text NOT NULL,
    kind             text NOT NULL,
    exit_secret      text NOT NULL,
    status           text NOT NULL,
    phase            text NOT NULL,
    started_at       bigint NOT NULL,
    finished_at      bigint,
    error            text,
    end_reason       text,
    usage            text,
    exit_code        integer,
    sandbox_key      text,
    instance_id      text,
    machine          text,
    workspace        text,
    workspace_shared boolean NOT NULL,
    detached_ttl     bigint,
    on_disconnect    text NOT NULL,
    cancel_reason    text,
    cancel_at        bigint,
    epoch            bigint NOT NULL,
    lease_owner      text,
    lease_nonce      text,
    lease_until      bigint,
    claimed_at       bigint,
    agent_session    text,
    tail             bigint NOT NULL,
    last_batch       text,
    closed           boolean NOT NULL,
    sealed           boolean NOT NULL,
    cursor           text
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX runs_live_thread ON runs (tenant, thread_id)
    WHERE status IN ('running', 'interrupted');
CREATE INDEX runs_live_workspace ON runs (workspace)
    WHERE status IN ('running', 'interrupted') AND workspace IS NOT NULL;
CREATE INDEX runs_live_newest ON runs (tenant, started_at, run_id)
    WHERE status IN ('running', 'interrupted');
CREATE INDEX runs_newest ON runs (tenant, started_at, run_id);
CREATE INDEX runs_thread ON runs (tenant, thread_id, run);
CREATE INDEX runs_lease ON runs (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX runs_live_instance ON runs (instance_id)
    WHERE status IN ('running', 'interrupted') AND instance_id IS NOT NULL;

CREATE TABLE specs (
    run  bigint PRIMARY KEY REFERENCES runs (run),
    json text NOT NULL
);

CREATE TABLE events (
    run          bigint NOT NULL,
    seq          bigint NOT NULL,
    at           bigint NOT NULL,
    origin_byte  bigint,
    origin_index integer,
    json         bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE messages (
    run     bigint NOT NULL REFERENCES runs (run),
    ordinal bigint NOT NULL,
    json    text NOT NULL,
    PRIMARY KEY (run, ordinal)
);

CREATE TABLE presence (
    run        bigint NOT NULL REFERENCES runs (run),
    host       text NOT NULL,
    until_time bigint NOT NULL,
    PRIMARY KEY (run, host)
);

CREATE TABLE instances (
    instance    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance_id text NOT NULL UNIQUE,
    sandbox_key text NOT NULL,
    provider    text NOT NULL,
    machine     text,
    state       text NOT NULL,
    created_at  bigint NOT NULL
);
CREATE INDEX instances_usable ON instances (sandbox_key, created_at)
    WHERE state IN ('creating', 'live');
";

/// The end of what nobody comes back to: how often a run made no progress, when a sandbox is due to be destroyed, which
/// logs have aged out, which processes are alive. A sandbox of an older version has no lifecycle, so it is kept until
/// somebody removes it.
const V2: &str = r"
ALTER TABLE runs ADD COLUMN expired smallint NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stalls integer NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stalled_at bigint NOT NULL DEFAULT 0;
CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_ended_events ON runs (finished_at) WHERE finished_at IS NOT NULL AND expired < 2;

ALTER TABLE instances ADD COLUMN tenant text NOT NULL DEFAULT '';
ALTER TABLE instances ADD COLUMN thread_id text;
ALTER TABLE instances ADD COLUMN lent boolean NOT NULL DEFAULT false;
ALTER TABLE instances ADD COLUMN keep_alive bigint;
ALTER TABLE instances ADD COLUMN reclaim_at bigint;
ALTER TABLE instances ADD COLUMN reclaim_failed integer NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN reclaim_error text;
ALTER TABLE instances ADD COLUMN reclaim_owner text;
ALTER TABLE instances ADD COLUMN reclaim_until bigint;
CREATE INDEX instances_due ON instances (reclaim_at) WHERE state <> 'gone' AND reclaim_at IS NOT NULL;
CREATE INDEX instances_there ON instances (created_at, instance_id) WHERE state <> 'gone';

CREATE TABLE hosts (
    owner      text PRIMARY KEY,
    machine    text,
    version    text NOT NULL,
    since      bigint NOT NULL,
    until_time bigint NOT NULL
);
";

/// What outlives the delivery log: the session of each thread with its records, and the leases and pins of its upkeep.
///
/// `runs.ledgered` says what a thread's records know of a run: 0 nothing, 1 its start, 2 its end. Hosts of the version before
/// leave it alone, and with it what they accept and end; the next write of this version adds that to the records. A row of
/// `messages` is there until then. They also leave alone where a message's body is when they replace the message: `stub` is
/// the digest of the JSON that stands for the body, and where the JSON is another, there is no body elsewhere.
///
/// Keys of bodies begin with their session's, so `COLLATE "C"` makes all of a session's one range of an index. The tables
/// that hosts write to are locked in the order in which their statements do: `runs` first.
const V3: &str = r#"
ALTER TABLE runs ADD COLUMN ledgered smallint NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN blob_key text COLLATE "C";
ALTER TABLE events ADD COLUMN blob_size bigint;
ALTER TABLE messages ADD COLUMN blob_key text COLLATE "C";
ALTER TABLE messages ADD COLUMN blob_size bigint;
ALTER TABLE messages ADD COLUMN sum text;
ALTER TABLE messages ADD COLUMN stub text;
CREATE INDEX runs_unsettled ON runs (tenant, thread_id, run) WHERE ledgered < 2;
CREATE INDEX events_blob ON events (blob_key) WHERE blob_key IS NOT NULL;
CREATE INDEX messages_blob ON messages (blob_key) WHERE blob_key IS NOT NULL;
CREATE INDEX instances_thread ON instances (tenant, thread_id) WHERE state <> 'gone';

CREATE TABLE sessions (
    session    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL UNIQUE,
    tenant     text NOT NULL,
    thread_id  text NOT NULL,
    state      text NOT NULL,
    created_at bigint NOT NULL,
    active_at  bigint NOT NULL,
    deleted_at bigint,
    tip        bigint NOT NULL,
    barrier    bigint NOT NULL,
    fold       text,
    UNIQUE (tenant, thread_id)
) WITH (fillfactor = 70);
CREATE INDEX sessions_newest ON sessions (tenant, active_at, session_id);
CREATE INDEX sessions_idle ON sessions (active_at);
CREATE INDEX sessions_ended ON sessions (session_id) WHERE state <> 'active';

CREATE TABLE records (
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    at        bigint NOT NULL,
    record_id text NOT NULL,
    kind      text NOT NULL,
    skip      boolean NOT NULL,
    sum       text NOT NULL,
    body      text NOT NULL,
    blob_key  text COLLATE "C",
    blob_size bigint,
    PRIMARY KEY (session, seq),
    UNIQUE (session, record_id)
);
CREATE INDEX records_workspace ON records (session, seq)
    WHERE kind NOT IN ('message', 'run_started', 'run_ended', 'session_stopped', 'barrier');
CREATE INDEX records_blob ON records (blob_key) WHERE blob_key IS NOT NULL;

CREATE TABLE condemned (
    blob_key text COLLATE "C" PRIMARY KEY,
    session  bigint NOT NULL
);

CREATE TABLE leases (
    name       text COLLATE "C" PRIMARY KEY,
    epoch      bigint NOT NULL,
    owner      text,
    nonce      text,
    until_time bigint,
    note       bigint,
    noted_at   bigint
);
CREATE INDEX leases_owner ON leases (owner) WHERE owner IS NOT NULL;

CREATE TABLE pins (
    pin        text PRIMARY KEY,
    owner      text NOT NULL,
    since      bigint NOT NULL,
    until_time bigint NOT NULL
);
"#;
