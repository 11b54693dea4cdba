//! Reading the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::run::{LaunchSpec, Lifecycle, OnDisconnect, SandboxSpec};
use outlast_core::shim::{FenceChoice, OutputLimits};
use outlast_runtime::WorkspaceOptions;
use serde::Deserialize;

use super::check::unknown_key;
use super::keep::{ReapConfig, ReapFile, RetentionConfig, RetentionFile, SandboxFile};
use super::serve::{ServeConfig, ServeFile};
use super::sessions::{ObjectsFile, SessionsConfig, SessionsFile, WorkspaceFile};
use super::units::parse_duration;

/// The file's name, in the working directory or the data directory.
const FILE_NAME: &str = "outlast.toml";

/// The shortest lease: a holder must be able to renew it several times before it ends.
const SHORTEST_LEASE: Duration = Duration::from_millis(300);

/// The whole configuration, with defaults for what the file leaves out.
#[derive(Debug, Clone)]
pub struct Config {
    /// The agents by name: those of the file and the built-in ones.
    pub agents: BTreeMap<String, AgentConfig>,
    /// The names of those that the file defines.
    pub own_agents: Vec<String>,
    /// Where and how agents run that name no sandbox.
    pub sandbox: SandboxConfig,
    /// Sandboxes that agents name.
    pub sandboxes: BTreeMap<String, SandboxConfig>,
    /// How long a lease runs; none: the default.
    pub lease: Option<Duration>,
    /// How runs that nobody watches are brought to their end.
    pub reap: ReapConfig,
    /// What is kept after a run has ended.
    pub retention: RetentionConfig,
    /// The URL of the store; none: the SQLite file in the data directory.
    pub store_url: Option<String>,
    /// Whether hosts that share a store tell each other of changes; without it, each looks by itself.
    pub store_notifications: bool,
    /// How `outlast serve` serves.
    pub serve: ServeConfig,
    /// Where large bodies and snapshots of workspaces are; none: `objects` in the data directory.
    pub objects: Option<String>,
    /// When and how workspaces are snapshotted.
    pub workspace: WorkspaceOptions,
    /// How sessions are looked after.
    pub sessions: SessionsConfig,
    /// The file that it was read from.
    pub file: Option<PathBuf>,
}

/// One agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct AgentConfig {
    /// `command`, `claude-code` or `codex`.
    pub kind: String,
    /// The program and its first arguments. Empty: the kind's default.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Variables with values that are no secrets: they are stored with every run.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of variables that are taken from the environment of whoever launches. A run is not launched without them.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// The working directory, relative to the workspace unless absolute.
    pub cwd: Option<String>,
    /// The model, unless a run asks for another.
    pub model: Option<String>,
    /// `prompt` (the default) or `none`.
    #[serde(default)]
    pub stdin: Stdin,
    /// What happens when the last viewer of a run leaves, unless the run says otherwise: `detach` (the default) or
    /// `cancel`.
    pub on_disconnect: Option<OnDisconnect>,
    /// The sandbox of its runs, one of `[sandboxes]`; none: `[sandbox]`.
    pub sandbox: Option<String>,
}

/// What an agent's standard input is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// The prompt.
    #[default]
    Prompt,
    /// Empty; the prompt is only in the file that `OUTLAST_PROMPT_FILE` names.
    None,
}

/// Where and how agents run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Which fence holds an agent's tree.
    pub fence: FenceChoice,
    /// Bounds of what an agent prints.
    pub limits: OutputLimits,
    /// How long a sandbox lives.
    pub lifecycle: Lifecycle,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// What stands in it makes no sense.
    #[error("{}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
}

#[derive(Debug, Default, Deserialize)]
struct File {
    #[serde(default)]
    agents: BTreeMap<String, AgentConfig>,
    #[serde(default)]
    sandbox: SandboxFile,
    #[serde(default)]
    sandboxes: BTreeMap<String, SandboxFile>,
    #[serde(default)]
    driver: DriverFile,
    #[serde(default)]
    reap: ReapFile,
    #[serde(default)]
    retention: RetentionFile,
    #[serde(default)]
    serve: ServeFile,
    #[serde(default)]
    store: StoreFile,
    #[serde(default)]
    objects: ObjectsFile,
    #[serde(default)]
    workspace: WorkspaceFile,
    #[serde(default)]
    sessions: SessionsFile,
}

#[derive(Debug, Default, Deserialize)]
struct DriverFile {
    lease: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct StoreFile {
    url: Option<String>,
    notifications: Option<bool>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            agents: built_in_agents(),
            own_agents: Vec::new(),
            sandbox: SandboxConfig::default(),
            sandboxes: BTreeMap::new(),
            lease: None,
            reap: ReapConfig::default(),
            retention: RetentionConfig::default(),
            store_url: None,
            store_notifications: true,
            serve: ServeConfig::default(),
            objects: None,
            workspace: WorkspaceOptions::default(),
            sessions: SessionsConfig::default(),
            file: None,
        }
    }
}

impl Config {
    /// Reads the named file, else `outlast.toml` in the working directory, else the one in the data directory, else
    /// takes the defaults.
    pub fn load(named: Option<&Path>, data_dir: &Path) -> Result<Config, ConfigError> {
        let candidates = match named {
            Some(path) => vec![path.to_owned()],
            None => vec![PathBuf::from(FILE_NAME), data_dir.join(FILE_NAME)],
        };
        for path in candidates {
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let mut config = Config::parse(&text)
                        .map_err(|message| ConfigError::Invalid { path: path.clone(), message })?;
                    config.file = Some(path);
                    return Ok(config);
                }
                // A data directory that is none is for whoever opens it to complain about.
                Err(cause)
                    if matches!(
                        cause.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                    ) && named.is_none() => {}
                Err(cause) => return Err(ConfigError::Read { path, cause }),
            }
        }
        Ok(Config::default())
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Config, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        if let Some(problem) = unknown_key(&table) {
            return Err(problem);
        }
        let file: File = table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
        let mut config = Config::default();
        for (name, agent) in file.agents {
            check_agent(&name, &agent)?;
            config.own_agents.push(name.clone());
            config.agents.insert(name, agent);
        }
        config.sandbox = file.sandbox.read("sandbox", &config.sandbox)?;
        for (name, sandbox) in file.sandboxes {
            let sandbox = sandbox.read(&format!("sandboxes.{name}"), &config.sandbox)?;
            config.sandboxes.insert(name, sandbox);
        }
        for (name, agent) in &config.agents {
            if let Some(sandbox) = &agent.sandbox
                && !config.sandboxes.contains_key(sandbox)
            {
                return Err(format!("agents.{name}.sandbox: there is no [sandboxes.{sandbox}]"));
            }
        }
        if let Some(lease) = file.driver.lease {
            let lease = parse_duration(&lease).map_err(|e| format!("driver.lease: {e}"))?;
            if lease < SHORTEST_LEASE {
                return Err(format!(
                    "driver.lease: at least {} ms, or it ends before it can be renewed",
                    SHORTEST_LEASE.as_millis()
                ));
            }
            config.lease = Some(lease);
        }
        config.store_url = file.store.url;
        config.store_notifications = file.store.notifications.unwrap_or(true);
        config.serve = file.serve.read(&config.agents)?;
        config.reap = file.reap.read()?;
        config.retention = file.retention.read()?;
        config.objects = file.objects.place;
        config.workspace = file.workspace.read()?;
        config.sessions = file.sessions.read()?;
        Ok(config)
    }

    /// The launch spec of a run of this agent, or a text that names the agents that there are.
    pub fn spec(&self, name: &str) -> Result<LaunchSpec, String> {
        let agent = self.agents.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.agents.keys().map(String::as_str).collect();
            let nearest = names
                .iter()
                .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
            let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
            format!("there is no agent {name:?}{hint} Agents: {}.", names.join(", "))
        })?;
        Ok(LaunchSpec {
            agent: name.to_owned(),
            kind: agent.kind.clone(),
            argv: agent.argv.clone(),
            model: agent.model.clone(),
            prompt: None,
            prompt_on_stdin: agent.stdin == Stdin::Prompt,
            env: agent.env.clone(),
            needed_env: agent.pass_env.clone(),
            cwd: agent.cwd.clone(),
            workspace: None,
            sandbox: self.sandbox_spec(agent.sandbox.as_deref()),
        })
    }

    /// The sandbox of runs that name this one, or none.
    pub fn sandbox_spec(&self, name: Option<&str>) -> SandboxSpec {
        let named = name.and_then(|name| self.sandboxes.get(name));
        let SandboxConfig { fence, limits, lifecycle } = named.unwrap_or(&self.sandbox).clone();
        SandboxSpec { provider: "local".to_owned(), fence, limits, lifecycle }
    }
}

fn check_agent(name: &str, agent: &AgentConfig) -> Result<(), String> {
    if outlast_agents::agent(&agent.kind).is_none() {
        let kinds = outlast_agents::KINDS.join(", ");
        return Err(format!("agents.{name}.kind: there is no kind {:?}; kinds: {kinds}", agent.kind));
    }
    if agent.kind == "command" && agent.argv.is_empty() {
        return Err(format!("agents.{name}: an agent of kind \"command\" needs argv = [\"program\", …]"));
    }
    if let Some(key) =
        agent.env.keys().chain(&agent.pass_env).find(|key| key.is_empty() || key.contains(['=', '\0']))
    {
        return Err(format!("agents.{name}: {key:?} cannot be the name of an environment variable"));
    }
    Ok(())
}

/// The kinds that exist without configuration, and the demo.
fn built_in_agents() -> BTreeMap<String, AgentConfig> {
    let of_kind = |kind: &str| AgentConfig { kind: kind.to_owned(), ..AgentConfig::default() };
    let mut agents: BTreeMap<String, AgentConfig> =
        ["claude-code", "codex"].into_iter().map(|kind| (kind.to_owned(), of_kind(kind))).collect();
    if let Some(argv) = crate::demo::command() {
        agents.insert("demo".to_owned(), AgentConfig { argv, ..of_kind("command") });
    }
    agents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limit;

    #[test]
    fn a_whole_file() {
        let config = Config::parse(
            r#"
            [agents.mine]
            kind = "command"
            argv = ["python3", "agent.py"]
            env = { MODE = "fast" }
            pass_env = ["API_KEY"]
            stdin = "none"
            sandbox = "once"
            [sandbox]
            keep_alive = "5m"
            fence = "subreaper"
            max_output = "1MiB"
            [driver]
            lease = "2s"
            [reap]
            detached_run_ttl = "none"
            max_runs = 7
            [retention]
            events = "1h"
            messages = "1h"
            [sandboxes.once]
            reuse = "none"
            "#,
        )
        .expect("valid");
        let spec = config.spec("mine").expect("agent");
        assert_eq!(spec.needed_env, ["API_KEY"]);
        assert!(!spec.prompt_on_stdin);
        assert_eq!(spec.sandbox.limits.stdout, 1 << 20);
        assert_eq!(spec.sandbox.fence, FenceChoice::Subreaper);
        assert_eq!(config.lease, Some(Duration::from_secs(2)));
        assert_eq!(config.reap.detached_run_ttl, Limit::None);
        assert_eq!(config.reap.max_runs, 7);
        assert_eq!(config.retention.events, Limit::For(Duration::from_secs(3600)));
        assert_eq!(spec.sandbox.keep_alive(), Some(0));
        assert_eq!(spec.sandbox.fence, FenceChoice::Subreaper, "from [sandbox]");
        assert_eq!(config.spec("codex").expect("agent").sandbox.keep_alive(), Some(300_000));
        assert!(config.spec("codex").is_ok() && config.spec("claude-code").is_ok());
    }

    #[test]
    fn a_sandbox_that_is_kept_where_others_are_not() {
        let config = Config::parse(
            "[sandbox]\nreuse = \"none\"\n[sandboxes.kept]\nreuse = \"thread\"\nkeep_alive = \"1m\"\n",
        )
        .expect("valid");
        assert_eq!(config.sandbox_spec(None).keep_alive(), Some(0));
        assert_eq!(config.sandbox_spec(Some("kept")).keep_alive(), Some(60_000));
    }

    #[test]
    fn mistakes_name_the_nearest() {
        for (text, says) in [
            ("[agents.a]\nkind=\"command\"\nargs=[\"x\"]", "\"argv\""),
            ("[agent.a]\nkind=\"codex\"", "\"agents\""),
            ("[agents.a]\nkind=\"claud\"", "claude-code"),
            ("[agents.a]\nkind=\"command\"", "argv"),
            ("[driver]\nlease=\"5\"", "unit"),
            ("[driver]\nlease=\"1ms\"", "300 ms"),
            ("[reap]\ndetached_run_ttl=\"soon\"", "none"),
            ("[reap]\nmax_runs=0", "schedule"),
            ("[reap]\ninterval=\"0s\"", "reap.interval"),
            ("[retention]\nmessages=\"29d\"", "as long as"),
            ("[retention]\nevents=\"none\"\nmessages=\"99d\"", "as long as"),
            ("[sandboxes.a]\nreuse=\"none\"\nkeep_alive=\"1m\"", "sandboxes.a.keep_alive"),
            ("[sandbox]\nreuse=\"none\"\n[sandboxes.a]\nkeep_alive=\"1m\"", "sandboxes.a.keep_alive"),
            ("[sandboxes.a]\nreuse=\"run\"", "thread"),
            ("[sandboxes.a]\nkeepalive=\"1m\"", "\"keep_alive\""),
            ("[agents.a]\nkind=\"codex\"\nsandbox=\"b\"", "[sandboxes.b]"),
            ("[sandbox]\nfence=\"strong\"", "pid-namespace"),
            ("[agents.a]\nkind=\"codex\"\nstdin=\"file\"", "prompt"),
            ("nonsense", "="),
        ] {
            let error = Config::parse(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
        let error = Config::default().spec("claude").expect_err("no such agent");
        assert!(error.contains("did you mean \"claude-code\"?"), "{error}");
    }
}
