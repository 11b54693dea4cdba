//! What every store promises; each host is a store of its own on the same file.

use std::sync::Arc;

use outlast_core::OwnerId;
use outlast_sqlite::{SqliteConfig, SqliteStore};
use outlast_store::conformance::Backend;
use outlast_store::{Ports, Store};

struct Directory(tempfile::TempDir);

#[async_trait::async_trait]
impl Backend for Directory {
    async fn open(&self, owner: OwnerId, ports: Ports) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(SqliteConfig::new(self.0.path(), owner, ports)).unwrap())
    }
}

outlast_store::conformance_tests!(Directory(tempfile::tempdir().unwrap()));
