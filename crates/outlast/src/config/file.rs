//! Reading the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::run::{LaunchSpec, OnDisconnect, SandboxSpec};
use outlast_core::shim::{FenceChoice, OutputLimits};
use serde::Deserialize;

use super::check::unknown_key;
use super::serve::{ServeConfig, ServeFile};
use super::units::{Limit, parse_bytes, parse_duration, parse_limit};

/// The file's name, in the working directory or the data directory.
const FILE_NAME: &str = "outlast.toml";

/// How long a run may go on without a viewer, unless the configuration or the run says otherwise.
const DETACHED_TTL: Duration = Duration::from_secs(24 * 3600);

/// The shortest lease: a holder must be able to renew it several times before it ends.
const SHORTEST_LEASE: Duration = Duration::from_millis(300);

/// The whole configuration, with defaults for what the file leaves out.
#[derive(Debug, Clone)]
pub struct Config {
    /// The agents by name: those of the file and the built-in ones.
    pub agents: BTreeMap<String, AgentConfig>,
    /// The names of those that the file defines.
    pub own_agents: Vec<String>,
    /// Where and how agents run.
    pub sandbox: SandboxConfig,
    /// How long a lease runs; none: the default.
    pub lease: Option<Duration>,
    /// How long a run may go on without a viewer.
    pub detached_run_ttl: Limit,
    /// The URL of the store; none: the SQLite file in the data directory.
    pub store_url: Option<String>,
    /// Whether hosts that share a store tell each other of changes; without it, each looks by itself.
    pub store_notifications: bool,
    /// How `outlast serve` serves.
    pub serve: ServeConfig,
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
    driver: DriverFile,
    #[serde(default)]
    reap: ReapFile,
    #[serde(default)]
    serve: ServeFile,
    #[serde(default)]
    store: StoreFile,
}

#[derive(Debug, Default, Deserialize)]
struct SandboxFile {
    fence: Option<FenceChoice>,
    max_output: Option<String>,
    max_stderr: Option<String>,
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

#[derive(Debug, Default, Deserialize)]
struct ReapFile {
    detached_run_ttl: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            agents: built_in_agents(),
            own_agents: Vec::new(),
            sandbox: SandboxConfig::default(),
            lease: None,
            detached_run_ttl: Limit::For(DETACHED_TTL),
            store_url: None,
            store_notifications: true,
            serve: ServeConfig::default(),
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
        if let Some(fence) = file.sandbox.fence {
            config.sandbox.fence = fence;
        }
        if let Some(size) = file.sandbox.max_output {
            config.sandbox.limits.stdout =
                parse_bytes(&size).map_err(|e| format!("sandbox.max_output: {e}"))?;
        }
        if let Some(size) = file.sandbox.max_stderr {
            config.sandbox.limits.stderr =
                parse_bytes(&size).map_err(|e| format!("sandbox.max_stderr: {e}"))?;
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
        if let Some(ttl) = file.reap.detached_run_ttl {
            config.detached_run_ttl = parse_limit(&ttl).map_err(|e| format!("reap.detached_run_ttl: {e}"))?;
        }
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
            sandbox: self.sandbox_spec(),
        })
    }

    /// The sandbox of every run.
    pub fn sandbox_spec(&self) -> SandboxSpec {
        SandboxSpec { provider: "local".to_owned(), fence: self.sandbox.fence, limits: self.sandbox.limits }
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
            [sandbox]
            fence = "subreaper"
            max_output = "1MiB"
            [driver]
            lease = "2s"
            [reap]
            detached_run_ttl = "none"
            "#,
        )
        .expect("valid");
        let spec = config.spec("mine").expect("agent");
        assert_eq!(spec.needed_env, ["API_KEY"]);
        assert!(!spec.prompt_on_stdin);
        assert_eq!(spec.sandbox.limits.stdout, 1 << 20);
        assert_eq!(spec.sandbox.fence, FenceChoice::Subreaper);
        assert_eq!(config.lease, Some(Duration::from_secs(2)));
        assert_eq!(config.detached_run_ttl, Limit::None);
        assert!(config.spec("codex").is_ok() && config.spec("claude-code").is_ok());
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
