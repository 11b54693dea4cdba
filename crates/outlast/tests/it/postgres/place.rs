//! Databases, and data directories whose processes keep their state there.

use std::process::Command;

use outlast::store::{Entropy, SystemEntropy};

use crate::support::Bench;

/// A schema of its own on the server that `OUTLAST_TEST_POSTGRES` names, else on that of this machine. Dropped with what
/// is in it.
pub struct Schema {
    name: String,
    pub url: String,
}

/// The PostgreSQL of the tests.
pub fn server() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
}

fn psql(sql: &str) -> bool {
    let mut psql = Command::new("psql");
    psql.args([&server(), "-qc", sql]).env("PGOPTIONS", "-c client_min_messages=error");
    psql.status().expect("this test needs psql (Debian: apt-get install postgresql)").success()
}

impl Schema {
    pub fn new() -> Schema {
        let name = format!("outlast_test_{}", SystemEntropy.hex_id());
        assert!(
            psql(&format!("CREATE SCHEMA {name}")),
            "PostgreSQL is needed for this test: start it, or name another with OUTLAST_TEST_POSTGRES"
        );
        let url = format!("{}?options=-c%20search_path%3D{name}", server());
        Schema { name, url }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        psql(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}

/// A data directory whose processes keep their state in this database, with a lease that is short enough for tests.
pub fn bench(url: &str, notifications: bool) -> Bench {
    Bench::with_config(&format!(
        "[driver]\nlease = \"1500ms\"\n[store]\nurl = \"{url}\"\nnotifications = {notifications}\n"
    ))
}
