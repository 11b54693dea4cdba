//! What every backend promises, as tests.
//!
//! A backend implements [`Backend`] for its tests and calls [`crate::conformance_tests!`], which makes one named
//! `#[test]` of each case; each gets a fresh backend.
//!
//! ```
//! use std::sync::Arc;
//! use outlast_core::OwnerId;
//! use outlast_store::conformance::Backend;
//! use outlast_store::{MemoryStore, Ports, Store};
//!
//! struct Memory(MemoryStore);
//!
//! #[async_trait::async_trait]
//! impl Backend for Memory {
//!     async fn open(&self, owner: OwnerId, ports: Ports) -> Arc<dyn Store> {
//!         Arc::new(self.0.joined_by(owner, ports))
//!     }
//! }
//!
//! outlast_store::conformance_tests!(Memory(MemoryStore::new(Ports::system())));
//! # fn main() {}
//! ```

mod backend;
pub mod cases;
mod clock;
mod list;
mod run;
mod world;

pub use backend::Backend;
pub use clock::ManualClock;
pub use run::run_case;
pub use world::{Host, World};
