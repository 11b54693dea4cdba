//! A real program, a home of its own, and the model that it talks to.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::endpoint::Endpoint;
use crate::support::{Bench, Finished, Logged, Proc, skipped};

/// Which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    ClaudeCode,
    Codex,
}

/// Everything that one test with a real program needs.
pub struct Stage {
    pub program: Program,
    pub bench: Bench,
    pub endpoint: Endpoint,
    /// The key with which the program is to call the endpoint; no other test has it.
    pub key: String,
    /// Where the programs are.
    programs: PathBuf,
}

/// The variable from which Codex's configuration takes its key. Not one that Outlast knows by itself.
const CODEX_KEY: &str = "SCRIPTED_MODEL_KEY";

impl Program {
    /// The agent's name and kind.
    pub fn agent(self) -> &'static str {
        match self {
            Program::ClaudeCode => "claude-code",
            Program::Codex => "codex",
        }
    }

    /// The program's own name.
    pub fn file(self) -> &'static str {
        match self {
            Program::ClaudeCode => "claude",
            Program::Codex => "codex",
        }
    }

    /// The tool by which it runs commands, as told in events.
    pub fn shell(self) -> &'static str {
        match self {
            Program::ClaudeCode => "Bash",
            Program::Codex => "command_execution",
        }
    }

    /// Where it keeps its sessions, below its home.
    fn sessions(self) -> &'static str {
        match self {
            Program::ClaudeCode => ".claude/projects",
            Program::Codex => ".codex/sessions",
        }
    }
}

impl Stage {
    /// The program with a model that follows the script. None, visibly, where the program is missing.
    pub fn scripted(program: Program) -> Option<Stage> {
        Stage::with(program, Endpoint::scripted)
    }

    /// As [`Stage::scripted`], with a model of which every call fails with this status.
    pub fn failing(program: Program, status: u16) -> Option<Stage> {
        Stage::with(program, || Endpoint::failing(status))
    }

    fn with(program: Program, endpoint: impl FnOnce() -> Endpoint) -> Option<Stage> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let programs = programs();
        if !programs.join(program.file()).exists() {
            skipped(&format!("there is no {} in {}", program.file(), programs.display()));
            return None;
        }
        let bench = Bench::with_config(&format!(
            "[driver]\nlease = \"1500ms\"\n\
             [agents.claude-code]\nkind = \"claude-code\"\nenv = {{ CLAUDE_CODE_MAX_RETRIES = \"1\" }}\n\
             [agents.codex]\nkind = \"codex\"\npass_env = [\"{CODEX_KEY}\"]\n"
        ));
        let key = format!("sk-scripted-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let stage = Stage { program, bench, endpoint: endpoint(), key, programs };
        fs::create_dir_all(stage.home().join(".codex")).expect("home");
        let config = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{}/v1\"\nenv_key = \"{CODEX_KEY}\"\nwire_api = \"responses\"\nrequest_max_retries = 0\n\
             stream_max_retries = 0\n",
            stage.endpoint.url()
        );
        fs::write(stage.home().join(".codex/config.toml"), config).expect("Codex's configuration");
        Some(stage)
    }

    /// The home that the program finds.
    pub fn home(&self) -> PathBuf {
        self.bench.path().join("home")
    }

    /// `outlast`, in an environment in which the program talks to the endpoint.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        for (name, _) in std::env::vars_os() {
            let upper = name.to_string_lossy().to_ascii_uppercase();
            let foreign = ["ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "XDG_"];
            if foreign.iter().any(|prefix| upper.starts_with(prefix)) || upper.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> =
            std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path)).collect();
        let path: OsString = std::env::join_paths(path).expect("a path");
        command.env("PATH", path).env("HOME", self.home());
        match self.program {
            Program::ClaudeCode => {
                command.env("ANTHROPIC_BASE_URL", self.endpoint.url()).env("ANTHROPIC_API_KEY", &self.key)
            }
            Program::Codex => command.env(CODEX_KEY, &self.key),
        };
        command
    }

    /// Starts `outlast`.
    pub fn spawn(&self, args: &[&str]) -> Proc {
        Proc::new(self.command(args).spawn().expect("spawn"))
    }

    /// Starts `outlast run --json` of the agent under this run id, on this thread, in the lent workspace.
    pub fn start(&self, run: &str, thread: &str, prompt: &str) -> Proc {
        let workspace = self.bench.workspace();
        let workspace = workspace.to_str().expect("utf-8");
        let agent = self.program.agent();
        let args = ["run", "--json", "--run-id", run, "--thread", thread, "--agent", agent];
        self.spawn(&[&args[..], &["--workspace", workspace, prompt]].concat())
    }

    /// The same, to its end.
    pub fn run(&self, run: &str, thread: &str, prompt: &str) -> Finished {
        self.start(run, thread, prompt).finish()
    }

    /// The files in which the program keeps its sessions.
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut found = files_below(&self.home().join(self.program.sessions()));
        found.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        found
    }

    /// Makes the program forget its sessions.
    pub fn lose_sessions(&self) {
        assert!(!self.session_files().is_empty(), "there are sessions to be lost");
        fs::remove_dir_all(self.home().join(self.program.sessions())).expect("sessions");
        assert!(self.session_files().is_empty());
    }
}

/// The values of the log's `CUSTOM` events of this name.
pub fn customs<'a>(log: &'a [Logged], name: &str) -> Vec<&'a Value> {
    log.iter().filter(|event| event.json["name"] == name).map(|event| &event.json["value"]).collect()
}

/// Every file below the directory.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_below(&entry.path()),
        Ok(kind) if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    });
    below.collect()
}

fn programs() -> PathBuf {
    match std::env::var_os("OUTLAST_TEST_AGENTS") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents/node_modules/.bin"),
    }
}
