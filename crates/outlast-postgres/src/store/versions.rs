//! What the store is made of, for people.

use outlast_store::StoreError;

use super::handle::PostgresStore;
use crate::failure::Failure;

/// The versions of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Of the tables. May be newer than what this program would make.
    pub schema: i32,
    /// Of PostgreSQL, in its own words.
    pub server: String,
}

impl PostgresStore {
    /// Asks the database for its versions.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn versions(&self) -> Result<Versions, StoreError> {
        let client = self.shared.client().await?;
        let asked = async {
            let sql = "SELECT schema_version, current_setting('server_version') FROM outlast_meta";
            let row = client.query_one(sql, &[]).await?;
            Ok(Versions { schema: row.try_get(0)?, server: row.try_get(1)? })
        };
        asked.await.map_err(|error: Failure| error.told())
    }
}
