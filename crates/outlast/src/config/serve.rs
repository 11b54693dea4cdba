//! The section of the server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::file::AgentConfig;
use super::units::{parse_bytes, parse_duration};

/// The longest silence that clients are promised to be spared.
const LONGEST_HEARTBEAT: Duration = Duration::from_secs(15);

/// How `outlast serve` serves; what is none has the server's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeConfig {
    /// The address.
    pub listen: Option<String>,
    /// The file that holds the bearer token.
    pub token_file: Option<PathBuf>,
    /// Names, besides those of loopback, by which a server without a token may be addressed.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask.
    pub cors_origins: Vec<String>,
    /// The agent of requests that name none.
    pub agent: Option<String>,
    /// How many runs one process drives at once.
    pub max_runs: Option<usize>,
    /// How many streams it serves at once.
    pub max_viewers: Option<usize>,
    /// The largest request body, in bytes.
    pub max_body: Option<usize>,
    /// The longest silence on a stream.
    pub heartbeat: Option<Duration>,
    /// How long the last viewer of a run that ends with it may be away.
    pub reconnect_grace: Option<Duration>,
}

/// The section as it stands in the file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServeFile {
    listen: Option<String>,
    token_file: Option<PathBuf>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    cors_origins: Vec<String>,
    agent: Option<String>,
    max_runs: Option<usize>,
    max_viewers: Option<usize>,
    max_body: Option<String>,
    heartbeat: Option<String>,
    reconnect_grace: Option<String>,
}

impl ServeFile {
    pub(super) fn read(self, agents: &BTreeMap<String, AgentConfig>) -> Result<ServeConfig, String> {
        let time = |name: &str, text: Option<String>| {
            text.map(|text| parse_duration(&text).map_err(|error| format!("serve.{name}: {error}")))
                .transpose()
        };
        if let Some(agent) = self.agent.as_ref().filter(|agent| !agents.contains_key(*agent)) {
            let names: Vec<&str> = agents.keys().map(String::as_str).collect();
            return Err(format!("serve.agent: there is no agent {agent:?}; agents: {}", names.join(", ")));
        }
        if let Some(origin) = self.cors_origins.iter().find(|origin| !is_origin(origin)) {
            return Err(format!(
                "serve.cors_origins: {origin:?} is no origin: write scheme://host or scheme://host:port, or \"*\""
            ));
        }
        let heartbeat = time("heartbeat", self.heartbeat)?;
        if let Some(heartbeat) = heartbeat.filter(|time| time.is_zero() || *time > LONGEST_HEARTBEAT) {
            return Err(format!(
                "serve.heartbeat: more than 0 and at most 15s, or proxies and clients give up, not {heartbeat:?}"
            ));
        }
        let max_body = match self.max_body {
            None => None,
            Some(text) => {
                let bytes = parse_bytes(&text).map_err(|error| format!("serve.max_body: {error}"))?;
                Some(usize::try_from(bytes).map_err(|_| format!("serve.max_body: {text} is too large"))?)
            }
        };
        Ok(ServeConfig {
            listen: self.listen,
            token_file: self.token_file,
            hosts: self.hosts,
            cors_origins: self.cors_origins,
            agent: self.agent,
            max_runs: self.max_runs,
            max_viewers: self.max_viewers,
            max_body,
            heartbeat,
            reconnect_grace: time("reconnect_grace", self.reconnect_grace)?,
        })
    }
}

/// Whether a browser would send this as an `Origin`.
fn is_origin(text: &str) -> bool {
    text == "*"
        || text.split_once("://").is_some_and(|(scheme, host)| {
            !scheme.is_empty() && !host.is_empty() && !host.contains(['/', '?', '#', ' '])
        })
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn a_whole_section() {
        let config = Config::parse(
            r#"
            [agents.mine]
            kind = "command"
            argv = ["true"]
            on_disconnect = "cancel"
            [serve]
            listen = "0.0.0.0:80"
            token_file = "/etc/outlast/token"
            hosts = ["agents.internal"]
            cors_origins = ["https://app.example", "http://localhost:5173"]
            agent = "mine"
            max_runs = 8
            max_viewers = 100
            max_body = "1MiB"
            heartbeat = "5s"
            reconnect_grace = "3s"
            "#,
        )
        .expect("valid");
        assert_eq!(config.serve.max_body, Some(1 << 20));
        assert_eq!(config.serve.cors_origins.len(), 2);
        assert_eq!(config.agents["mine"].on_disconnect, Some(outlast_core::run::OnDisconnect::Cancel));
    }

    #[test]
    fn mistakes() {
        for (line, says) in [
            ("lisen = \"x\"", "\"listen\""),
            ("agent = \"none\"", "agents: "),
            ("cors_origins = [\"app.example\"]", "scheme://host"),
            ("cors_origins = [\"https://app.example/\"]", "scheme://host"),
            ("heartbeat = \"60s\"", "15s"),
            ("heartbeat = \"0s\"", "more than 0"),
            ("max_body = \"1MB\"", "MiB"),
            ("reconnect_grace = \"5\"", "unit"),
        ] {
            let error = Config::parse(&format!("[serve]\n{line}")).expect_err(line);
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
