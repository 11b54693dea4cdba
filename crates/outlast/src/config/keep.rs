//! The sections of what is kept for how long: sandboxes, runs without viewers, logs.

use std::time::Duration;

use outlast_core::run::Reuse;
use serde::Deserialize;

use super::file::SandboxConfig;
use super::units::{Limit, parse_bytes, parse_duration, parse_limit};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// How runs that nobody watches are brought to their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapConfig {
    /// How long a run may go on without a viewer, unless the run says otherwise. Copied onto its record.
    pub detached_run_ttl: Limit,
    /// How long a run may wait for a person without a viewer.
    pub interrupted_ttl: Limit,
    /// Whether `outlast serve` sweeps by itself.
    pub schedule: bool,
    /// How often it does.
    pub interval: Duration,
    /// How many runs a sweep drives or ends at most.
    pub max_runs: usize,
    /// How long a run may make no progress while it is finalised, or may take to be ended.
    pub run_budget: Duration,
    /// Whether `outlast serve` destroys sandboxes by itself.
    pub reclaim_schedule: bool,
    /// How often sandboxes are looked for that are due to be destroyed.
    pub reclaim_interval: Duration,
    /// How old a sandbox without a record must be before it counts as left behind.
    pub orphan_grace: Duration,
}

impl Default for ReapConfig {
    fn default() -> Self {
        ReapConfig {
            detached_run_ttl: Limit::For(seconds(24 * 3600)),
            interrupted_ttl: Limit::None,
            schedule: true,
            interval: seconds(60),
            max_runs: 25,
            run_budget: seconds(30),
            reclaim_schedule: true,
            reclaim_interval: seconds(30),
            orphan_grace: seconds(3600),
        }
    }
}

/// What is kept after a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionConfig {
    /// How long events are.
    pub events: Limit,
    /// After how long without activity threads are deleted, with their messages and run records.
    pub messages: Limit,
    /// How long journals are, at least.
    pub keep_journals: Duration,
    /// Whether `outlast serve` deletes what has aged out by itself.
    pub schedule: bool,
    /// How often it does.
    pub interval: Duration,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        RetentionConfig {
            events: Limit::For(seconds(30 * 24 * 3600)),
            messages: Limit::None,
            keep_journals: Duration::ZERO,
            schedule: true,
            interval: seconds(3600),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ReapFile {
    detached_run_ttl: Option<String>,
    interrupted_ttl: Option<String>,
    schedule: Option<bool>,
    interval: Option<String>,
    max_runs: Option<usize>,
    run_budget: Option<String>,
    reclaim_schedule: Option<bool>,
    reclaim_interval: Option<String>,
    orphan_grace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RetentionFile {
    events: Option<String>,
    messages: Option<String>,
    keep_journals: Option<String>,
    schedule: Option<bool>,
    interval: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SandboxFile {
    fence: Option<outlast_core::shim::FenceChoice>,
    max_output: Option<String>,
    max_stderr: Option<String>,
    reuse: Option<Reuse>,
    keep_alive: Option<String>,
}

/// Replaces a value where the file has one; the error names the key.
pub(super) fn set<T, R>(
    to: &mut T,
    key: &str,
    found: Option<R>,
    read: impl FnOnce(R) -> Result<T, String>,
) -> Result<(), String> {
    if let Some(found) = found {
        *to = read(found).map_err(|error| format!("{key}: {error}"))?;
    }
    Ok(())
}

/// An interval, which is not nothing.
pub(super) fn interval(text: String) -> Result<Duration, String> {
    match parse_duration(&text)? {
        Duration::ZERO => Err("at least 1ms".to_owned()),
        time => Ok(time),
    }
}

impl ReapFile {
    pub(super) fn read(self) -> Result<ReapConfig, String> {
        let mut config = ReapConfig::default();
        set(&mut config.detached_run_ttl, "reap.detached_run_ttl", self.detached_run_ttl, |t| {
            parse_limit(&t)
        })?;
        set(&mut config.interrupted_ttl, "reap.interrupted_ttl", self.interrupted_ttl, |t| parse_limit(&t))?;
        set(&mut config.schedule, "reap.schedule", self.schedule, Ok)?;
        set(&mut config.interval, "reap.interval", self.interval, interval)?;
        set(&mut config.max_runs, "reap.max_runs", self.max_runs, |n| {
            if n == 0 { Err("at least 1; schedule = false turns the sweep off".to_owned()) } else { Ok(n) }
        })?;
        set(&mut config.run_budget, "reap.run_budget", self.run_budget, interval)?;
        set(&mut config.reclaim_schedule, "reap.reclaim_schedule", self.reclaim_schedule, Ok)?;
        set(&mut config.reclaim_interval, "reap.reclaim_interval", self.reclaim_interval, interval)?;
        set(&mut config.orphan_grace, "reap.orphan_grace", self.orphan_grace, |t| parse_duration(&t))?;
        Ok(config)
    }
}

impl RetentionFile {
    pub(super) fn read(self) -> Result<RetentionConfig, String> {
        let mut config = RetentionConfig::default();
        set(&mut config.events, "retention.events", self.events, |t| parse_limit(&t))?;
        set(&mut config.messages, "retention.messages", self.messages, |t| parse_limit(&t))?;
        set(&mut config.keep_journals, "retention.keep_journals", self.keep_journals, |t| {
            parse_duration(&t)
        })?;
        set(&mut config.schedule, "retention.schedule", self.schedule, Ok)?;
        set(&mut config.interval, "retention.interval", self.interval, interval)?;
        let shorter = match (config.messages, config.events) {
            (Limit::None, _) => false,
            (Limit::For(_), Limit::None) => true,
            (Limit::For(messages), Limit::For(events)) => messages < events,
        };
        if shorter {
            return Err("retention.messages: at least as long as retention.events: a thread whose events have gone is \
                        shown from its messages"
                .to_owned());
        }
        Ok(config)
    }
}

impl SandboxFile {
    /// The definition, on top of another one. `at` is the table's name.
    pub(super) fn read(self, at: &str, base: &SandboxConfig) -> Result<SandboxConfig, String> {
        let mut config = base.clone();
        let key = |name: &str| format!("{at}.{name}");
        set(&mut config.fence, &key("fence"), self.fence, Ok)?;
        set(&mut config.limits.stdout, &key("max_output"), self.max_output, |t| parse_bytes(&t))?;
        set(&mut config.limits.stderr, &key("max_stderr"), self.max_stderr, |t| parse_bytes(&t))?;
        let none = self.reuse.unwrap_or(base.lifecycle.reuse) == Reuse::None;
        if none && self.keep_alive.is_some() {
            return Err(format!(
                "{}: without reuse a sandbox goes with its run: leave it out",
                key("keep_alive")
            ));
        }
        set(&mut config.lifecycle.reuse, &key("reuse"), self.reuse, Ok)?;
        set(&mut config.lifecycle.keep_alive, &key("keep_alive"), self.keep_alive, |text| {
            let keep_alive = parse_limit(&text)?.duration();
            Ok(keep_alive.map(outlast_core::duration::millis))
        })?;
        Ok(config)
    }
}
