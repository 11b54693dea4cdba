//! Runs coding agents so that a run outlasts its viewer, its host and its deploy.
//!
//! A run is one turn of an agent on a thread. Its agent works in a sandbox beside a small program, the shim, that keeps
//! what the agent prints in a journal and outlives every host. Whoever holds the run's claim turns the journal into the
//! delivery log, an ordered and durable list of events that any number of viewers follow by offset. A viewer that
//! leaves detaches; a host that dies is succeeded by another; a Stop is a durable command.
//!
//! This crate is the facade for programs that embed Outlast; its binary is the command line. [`Local`] opens a data
//! directory on this machine and gives a [`Host`]:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use outlast::{Local, LocalOptions, Start};
//!
//! let local = Local::open(LocalOptions::new("/var/lib/my-agents")).await?;
//! let start = Start::command("run-1".parse()?, "thread-1".parse()?, ["echo", "hello"]);
//! let started = local.host().start(start).await?;
//! let end = local.host().keep(started).end().await;
//! println!("{end:?}");
//! local.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The shim is a process of its own. By default this very program is started again for it, so `main` begins with
//! [`run_shim_if_asked`].

pub mod config;
#[cfg(feature = "cli")]
mod count;
pub mod demo;
#[cfg(feature = "cli")]
mod doctor;
mod local;

#[cfg(feature = "cli")]
pub mod cli;

pub use local::{Local, LocalOptions, OpenError, SHIM_COMMAND, StoreChoice, run_shim_if_asked};
pub use outlast_agents as agents;
pub use outlast_core as core;
pub use outlast_core::{ErrorCode, Offset, RunId, Seq, Tenant, ThreadId};
#[cfg(feature = "postgres")]
pub use outlast_postgres as postgres;
pub use outlast_runtime::{
    CancelError, CancelReport, CheckpointWhen, Driven, Environment, Host, KeepEnd, Keeper, Notice, Notices,
    Observer, Options, Orphan, OrphanState, Presence, PruneFailure, PruneKept, PruneOptions, PruneResult,
    PruneStage, ReapClaim, ReapError, ReapOptions, ReapOutcome, ReapResult, ReapRun, ReapSteps,
    ReclaimOutcome, ReclaimResult, ReclaimedSandbox, RetainOptions, RetainResult, RunProbe,
    SandboxReclaimFailed, SandboxView, Seen, ShippedSteps, Start, StartError, Started, VerifyError,
    VerifyReport, Viewer, WorkspaceOptions,
};
pub use outlast_sandbox as sandbox;
#[cfg(feature = "server")]
pub use outlast_server as server;
pub use outlast_session as session;
pub use outlast_store as store;
