//! The shim: the small program that lives beside an agent, owns its journal and outlives every host.
//!
//! [`main`] is the whole program. It is single-threaded and synchronous from its first instruction to its last, which
//! is what makes forking without `exec` sound; it must therefore be called before a process has started any thread.
//! The modules are what a provider needs to look at a shim's work from outside.
//!
//! Four processes take part. The *host* starts the *shim* and may die at any time after that. The shim forks the
//! *keeper*, which sits inside the fence, starts the *agent*, and reaps whatever the agent leaves behind; it is the
//! init of the PID namespace where there is one. The keeper waits for a word of the shim before it starts anything, so
//! every pid is known, written and synced before the agent exists.

mod entry;
mod exit;
pub mod fence;
mod files;
mod keeper;
pub mod latch;
pub mod lock;
pub mod process;
mod pump;
mod request;
mod sys;

pub use entry::main;
