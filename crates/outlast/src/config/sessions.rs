//! The sections of what lasts of threads: where objects are, what becomes of workspaces, how often sessions are looked after.

use std::time::Duration;

use outlast_runtime::{CheckpointWhen, WorkspaceOptions};
use serde::Deserialize;

use super::keep::{interval, set};
use super::units::parse_duration;

/// How sessions are looked after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsConfig {
    /// How long an object to which nothing points is left alone.
    pub grace: Duration,
    /// How long a snapshot that nothing names is put aside before it is deleted.
    pub quarantine: Duration,
    /// Whether `outlast serve` does it by itself.
    pub schedule: bool,
    /// How often it does.
    pub interval: Duration,
}

impl Default for SessionsConfig {
    fn default() -> Self {
        SessionsConfig {
            grace: Duration::from_secs(3600),
            quarantine: Duration::from_secs(24 * 3600),
            schedule: true,
            interval: Duration::from_secs(3600),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ObjectsFile {
    pub(super) place: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SessionsFile {
    grace: Option<String>,
    quarantine: Option<String>,
    schedule: Option<bool>,
    interval: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WorkspaceFile {
    checkpoint: Option<String>,
    exclude: Option<Vec<String>>,
    include_secrets: Option<bool>,
    gitignore: Option<bool>,
}

impl SessionsFile {
    pub(super) fn read(self) -> Result<SessionsConfig, String> {
        let mut config = SessionsConfig::default();
        set(&mut config.grace, "sessions.grace", self.grace, |t| parse_duration(&t))?;
        set(&mut config.quarantine, "sessions.quarantine", self.quarantine, |t| parse_duration(&t))?;
        set(&mut config.schedule, "sessions.schedule", self.schedule, Ok)?;
        set(&mut config.interval, "sessions.interval", self.interval, interval)?;
        Ok(config)
    }
}

impl WorkspaceFile {
    pub(super) fn read(self) -> Result<WorkspaceOptions, String> {
        let mut options = WorkspaceOptions::default();
        set(&mut options.checkpoint, "workspace.checkpoint", self.checkpoint, |text| match text.as_str() {
            "run-end" => Ok(CheckpointWhen::RunEnd),
            "idle" => Ok(CheckpointWhen::Idle),
            "manual" => Ok(CheckpointWhen::Manual),
            other => Err(format!("run-end, idle or manual, not {other:?}")),
        })?;
        set(&mut options.exclude, "workspace.exclude", self.exclude, Ok)?;
        set(&mut options.include_secrets, "workspace.include_secrets", self.include_secrets, Ok)?;
        set(&mut options.gitignore, "workspace.gitignore", self.gitignore, Ok)?;
        Ok(options)
    }
}
