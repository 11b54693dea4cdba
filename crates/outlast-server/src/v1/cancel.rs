//! `POST /v1/runs/{id}/cancel`: Stop, with an answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use outlast_core::RunId;
use outlast_core::run::{CancelReason, RunRecord};
use outlast_runtime::CancelReport;
use serde::Deserialize;

use super::schema::{ErrorBody, Run};
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::{Params, Segment};

/// How long a cancel is carried out here before it is left to the run's driver.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest that an answer may be waited for, in seconds.
const LONGEST_WAIT: u64 = 60;

/// How long to wait.
#[derive(Debug, Deserialize)]
pub(crate) struct Wait {
    wait: Option<u64>,
}

/// Stop a run
///
/// The wish is durable when this answers. With `wait`, the answer comes once the run has ended, or after so many
/// seconds; the record tells which.
#[utoipa::path(
    post, path = "/v1/runs/{id}/cancel", operation_id = "cancelRun", tag = "runs",
    params(
        ("id" = String, Path, description = "The run"),
        ("wait" = Option<u64>, Query, description = "For how many seconds to wait for the end, at most 60"),
    ),
    responses(
        (status = 200, description = "The run, as it is then", body = Run),
        (status = 400, description = "`invalid_request`", body = ErrorBody),
        (status = 404, description = "`run_not_found`", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Segment(id): Segment,
    Params(Wait { wait }): Params<Wait>,
) -> Answer<Json<RunRecord>> {
    let run_id = RunId::new(id)?;
    let report = stop(&app, &run_id).await?;
    let seconds = wait.unwrap_or(0).min(LONGEST_WAIT);
    if seconds == 0 || report.was_over {
        return Ok(Json(report.run));
    }
    let clock = &app.host.ports().clock;
    tokio::select! {
        biased;
        () = ended(&app, &run_id) => {}
        () = clock.sleep(Duration::from_secs(seconds)) => {}
    }
    app.host.run(&run_id).await?.map(Json).ok_or_else(|| ApiError::run_not_found(&run_id))
}

async fn ended(app: &App, run_id: &RunId) {
    loop {
        match app.host.run(run_id).await {
            Ok(Some(run)) if !run.status.is_terminal() => {}
            _ => return,
        }
        app.host.ports().clock.sleep(Duration::from_millis(50)).await;
    }
}

/// Records the wish, and carries it out in the background: the answer need not wait for a tree that takes its time.
pub(crate) async fn stop(app: &App, run_id: &RunId) -> Answer<CancelReport> {
    let report = app.host.request_cancel(run_id, CancelReason::User).await?;
    if !report.was_over {
        let (host, run) = (app.host.clone(), report.run.clone());
        tokio::spawn(async move {
            let run_id = run.run_id.clone();
            if let Err(error) = host.carry_out_cancel(run, PATIENCE).await {
                tracing::warn!(run = %run_id, %error, "a cancel could not be carried out here");
            }
        });
    }
    Ok(report)
}
