//! The port to sandboxes.
//!
//! A [`Provider`] creates instances, starts shims in them, reads journals and kills agents. Everything that it does to
//! a run it does by the run's own fence or by an instance id that is never used again.

#[cfg(feature = "conformance")]
pub mod conformance;
#[doc(hidden)]
pub use outlast_store::fail;
mod local;
mod probe;
mod provider;
pub mod remote_listing;
mod run_files;

pub use local::{LocalConfig, LocalProvider, ShimProgram};
pub use probe::{EXIT_PROBE_BYTES, RunExit, probe_run_exit};
pub use provider::{
    Found, InstancePaths, Journal, JournalRead, KillOutcome, LaunchError, LaunchOrder, LaunchOutcome,
    Provider, ProviderError,
};
pub use run_files::{AgeGate, RunFile, RunGroup, RunListing};
