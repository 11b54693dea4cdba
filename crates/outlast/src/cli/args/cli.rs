//! The commands, and what stands beside all of them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use outlast_core::run::OnDisconnect;

use super::{SessionCommand, WorkspaceCommand};
use crate::config::{Limit, parse_duration, parse_limit};

/// Runs coding agents so that a run outlasts its terminal, its host and its deploy.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 110, after_help = AFTER_HELP)]
pub struct Cli {
    /// What is kept: runs, logs, transcripts and local sandboxes [env: OUTLAST_DATA_DIR] [default: outlast in the XDG
    /// data home]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub data_dir: Option<PathBuf>,
    /// Where runs, logs and transcripts are kept, for many hosts: postgres://USER:PASSWORD@HOST:PORT/DATABASE [env:
    /// OUTLAST_STORE] [default: a file in the data directory]
    #[arg(long, global = true, value_name = "URL", help_heading = "Everywhere", hide_env_values = true)]
    pub store: Option<String>,
    /// The configuration [env: OUTLAST_CONFIG] [default: outlast.toml in the working directory, else in the data
    /// directory]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Everywhere")]
    pub config: Option<PathBuf>,
    /// Machine-readable output: a listing as one JSON array, a stream as one line for each event
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Closing the terminal, Ctrl-C and kill -9 detach: the agent works on. `outlast attach RUN` comes back to it, \
`outlast cancel RUN` stops it.

Exit status of run and attach: the agent's own, or 1 where the run failed although the agent exited with 0; 143 where \
the run was cancelled. Where the run goes on without you: 130 after Ctrl-C, 129 after a hang-up, 143 after SIGTERM, \
141 where nobody reads the output any more. 125 where Outlast itself could not go on. Other commands: 0, or 1 on \
failure. Wrong usage: 2.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a run and follow it
    Run(RunArgs),
    /// Replay a run and follow it; take it over where nobody drives it
    Attach(AttachArgs),
    /// List runs: the live ones, or all
    Ps(PsArgs),
    /// Show what is known of a run
    Show(ShowArgs),
    /// Print a run's stored events
    Logs(RunArg),
    /// Hold a run's log against its journal: is it the exact translation?
    Verify(RunArg),
    /// Stop a run: its agent, and every process that the agent started
    Cancel(RunArg),
    /// Sweep once over the runs that nobody watches: complete the finished, stop those whose time is up
    ///
    /// Runs whose agents work and whose time is not up are left alone, and so is what somebody watches. `outlast serve`
    /// does the same every minute. Exit status 1 if the listing, a run or a sandbox failed.
    Reap(ReapArgs),
    /// Destroy the sandboxes of ended runs that are due, or that of one run
    ///
    /// A sandbox is due some time after its last run has ended ([sandbox] keep_alive). One that a live run uses, and a
    /// directory of yours, are left alone. `outlast serve` does the same every half minute.
    Reclaim {
        /// Only the sandbox of this run, if it is due; `outlast sandbox rm` does not wait for that
        run: Option<String>,
    },
    /// List sandboxes, destroy them, find those without a record
    Sandbox {
        /// What to do
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// Show what lasts of threads; export, import, collect and delete it
    Session {
        /// What to do
        #[command(subcommand)]
        command: SessionCommand,
    },
    /// Snapshot workspaces, list and restore the snapshots
    Workspace {
        /// What to do
        #[command(subcommand)]
        command: WorkspaceCommand,
    },
    /// Delete what is of no use any more: what has aged out, bodies to which nothing points, snapshots that nothing names
    ///
    /// Events go 30 days after their run has ended, threads when [retention] says; then the same as `outlast session gc --all`
    /// and `outlast workspace gc`. `outlast serve` does all this every hour.
    Gc {
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete the journals of runs that have ended, in sandboxes that live on
    Prune(PruneArgs),
    /// Serve runs over HTTP, keep every run of this data directory driven, and see to what nobody watches
    ///
    /// It also does what `outlast reap`, `reclaim`, `sandbox orphans --destroy`, `prune` and `gc` do, every so often. SIGTERM and
    /// Ctrl-C end the server and no run.
    Serve(ServeArgs),
    /// Look at what runs need here, what they outlive and what was left behind: a line for each check, exit status 1 on a
    /// problem
    Doctor,
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The agent: demo, claude-code, codex, or one of the configuration
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The model, where the agent lets one choose
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// The conversation to go on with [default: a new one]
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// The run's id, unique for ever: the same command with the same id shows the same run [default: a new one]
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    /// A directory of yours to work in; nothing ever deletes it [default: a directory of the thread's own]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let live runs of other threads use the same workspace
    #[arg(long, requires = "workspace")]
    pub share_workspace: bool,
    /// How long the run may go on with nobody attached (30m, 24h, 7d), or none; then a sweep stops it [default: 24h, or
    /// that of [reap]]
    #[arg(long, value_name = "D", value_parser = parse_limit)]
    pub detach_ttl: Option<Limit>,
    /// What happens when the last viewer leaves, by Ctrl-C, SIGTERM or a closed terminal [default: the agent's, else
    /// detach]
    #[arg(long, value_name = "WHAT")]
    pub on_disconnect: Option<OnDisconnectArg>,
    /// Start it, print its id and leave it alone
    #[arg(short = 'd', long)]
    pub detach: bool,
    /// What the agent is to do; `-` reads it from standard input
    pub prompt: Option<String>,
    /// The agent is this command
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// What happens when the last viewer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDisconnectArg {
    /// The agent works on
    Detach,
    /// The run is cancelled
    Cancel,
}

impl From<OnDisconnectArg> for OnDisconnect {
    fn from(arg: OnDisconnectArg) -> Self {
        match arg {
            OnDisconnectArg::Detach => OnDisconnect::Detach,
            OnDisconnectArg::Cancel => OnDisconnect::Cancel,
        }
    }
}

/// Of `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The run
    pub run: String,
    /// Only what comes after this offset, the `id` of an event; -1 is the start, now the end
    #[arg(long, value_name = "OFFSET", default_value = "-1", allow_hyphen_values = true)]
    pub from: String,
}

/// Of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The address; one that other machines reach needs a token [env: OUTLAST_LISTEN] [default: 127.0.0.1:7411]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// The file with the token that requests must bear; or the token itself in the environment as OUTLAST_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The agent of requests that name none [default: the one of [serve], else the only one that the configuration
    /// defines]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
}

/// Of `reap`.
#[derive(Debug, Args)]
pub struct ReapArgs {
    /// How long any run may go on without a viewer, in place of its own time
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
    /// How many runs are completed or stopped at most; the next sweep goes on with the others [default: 25, or that of
    /// [reap]]
    #[arg(long, value_name = "N")]
    pub max_runs: Option<usize>,
    /// How long a run may make no progress while it is completed, or take to be stopped [default: 30s, or that of [reap]]
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    pub run_budget: Option<Duration>,
    /// After what time no further run is begun with [default: none]
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    pub time_limit: Option<Duration>,
}

/// Of `sandbox`.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// List sandboxes: whose they are, since when, and what they wait for
    Ls,
    /// Destroy sandboxes now, due or not; one that a live run uses is left alone
    Rm {
        /// The sandboxes, or enough of the beginning of their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// List sandboxes of this deployment that no record knows of, or clear them away
    Orphans {
        /// Put aside those that are old enough, and destroy those that were put aside that long ago
        #[arg(long)]
        destroy: bool,
        /// How old they must be [default: 1h, or that of [reap]]
        #[arg(long, value_name = "D", value_parser = parse_duration)]
        grace: Option<Duration>,
    },
}

/// Of `prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// How old the files of a run must be that the store does not know (30m, 1h, 7d)
    #[arg(long, value_name = "D", value_parser = parse_duration, default_value = "1h")]
    pub orphan_ttl: Duration,
    /// How many runs' journals to delete at most; the next call goes on
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub max_deletes: usize,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Of `ps`.
#[derive(Debug, Args)]
pub struct PsArgs {
    /// Ended runs too
    #[arg(short, long)]
    pub all: bool,
}

/// Of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run
    pub run: String,
    /// Its transcript
    #[arg(long)]
    pub messages: bool,
}

/// A run.
#[derive(Debug, Args)]
pub struct RunArg {
    /// The run
    pub run: String,
}
