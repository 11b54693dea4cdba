PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    schema_version INTEGER NOT NULL,
    deployment_id  TEXT NOT NULL
);
INSERT INTO meta VALUES(3,'d00b7f00-1eb0-4ba7-a441-3fbab069aefc');
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
, kind TEXT NOT NULL DEFAULT '', expired INTEGER NOT NULL DEFAULT 0, stalls INTEGER NOT NULL DEFAULT 0, stalled_at INTEGER NOT NULL DEFAULT 0);
INSERT INTO runs VALUES(1,'r2','','t','digest','14e3be74197729e3d8d7375f6615e541','completed','accepted',1700077517692,1700077517737,NULL,'exited','[{"inputTokens":1,"outputTokens":2,"totalTokens":3}]',0,NULL,NULL,NULL,NULL,0,NULL,'detach',NULL,NULL,1,NULL,'73a16d6d5e045143a313f0a11bdcfe73',NULL,NULL,1700077517692,'session',5,'b044e5c294024c7f26bfd63d26da4fff',1,1,NULL,'command',0,0,0);
INSERT INTO runs VALUES(2,'o1','you','t','digest','ed71c36a5075752582fe9118c26e5f4d','completed','accepted',1700077517759,1700077517826,NULL,'exited','[{"inputTokens":1,"outputTokens":2,"totalTokens":3}]',0,NULL,NULL,NULL,NULL,0,NULL,'detach',NULL,NULL,1,NULL,'a5270c6f2c70ef185bd9fc3617f72891',NULL,NULL,1700077517759,'session',3,'883d5b831843e36eef93bca226f36466',1,1,NULL,'command',0,0,0);
INSERT INTO runs VALUES(3,'r1','','t','digest','4c80b424cb5819dd8ddb38d2ea44a8ca','failed','accepted',1700077517781,1700077517804,'{"code":"agent_failed","message":"it broke 💥"}','agent_failed','[{"inputTokens":1,"outputTokens":2,"totalTokens":3}]',3,NULL,NULL,NULL,NULL,0,NULL,'detach',NULL,NULL,1,NULL,'ca858f01b4fb9424058811ad3d474037',NULL,NULL,1700077517781,'session',3,'c42f4769caedde9c345d3bcafe6fb6f8',1,1,NULL,'command',0,0,0);
INSERT INTO runs VALUES(4,'e1','','quiet','digest','920baf861ae37279bf88710b88225ca4','completed','accepted',1700077517849,1700077517871,NULL,'exited','[{"inputTokens":1,"outputTokens":2,"totalTokens":3}]',0,NULL,NULL,NULL,NULL,0,NULL,'detach',NULL,NULL,1,NULL,'7627e453059e46a54aa12e0d7266a9e7',NULL,NULL,1700077517849,'session',3,'453a45f2aef96e0aad0cd4827f51ccda',1,1,NULL,'command',0,0,0);
INSERT INTO runs VALUES(5,'r3','','t','digest','1c48f25ef494a1a0a9e6d8ef5012474a','running','accepted',1700077517894,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,'detach',NULL,NULL,1,NULL,NULL,NULL,NULL,1700077517894,'session',2,'cdc42790a1df1dd18ed86835737d5388',0,0,NULL,'command',0,0,0);
CREATE TABLE specs (
    run  INTEGER PRIMARY KEY REFERENCES runs (run),
    json TEXT NOT NULL
);
INSERT INTO specs VALUES(1,'{"agent":"demo","kind":"command","argv":["true"],"model":"m","prompt":"Hello","promptOnStdin":true,"sandbox":{"provider":"local","fence":"auto","limits":{"stdout":17179869184,"stderr":268435456}}}');
INSERT INTO specs VALUES(2,'{"agent":"demo","kind":"command","argv":["true"],"model":"m","prompt":"Hello","promptOnStdin":true,"sandbox":{"provider":"local","fence":"auto","limits":{"stdout":17179869184,"stderr":268435456}}}');
INSERT INTO specs VALUES(3,'{"agent":"demo","kind":"command","argv":["true"],"model":"m","prompt":"Hello","promptOnStdin":true,"sandbox":{"provider":"local","fence":"auto","limits":{"stdout":17179869184,"stderr":268435456}}}');
INSERT INTO specs VALUES(4,'{"agent":"demo","kind":"command","argv":["true"],"model":"m","prompt":"Hello","promptOnStdin":true,"sandbox":{"provider":"local","fence":"auto","limits":{"stdout":17179869184,"stderr":268435456}}}');
INSERT INTO specs VALUES(5,'{"agent":"demo","kind":"command","argv":["true"],"model":"m","prompt":"Hello","promptOnStdin":true,"sandbox":{"provider":"local","fence":"auto","limits":{"stdout":17179869184,"stderr":268435456}}}');
CREATE TABLE events (
    id           INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    origin_byte  INTEGER,
    origin_index INTEGER,
    json         TEXT NOT NULL
);
INSERT INTO events VALUES(4294967297,1700077517692,NULL,NULL,'{"type":"CUSTOM","name":"run.accepted","value":{}}');
INSERT INTO events VALUES(4294967298,1700077517715,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}');
INSERT INTO events VALUES(4294967299,1700077517715,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"y"}');
INSERT INTO events VALUES(4294967300,1700077517737,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"bye"}');
INSERT INTO events VALUES(4294967301,1700077517737,NULL,NULL,'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}');
INSERT INTO events VALUES(8589934593,1700077517759,NULL,NULL,'{"type":"CUSTOM","name":"run.accepted","value":{}}');
INSERT INTO events VALUES(8589934594,1700077517826,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"bye"}');
INSERT INTO events VALUES(8589934595,1700077517826,NULL,NULL,'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}');
INSERT INTO events VALUES(12884901889,1700077517781,NULL,NULL,'{"type":"CUSTOM","name":"run.accepted","value":{}}');
INSERT INTO events VALUES(12884901890,1700077517804,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"bye"}');
INSERT INTO events VALUES(12884901891,1700077517804,NULL,NULL,'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}');
INSERT INTO events VALUES(17179869185,1700077517849,NULL,NULL,'{"type":"CUSTOM","name":"run.accepted","value":{}}');
INSERT INTO events VALUES(17179869186,1700077517871,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"bye"}');
INSERT INTO events VALUES(17179869187,1700077517871,NULL,NULL,'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}');
INSERT INTO events VALUES(21474836481,1700077517894,NULL,NULL,'{"type":"CUSTOM","name":"run.accepted","value":{}}');
INSERT INTO events VALUES(21474836482,1700077517916,NULL,NULL,'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}');
CREATE TABLE messages (
    run     INTEGER NOT NULL REFERENCES runs (run),
    ordinal INTEGER NOT NULL,
    json    TEXT NOT NULL,
    UNIQUE (run, ordinal)
);
INSERT INTO messages VALUES(1,-2,'{"id":"s","role":"system","content":"Be brief"}');
INSERT INTO messages VALUES(1,-1,'{"id":"q","role":"user","content":"\n  Fix it, please \nNow"}');
INSERT INTO messages VALUES(1,10,'{"id":"res","role":"tool","content":"no","toolCallId":"c","error":"no"}');
INSERT INTO messages VALUES(1,2,'{"id":"call","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{\"a\":\"\u0000\"}"}}]}');
INSERT INTO messages VALUES(1,4,'{"id":"a","role":"assistant","content":"Done\u0000🦀 \"quoted\" </script>"}');
INSERT INTO messages VALUES(2,-1,'{"id":"oq","role":"user","content":"elsewhere"}');
INSERT INTO messages VALUES(3,-1,'{"id":"q","role":"user","content":"again"}');
INSERT INTO messages VALUES(3,2,'{"id":"a","role":"assistant","content":"no"}');
INSERT INTO messages VALUES(2,2,'{"id":"oa","role":"assistant","content":"indeed"}');
INSERT INTO messages VALUES(4,-1,'{"id":"q","role":"user","content":"bye"}');
INSERT INTO messages VALUES(5,-1,'{"id":"q","role":"user","content":"and now"}');
INSERT INTO messages VALUES(5,2,'{"id":"a","role":"assistant","content":"I am wor"}');
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
, tenant TEXT NOT NULL DEFAULT '', thread_id TEXT, lent INTEGER NOT NULL DEFAULT 0, keep_alive INTEGER, reclaim_at INTEGER, reclaim_failed INTEGER NOT NULL DEFAULT 0, reclaim_error TEXT, reclaim_owner TEXT, reclaim_until INTEGER);
CREATE TABLE hosts (
    owner   TEXT PRIMARY KEY,
    machine TEXT,
    version TEXT NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL
) WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',5);
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
CREATE INDEX instances_usable ON instances (sandbox_key, created_at)
    WHERE state IN ('creating', 'live');
CREATE INDEX runs_sessions ON runs (tenant, thread_id, kind, run) WHERE agent_session IS NOT NULL;
CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_ended_events ON runs (finished_at) WHERE finished_at IS NOT NULL AND expired < 2;
CREATE INDEX instances_due ON instances (reclaim_at) WHERE state <> 'gone' AND reclaim_at IS NOT NULL;
CREATE INDEX instances_there ON instances (created_at, instance_id) WHERE state <> 'gone';
COMMIT;
