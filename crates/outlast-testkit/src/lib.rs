//! What the tests of Outlast share: simulated time, stores and sandboxes that fail as they are told, scripted agents.
//!
//! [`sim::simulate`] runs several hosts of the real runtime against one store and one set of sandboxes under simulated
//! time, with faults and an adversary drawn from a seed, and checks every promise at the end. The same seed is the same
//! history, event for event.
//!
//! [`chaos::round`] does the same to real processes: servers on one PostgreSQL, viewers behind a proxy that cuts.

pub mod chaos;
mod dice;
pub mod sim;
