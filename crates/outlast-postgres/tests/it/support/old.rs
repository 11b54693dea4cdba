//! A host of the version before, which knows nothing of ledgers: its statements, word for word.

use outlast_core::run::{LaunchSpec, SandboxSpec};
use outlast_core::transcript::{Message, Role};
use outlast_store::{Entropy, SystemEntropy};
use tokio_postgres::Client;

use super::schema::Schema;

const TABLES: &str = include_str!("version2.sql");

const ACCEPT: &str = "\
INSERT INTO runs (run_id, tenant, thread_id, digest, exit_secret, status, phase, started_at, workspace, \
workspace_shared, detached_ttl, on_disconnect, epoch, lease_owner, lease_nonce, lease_until, claimed_at, \
tail, closed, sealed, kind) \
SELECT $1, $2, $3, $4, $5, $6, $7, now, $8, $9, $10, $11, 1, $12, $13, now + $14, now, $15, false, false, \
$16 FROM outlast_now() AS now RETURNING run";

const INPUT: &str = "\
INSERT INTO messages (run, ordinal, json) \
SELECT $1, message.ordinal, message.json FROM unnest($2::bigint[], $3::text[]) AS message (ordinal, json) \
ON CONFLICT (run, ordinal) DO UPDATE SET json = excluded.json";

const APPEND: &str = "\
WITH head AS (\
    UPDATE runs SET tail = tail + $6, last_batch = $5, cursor = coalesce($7, cursor), \
        agent_session = coalesce($8, agent_session) \
    WHERE run_id = $1 AND epoch = $2 AND lease_nonce = $3 AND tail = $4 \
        AND status IN ('running', 'interrupted') \
    RETURNING run, tail\
), added AS (\
    INSERT INTO events (run, seq, at, origin_byte, origin_index, json) \
    SELECT head.run, $4 + event.n, outlast_now(), event.byte, event.index, event.json \
    FROM head, unnest($9::bigint[], $10::integer[], $11::bytea[]) WITH ORDINALITY AS event (byte, index, json, n)\
), said AS (\
    INSERT INTO messages (run, ordinal, json) \
    SELECT head.run, message.ordinal, message.json FROM head, unnest($12::bigint[], $13::text[]) AS message (ordinal, json) \
    ON CONFLICT (run, ordinal) DO UPDATE SET json = excluded.json\
) SELECT tail FROM head";

const FINISH: &str = "\
UPDATE runs SET status = $2, error = $3, end_reason = $4, usage = $5, exit_code = $6, \
finished_at = outlast_now(), closed = true, sealed = true, lease_owner = NULL, lease_until = NULL \
WHERE run = $1";

const TRANSCRIPT: &str = "\
SELECT r.run_id, m.ordinal, m.json FROM runs r JOIN messages m ON m.run = r.run \
WHERE r.tenant = $1 AND r.thread_id = $2 ORDER BY r.run, m.ordinal";

pub struct OldHost {
    client: Client,
}

impl OldHost {
    /// Makes the tables of its version, and goes on with them.
    pub async fn first(schema: &Schema) -> OldHost {
        let client = schema.client().await;
        client.batch_execute(TABLES).await.expect("made");
        let id = SystemEntropy.uuid();
        client.execute("INSERT INTO outlast_meta VALUES (2, $1)", &[&id]).await.expect("made");
        OldHost { client }
    }

    /// One of a schema that there is.
    pub async fn beside(schema: &Schema) -> OldHost {
        OldHost { client: schema.client().await }
    }

    /// Accepts a run, whose nonce is its id, with a question.
    pub async fn accept(&self, run: &str, thread: &str) {
        let spec = LaunchSpec {
            agent: "demo".to_owned(),
            kind: "command".to_owned(),
            argv: vec!["true".to_owned()],
            model: None,
            prompt: None,
            prompt_on_stdin: false,
            env: Default::default(),
            needed_env: Vec::new(),
            cwd: None,
            workspace: None,
            sandbox: SandboxSpec { provider: "local".to_owned(), ..SandboxSpec::default() },
        };
        let (none, no_time) = (None::<String>, None::<i64>);
        let row = self
            .client
            .query_one(
                ACCEPT,
                &[
                    &run,
                    &"",
                    &thread,
                    &"digest",
                    &"secret",
                    &"running",
                    &"accepted",
                    &none,
                    &false,
                    &no_time,
                    &"detach",
                    &"old",
                    &run,
                    &600_000_i64,
                    &0_i64,
                    &"command",
                ],
            )
            .await
            .expect("accepted");
        let key: i64 = row.get(0);
        let spec = serde_json::to_string(&spec).expect("JSON");
        self.client
            .execute("INSERT INTO specs (run, json) VALUES ($1, $2)", &[&key, &spec])
            .await
            .expect("accepted");
        let question = Message::text(format!("{run}-q"), Role::User, format!("ask {run}\nmore\u{0}"));
        let question = serde_json::to_string(&question).expect("JSON");
        self.client.execute(INPUT, &[&key, &vec![-1_i64], &vec![question]]).await.expect("accepted");
    }

    /// Appends an event and a message.
    pub async fn say(&self, run: &str, tail: i64, ordinal: i64, text: &str) {
        let message = Message::text(format!("{run}-{ordinal}"), Role::Assistant, text);
        let json = serde_json::to_string(&message).expect("JSON");
        let event = format!("{{\"type\":\"RAW\",\"event\":{tail}}}").into_bytes();
        let none = None::<String>;
        let row = self
            .client
            .query_opt(
                APPEND,
                &[
                    &run,
                    &self.epoch(run).await,
                    &run,
                    &tail,
                    &format!("{run}{tail}"),
                    &1_i64,
                    &none,
                    &none,
                    &vec![None::<i64>],
                    &vec![None::<i32>],
                    &vec![event],
                    &vec![ordinal],
                    &vec![json],
                ],
            )
            .await
            .expect("answered");
        assert_eq!(row.expect("written").get::<_, i64>(0), tail + 1);
    }

    async fn epoch(&self, run: &str) -> i64 {
        let row = self.client.query_one("SELECT epoch FROM runs WHERE run_id = $1", &[&run]).await;
        row.expect("there is one").get(0)
    }

    /// Takes a run over.
    pub async fn claim(&self, run: &str) {
        let sql = "UPDATE runs SET epoch = epoch + 1, lease_owner = 'old', lease_nonce = $1, \
                   lease_until = outlast_now() + 600000, claimed_at = outlast_now() WHERE run_id = $1";
        self.client.execute(sql, &[&run]).await.expect("claimed");
    }

    /// Ends a run.
    pub async fn finish(&self, run: &str) {
        let row = self.client.query_one("SELECT run FROM runs WHERE run_id = $1 FOR UPDATE", &[&run]).await;
        let key: i64 = row.expect("there is one").get(0);
        let none = None::<String>;
        self.client
            .execute(FINISH, &[&key, &"completed", &none, &"exited", &none, &Some(0_i32)])
            .await
            .expect("ended");
    }

    /// What the thread has said, as this host tells it.
    pub async fn transcript(&self, thread: &str) -> Vec<(String, i64, Message)> {
        let rows = self.client.query(TRANSCRIPT, &[&"", &thread]).await.expect("read");
        rows.iter()
            .map(|row| (row.get(0), row.get(1), serde_json::from_str(row.get(2)).expect("a message")))
            .collect()
    }
}
