//! `/v1/threads/{id}/events`: what becomes of a thread's runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use outlast_core::duration::millis;
use outlast_core::run::{Change, RunRecord, changes};
use outlast_core::{RunId, ThreadId};
use outlast_store::{ListRuns, StoreError};
use serde::Serialize;
use serde_json::json;

use super::schema::ErrorBody;
use crate::app::{App, Seat};
use crate::error::Answer;
use crate::extract::Segment;
use crate::names;
use crate::stream::{Form, RunState, named_event, stream_response};

/// The latest runs that are looked at. A thread has one live run at a time, so no more can begin between two looks.
const RUNS: usize = 50;

/// What becomes of a thread's runs
///
/// Named events without ids. At first `run` for the live run, if there is one, and `caught-up`; then `run` for each new
/// run, `driver` whenever another process drives one or none does any more, `status` for every other change and the
/// end, each with the `changes` that it tells of. `heartbeat` where nothing happens. Never ends by itself. The thread need not exist yet.
#[utoipa::path(
    get, path = "/v1/threads/{id}/events", operation_id = "followThread", tag = "threads",
    params(("id" = String, Path, description = "The thread")),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = 400, description = "`invalid_request`", body = ErrorBody),
        (status = 503, description = "`unavailable`, `store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn thread_events(State(app): State<Arc<App>>, Segment(id): Segment) -> Answer<Response> {
    let watch = Watch {
        thread_id: names::thread_id(&id)?,
        _seat: app.seat()?,
        known: BTreeMap::new(),
        begun: false,
        sent: 0,
        app,
    };
    let stream = futures_util::stream::unfold(Some(watch), |watch| async {
        let mut watch = watch?;
        match watch.next().await {
            Ok(bytes) => Some((Ok(bytes), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(stream_response(Form::Native.content_type(), stream))
}

struct Watch {
    app: Arc<App>,
    thread_id: ThreadId,
    known: BTreeMap<RunId, RunRecord>,
    begun: bool,
    /// When something was last sent, on the boot clock in milliseconds.
    sent: u64,
    _seat: Seat,
}

impl Watch {
    async fn next(&mut self) -> Result<Bytes, StoreError> {
        let clock = Arc::clone(&self.app.host.ports().clock);
        let times = &self.app.config.times;
        let heartbeat = millis(times.heartbeat);
        loop {
            let query = ListRuns {
                tenant: self.app.host.tenant().clone(),
                thread_id: Some(self.thread_id.clone()),
                limit: RUNS,
                ..ListRuns::default()
            };
            let runs = self.app.host.store().list_runs(&query).await?;
            let mut out = news(&mut self.known, &runs, !self.begun);
            if !self.begun {
                self.begun = true;
                out.extend(named_event("caught-up", &json!({"threadId": self.thread_id})));
            } else if out.is_empty() && clock.boot_ms() >= self.sent.saturating_add(heartbeat) {
                out.extend(named_event(
                    "heartbeat",
                    &json!({"threadId": self.thread_id, "at": clock.wall_ms()}),
                ));
            }
            if !out.is_empty() {
                self.sent = clock.boot_ms();
                return Ok(out.into());
            }
            clock.sleep(times.status).await;
        }
    }
}

/// A run as it is now, and what has become of it.
#[derive(Serialize)]
struct News<'a> {
    #[serde(flatten)]
    state: RunState,
    changes: &'a [Change],
}

/// What has changed since the last look, oldest run first. At the first look only what lives is news.
fn news(known: &mut BTreeMap<RunId, RunRecord>, runs: &[RunRecord], first: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut seen = BTreeMap::new();
    for run in runs.iter().rev() {
        let changes = known.get(&run.run_id).map(|before| changes(before, run)).unwrap_or_default();
        let of_the_driver = |change: &Change| matches!(change, Change::TakenOver { .. } | Change::Undriven);
        let name = match known.get(&run.run_id) {
            None if first && run.status.is_terminal() => None,
            None => Some("run"),
            Some(_) if changes.is_empty() => None,
            Some(_) if changes.iter().any(of_the_driver) && !run.status.is_terminal() => Some("driver"),
            Some(_) => Some("status"),
        };
        if let Some(name) = name {
            out.extend(named_event(name, &News { state: RunState::of(run), changes: &changes }));
        }
        seen.insert(run.run_id.clone(), run.clone());
    }
    *known = seen;
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::run::{Driver, LaunchSpec, OnDisconnect, Phase, SandboxSpec, Status};
    use outlast_core::{ExitSecret, OwnerId, Tenant};

    fn run(id: &str, status: Status, driver: Option<&str>, epoch: u64) -> RunRecord {
        RunRecord {
            run_id: id.parse().expect("id"),
            thread_id: "t".parse().expect("id"),
            tenant: Tenant::default(),
            agent: String::new(),
            model: None,
            status,
            phase: Phase::Launched,
            started_at: 0,
            finished_at: None,
            error: None,
            end_reason: None,
            usage: Vec::new(),
            exit_code: None,
            sandbox_key: None,
            instance_id: None,
            machine: None,
            detached_since: None,
            detached_ttl: None,
            on_disconnect: OnDisconnect::Detach,
            cancel_requested: None,
            driver_epoch: epoch,
            driver: driver.map(|owner| Driver {
                owner: OwnerId::new(owner).expect("id"),
                since: 0,
                lease_remaining: 0,
            }),
            tail: 0,
            sealed: false,
            agent_session: None,
            spec: LaunchSpec::command(Vec::new(), SandboxSpec::default()),
            exit_secret: ExitSecret::from_bytes([0; 16]),
            cursor: None,
        }
    }

    #[test]
    fn what_is_news() {
        use Status::{Completed, Running};
        let mut known = BTreeMap::new();
        let mut look = |first, runs: &[RunRecord]| {
            let text = String::from_utf8(news(&mut known, runs, first)).expect("utf-8");
            let names = text.lines().filter_map(|line| line.strip_prefix("event: "));
            names.map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let old = run("old", Completed, None, 1);
        assert_eq!(look(true, std::slice::from_ref(&old)), "");
        assert_eq!(look(false, &[run("a", Running, Some("h1"), 1), old.clone()]), "run");
        assert_eq!(look(false, &[run("a", Running, Some("h1"), 1), old.clone()]), "");
        assert_eq!(look(false, &[run("a", Running, None, 1), old.clone()]), "driver");
        assert_eq!(look(false, &[run("a", Running, Some("h2"), 2), old.clone()]), "driver");
        let detached = RunRecord { detached_since: Some(5), ..run("a", Running, Some("h2"), 2) };
        assert_eq!(look(false, &[detached, old.clone()]), "status");
        let ended = run("a", Completed, None, 2);
        assert_eq!(look(false, &[ended.clone(), old.clone()]), "status");
        let short = run("c", Completed, None, 1);
        assert_eq!(look(false, &[short, run("b", Running, Some("h2"), 1), ended, old]), "run run");
        let mut again = BTreeMap::new();
        assert!(!news(&mut again, &[run("a", Running, None, 1)], true).is_empty());
    }
}
