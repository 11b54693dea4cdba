//! Deleting what has aged out.

use std::time::Duration;

use outlast_session::upkeep::DeleteSessionError;
use outlast_store::Swept;
use serde::Serialize;

use crate::{Host, fail};

/// What is kept for how long after a run's end.
#[derive(Debug, Clone)]
pub struct RetainOptions {
    /// Events; none: for ever.
    pub events: Option<Duration>,
    /// Threads with their messages and run records, after so long without activity, which must not be less than for
    /// events; none: for ever.
    pub messages: Option<Duration>,
    /// How many rows go in one step. Small, so that appends do not wait.
    pub step_rows: usize,
    /// How long the store is left alone between two steps.
    pub pause: Duration,
    /// When no further step is begun with; none: until everything has gone.
    pub time_limit: Option<Duration>,
    /// Whether to tell only what would go.
    pub dry_run: bool,
}

impl Default for RetainOptions {
    fn default() -> Self {
        RetainOptions {
            events: Some(Duration::from_secs(30 * 24 * 3600)),
            messages: None,
            step_rows: 500,
            pause: Duration::from_millis(20),
            time_limit: None,
            dry_run: false,
        }
    }
}

/// What has gone, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetainResult {
    /// How many runs' events.
    pub logs: u64,
    /// How many events.
    pub events: u64,
    /// How many run records, with their sessions. Not counted in advance.
    pub records: u64,
    /// How many sessions.
    pub sessions: u64,
    /// Whether there is more to do, for want of time.
    pub more: bool,
    /// Whether this is only what would go.
    pub dry_run: bool,
    /// Why it was not gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Host {
    /// Deletes what has aged out, in small steps. Never fails as a whole: what was begun is finished by the next.
    pub async fn retain(&self, options: &RetainOptions) -> RetainResult {
        let mut result = RetainResult { dry_run: options.dry_run, ..RetainResult::default() };
        if let Err(error) = self.retain_steps(options, &mut result).await {
            result.error = Some(error.to_string());
        }
        result
    }

    async fn retain_steps(
        &self,
        options: &RetainOptions,
        result: &mut RetainResult,
    ) -> Result<(), DeleteSessionError> {
        let host = &self.inner;
        let rows = options.step_rows.max(1);
        if let (true, Some(events)) = (options.dry_run, options.events) {
            let counted = host.store.count_expired(events).await?;
            (result.logs, result.events) = (counted.runs, counted.rows);
        }
        if let (true, Some(messages)) = (options.dry_run, options.messages) {
            result.sessions = host.sessions().await?.count_idle(&host.tenant, messages).await?;
        }
        if options.dry_run {
            return Ok(());
        }
        let clock = &host.ports.clock;
        let began = clock.boot_ms();
        let limit = options.time_limit.map(outlast_core::duration::millis);
        let over = || limit.is_some_and(|limit| clock.boot_ms() - began >= limit);
        if let Some(events) = options.events {
            loop {
                fail::point("retain.events.before");
                let Swept { runs, rows, more } = host.store.expire_events(events, rows).await?;
                (result.logs, result.events) = (result.logs + runs, result.events + rows);
                if !more {
                    break;
                }
                if over() {
                    result.more = true;
                    return Ok(());
                }
                clock.sleep(options.pause).await;
            }
        }
        if let Some(messages) = options.messages {
            fail::point("retain.records.before");
            let sessions = host.sessions().await?;
            let deleted = sessions.delete_idle(&host.tenant, messages, &|| !over()).await?;
            result.sessions = deleted.sessions.len() as u64;
            result.records = deleted.sessions.iter().map(|session| session.runs).sum();
            result.more = deleted.more;
        }
        Ok(())
    }
}
