//! The in-memory store keeps every promise of a store.

use std::sync::Arc;

use outlast_core::OwnerId;
use outlast_store::conformance::Backend;
use outlast_store::{MemoryStore, Ports, Store};

struct Memory(MemoryStore);

#[async_trait::async_trait]
impl Backend for Memory {
    async fn open(&self, owner: OwnerId, ports: Ports) -> Arc<dyn Store> {
        Arc::new(self.0.joined_by(owner, ports))
    }
}

outlast_store::conformance_tests!(Memory(MemoryStore::for_tests(Ports::system())));
