-- The tables as version 2 made them. Databases exist that it made, so this never changes.

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

CREATE TABLE outlast_meta (schema_version integer NOT NULL, deployment_id text NOT NULL);
