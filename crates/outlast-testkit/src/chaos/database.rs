//! A schema of its own, and connections that are cut.

use std::io;

use tokio_postgres::{Client, NoTls};

/// The round's place in PostgreSQL.
pub(super) struct Database {
    client: Client,
    schema: String,
    /// What the servers are given.
    pub url: String,
}

impl Database {
    pub async fn create(server: &str, schema: &str) -> io::Result<Database> {
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.map_err(io::Error::other)?;
        let separator = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{separator}application_name={schema}&options=-c%20search_path%3D{schema}");
        Ok(Database { client, schema: schema.to_owned(), url })
    }

    /// Cuts each of the servers' connections with this chance in a hundred; says how many.
    pub async fn cut(&self, percent: u64) -> io::Result<usize> {
        let percent = i32::try_from(percent).unwrap_or(100);
        let rows = self
            .client
            .query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = $1 AND random() * 100 < $2::int4",
                &[&self.schema, &percent],
            )
            .await;
        Ok(rows.map_err(io::Error::other)?.len())
    }

    pub async fn drop_schema(&self) -> io::Result<()> {
        let sql = format!("SET client_min_messages = error; DROP SCHEMA {} CASCADE", self.schema);
        self.client.batch_execute(&sql).await.map_err(io::Error::other)
    }
}
