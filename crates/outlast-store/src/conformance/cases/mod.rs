//! The cases. Each is one promise of [`crate::Store`]; its name and first line say which.

pub mod accept;
pub mod append;
pub mod bodies;
pub mod cancel;
pub mod claim;
pub mod deleting;
pub mod fence;
pub mod finish;
pub mod instances;
pub mod leases;
pub mod ledger;
pub mod list;
pub mod lost_answers;
pub mod messages;
pub mod presence;
pub mod read;
pub mod reclaim;
pub mod renew;
pub mod retain;
pub mod tenants;
pub mod watch;
