//! What holds an agent's tree together, and how it is killed. The shim makes and kills its own fence ([`active`]); a
//! host that finds a shim dead or stuck kills the fence that the latch names ([`cgroup`], [`tree`]).

pub(crate) mod active;
pub mod cgroup;
mod choose;
pub mod tree;

pub(crate) use choose::choose;
