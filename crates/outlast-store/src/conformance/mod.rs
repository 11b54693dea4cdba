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
//! outlast_store::conformance_tests!(Memory(MemoryStore::for_tests(Ports::system())));
//! # fn main() {}
//! ```
//!
//! # What a store can break
//!
//! | what must always hold | the cases that show it |
//! |---|---|
//! | No event is delivered that is not durable: what was answered is there for every process | `append`, `read::a_closed_log_is_complete`, `lost_answers` |
//! | One writer: a write commits only if claim and tail are current | `fence`, `append::a_moved_tail_changes_nothing`, `append::racing_from_one_tail` |
//! | … also where a claim commits while the write is under way | `fence::appends_racing_a_claim`, `fence::an_append_that_waits_while_a_claim_is_made`, `fence::a_claim_that_waits_while_an_append_is_made` |
//! | … from the moment that a run is accepted | `accept::records_the_run`, `accept::racing_with_one_id` |
//! | At most one claim, each with an epoch of its own; a refusal writes nothing | `claim`, `claim::racing_claims`, `renew::racing_a_claim` |
//! | A claim that nobody knows of runs out | `renew::leaves_alone_what_is_not_named`, `lost_answers::of_a_claim`, `lost_answers::of_an_acceptance` |
//! | The end is one transaction, once, and final | `finish`, `finish::once_out_of_many`, `read::a_closed_log_is_complete` |
//! | Stop is durable, and never overlooked by an end | `cancel`, `cancel::racing_the_end` |
//! | At most one live run on a thread, or in a lent workspace; an id is taken for ever | `accept::racing_on_one_thread`, `accept::racing_in_one_workspace`, `accept::another_request_under_the_id` |
//! | An instance is never used again, and never destroyed under a run | `instances`, `instances::racing_to_use_and_to_destroy`, `instances::racing_to_create` |
//! | A sandbox is destroyed after a durable end only, by one at a time, and tried until it is gone | `reclaim` |
//! | Events age out as a whole, messages outlive them, a record goes last | `retain` |
//! | A record is added once, to a tip that is current; another record under its id is refused | `ledger` |
//! | Nothing ever points to a body that a collection may have deleted | `bodies` |
//! | Upkeep has one holder at a time, and a lost one changes nothing | `leases` |
//! | What was deleted does not begin again by accident | `deleting` |
//! | The time that decides ownership is the store's | `claim::a_lease_runs_out_exactly`, `claim::a_reboot_ends_a_lease`, `presence` |
//! | An unknown outcome is settled by the same write again | `lost_answers`, `append::a_batch_counts_once`, `finish::the_same_finish_again`, `claim::the_same_wish_again`, `accept::the_same_attempt_again` |
//! | Stopping a host is a hand-over | `claim::a_release_lets_the_next_in`, `claim::closing_gives_claims_back` |
//! | What belongs to one tenant does not exist for another | `tenants` |
//!
//! What the suite cannot bring about is for a backend's own tests: that a commit survives a crash; that a store which is
//! full, slow or away answers [`crate::StoreError::Unavailable`] and goes on afterwards; that no reader slows a writer; that
//! a host whose own clock is wrong changes nothing where the store has a clock of its own; that versions can follow each
//! other.

mod backend;
pub mod cases;
mod clock;
mod list;
mod run;
mod world;

pub use backend::{Backend, HeldOpen};
pub use clock::ManualClock;
pub use run::run_case;
pub use world::{Host, World};
