//! What the local provider needs to know.

use std::ffi::OsString;
use std::path::PathBuf;

use outlast_store::Ports;

/// Where sandboxes lie and what starts agents in them.
#[derive(Debug, Clone)]
pub struct LocalConfig {
    /// The directory that holds the instances; made if it is missing, readable for its owner only.
    pub root: PathBuf,
    /// The shim.
    pub shim: ShimProgram,
    /// Time and randomness.
    pub ports: Ports,
}

/// How a shim is started: the program, its arguments, and after them what [`outlast_shim::main`] takes.
#[derive(Debug, Clone)]
pub struct ShimProgram {
    /// The program, as a path.
    pub program: PathBuf,
    /// Its first arguments.
    pub args: Vec<OsString>,
}
