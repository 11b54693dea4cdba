//! The agents that requests over HTTP may name.

use outlast_core::run::OnDisconnect;
use outlast_server::{Catalog, Plan};

use super::Config;

/// Those of the configuration.
#[derive(Debug)]
pub struct ConfiguredAgents {
    config: Config,
    /// The agent of requests that name none.
    default: Option<String>,
}

impl ConfiguredAgents {
    /// All of them. Requests that name none get `default`, else the one of the configuration's `[serve]`, else the only
    /// one that its file defines.
    pub fn new(config: Config, default: Option<String>) -> Self {
        let only = match config.own_agents.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        let default = default.or_else(|| config.serve.agent.clone()).or(only);
        ConfiguredAgents { config, default }
    }

    /// The agent of requests that name none.
    pub fn default_agent(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

impl Catalog for ConfiguredAgents {
    fn plan(&self, agent: Option<&str>) -> Result<Plan, String> {
        let Some(name) = agent.or(self.default.as_deref()) else {
            let names: Vec<&str> = self.config.agents.keys().map(String::as_str).collect();
            return Err(format!("which agent? Say forwardedProps.agent: {}", names.join(", ")));
        };
        let spec = self.config.spec(name)?;
        let on_disconnect = self.config.agents.get(name).and_then(|agent| agent.on_disconnect);
        Ok(Plan {
            spec,
            detached_ttl: self.config.reap.detached_run_ttl.duration(),
            on_disconnect: on_disconnect.unwrap_or(OnDisconnect::Detach),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(text: &str, default: Option<&str>) -> ConfiguredAgents {
        ConfiguredAgents::new(Config::parse(text).expect("valid"), default.map(str::to_owned))
    }

    #[test]
    fn whom_a_request_gets_that_names_nobody() {
        let one = "[agents.a]\nkind = \"command\"\nargv = [\"true\"]\non_disconnect = \"cancel\"\n";
        let two = format!("{one}[agents.b]\nkind = \"codex\"\n");
        let chosen = format!("{two}[serve]\nagent = \"b\"\n");
        for (text, default, expected) in [
            ("", None, None),
            (one, None, Some("a")),
            (two.as_str(), None, None),
            (chosen.as_str(), None, Some("b")),
            (chosen.as_str(), Some("a"), Some("a")),
        ] {
            let agents = agents(text, default);
            let plan = agents.plan(None);
            assert_eq!(plan.as_ref().ok().map(|plan| plan.spec.agent.as_str()), expected, "{text}");
        }
        let plan = agents(one, None).plan(Some("a")).expect("a plan");
        assert_eq!(plan.on_disconnect, OnDisconnect::Cancel);
        assert!(agents("", None).plan(None).expect_err("none").contains("claude-code"));
        assert!(agents("", None).plan(Some("claude")).expect_err("none").contains("did you mean"));
    }
}
