//! Of what lasts of threads: `session` and `workspace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::config::parse_duration;

/// Of `session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List sessions, the last active first
    Ls {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show what is known of a thread's session
    Show {
        /// The thread, or the id of its session
        thread: String,
        /// Its messages: the whole conversation
        #[arg(long)]
        messages: bool,
        /// Only the latest so many
        #[arg(long, value_name = "N", requires = "messages")]
        limit: Option<usize>,
    },
    /// Write a session, bodies included, into one file: its backup
    Export {
        /// The thread, or the id of its session
        thread: String,
        /// The file; `-` is standard output
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Go on where a body is missing: what stands for it is written
        #[arg(long)]
        incomplete: bool,
    },
    /// Read a session from a file that `export` has written
    Import {
        /// The file
        file: PathBuf,
        /// The thread [default: the one that was exported]
        #[arg(long, value_name = "ID")]
        thread: Option<String>,
    },
    /// Delete bodies to which nothing points, of one session or of all
    #[command(override_usage = "outlast session gc [OPTIONS] <THREAD|--all>")]
    Gc {
        /// The thread, or the id of its session
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        thread: Option<String>,
        /// Of all sessions
        #[arg(long)]
        all: bool,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
        /// How old they must be [default: 1h, or that of [sessions]]
        #[arg(long, value_name = "D", value_parser = parse_duration)]
        grace: Option<Duration>,
    },
    /// Delete a thread for ever: runs, events, messages, bodies, its sandbox; its id is not used again
    Rm {
        /// The thread, or the id of its session
        thread: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// Of `workspace`.
#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Snapshot a thread's workspace
    Checkpoint {
        /// The thread
        thread: String,
        /// The directory [default: the workspace of the thread's sandbox on this machine]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Leave out what this pattern matches, as in .gitignore; may be repeated
        #[arg(long, value_name = "PATTERN")]
        exclude: Vec<String>,
        /// Take also files that usually hold secrets
        #[arg(long)]
        include_secrets: bool,
        /// Leave out what the tree's .gitignore files leave out
        #[arg(long)]
        gitignore: bool,
    },
    /// Restore a snapshot: into the thread's workspace, or into another directory
    ///
    /// What is in the way is put aside, never deleted. Without a sandbox on this machine, the thread's next run begins with the
    /// snapshot.
    #[command(override_usage = "outlast workspace restore [OPTIONS] <THREAD> <REF|--run <RUN>|--seq <N>>")]
    Restore(RestoreArgs),
    /// List the snapshots of a thread's workspace
    Ls {
        /// The thread, or the id of its session
        thread: String,
    },
    /// Show what a snapshot holds
    Show {
        /// Its reference
        #[arg(value_name = "REF")]
        reference: String,
    },
    /// Put aside snapshots that no session names, and delete what was put aside long enough ago
    Gc {
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
        /// Go on although far fewer snapshots are in use than before
        #[arg(long)]
        force: bool,
        /// How old objects must be to be put aside [default: 1h, or that of [sessions]]
        #[arg(long, value_name = "D", value_parser = parse_duration)]
        grace: Option<Duration>,
        /// How long they stay aside [default: 24h, or that of [sessions]]
        #[arg(long, value_name = "D", value_parser = parse_duration)]
        quarantine: Option<Duration>,
    },
}

/// Of `workspace restore`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["reference", "run", "seq"]))]
pub struct RestoreArgs {
    /// The thread, or the id of its session
    pub thread: String,
    /// The snapshot
    #[arg(value_name = "REF")]
    pub reference: Option<String>,
    /// The one that was made after this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// The one of the ledger's record with this number
    #[arg(long, value_name = "N")]
    pub seq: Option<u64>,
    /// The directory [default: the workspace of the thread's sandbox]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// What becomes of files that the snapshot does not have
    #[arg(long, value_name = "MODE", default_value = "exact")]
    pub mode: RestoreModeArg,
}

/// What becomes of files that the snapshot does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RestoreModeArg {
    /// The directory becomes what the snapshot says; whatever differs is put aside
    Exact,
    /// They stay; only what the snapshot replaces is put aside
    Overlay,
}
