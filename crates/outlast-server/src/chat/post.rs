//! `POST /api/chat`: start a run and follow it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use outlast_core::run::RunRecord;
use outlast_core::{ErrorCode, Offset, RunId, Seq};
use outlast_runtime::{Start, StartError};

use super::input::Input;
use super::join::{follow, form, place};
use super::merge::turn;
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::{Params, Payload};
use crate::names::{self, Named};
use crate::v1::{ErrorBody, RunAgentInput};

/// Start a run and follow it
///
/// The same request again, under the same run id, starts nothing: it replays and follows the run. With `Last-Event-ID`
/// only what comes after that event is sent.
#[utoipa::path(
    post, path = "/api/chat", operation_id = "startRun", tag = "chat", request_body = RunAgentInput,
    params(
        ("X-Run-Id" = Option<String>, Header, description = "The run's id; wins over ?runId and the body's runId"),
        ("Last-Event-ID" = Option<String>, Header, description = "Only what comes after this event; starts nothing"),
        ("runId" = Option<String>, Query, description = "The run's id"),
        ("format" = Option<String>, Query, description = "`sse` or `ndjson`; wins over Accept"),
    ),
    responses(
        (status = 200, description = "The run's events, until it is over", content(
            (String = "text/event-stream"), (String = "application/x-ndjson"))),
        (status = 400, description = "`invalid_request`, `run_id_required`, `offset_malformed`", body = ErrorBody),
        (status = 404, description = "`run_not_found`: Last-Event-ID of a run that is not there", body = ErrorBody),
        (status = 409, description = "`run_id_conflict`, `thread_busy`", body = ErrorBody),
        (status = 410, description = "`session_deleted`: the thread was deleted", body = ErrorBody),
        (status = 413, description = "`request_too_large`", body = ErrorBody),
        (status = 416, description = "`offset_ahead`", body = ErrorBody),
        (status = 429, description = "`too_many_runs`", body = ErrorBody),
        (status = 503, description = "`unavailable`, `store_unavailable`, `launch_env_missing`", body = ErrorBody),
    )
)]
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    Params(query): Params<Named>,
    headers: HeaderMap,
    Payload(bytes): Payload,
) -> Answer<Response> {
    let form = form(&headers, query.format.as_deref())?;
    let input = Input::parse(&bytes)?;
    let run_id = names::required_run_id(&headers, query.run_id.as_deref(), input.run_id.as_deref())?;
    let resumed = names::offset(&headers, None)?;
    // A seat is asked for before anything is started.
    drop(app.seat()?);
    let start = match app.host.run(&run_id).await? {
        Some(run) => again(run, input),
        None if resumed.is_some() => {
            let message = format!(
                "there is no run {run_id:?} to go on with; without Last-Event-ID this request starts it"
            );
            return Err(ApiError::new(ErrorCode::RunNotFound, message));
        }
        None if app.keepers.len() >= app.config.limits.runs => {
            let most = app.config.limits.runs;
            let message =
                format!("this server drives {most} runs at once and takes no other now: try again later");
            return Err(ApiError::new(ErrorCode::TooManyRuns, message));
        }
        None => first(&app, run_id, input).await?,
    };
    let run = keep(&app, start).await?;
    let after = place(&app, &run, resumed.unwrap_or(Offset::After(Seq::START))).await?;
    follow(&app, &run, form, after)
}

/// Starts the run and keeps it, in a task of its own: a client that goes away now takes the request with it, but not the
/// driver of a run that is accepted.
async fn keep(app: &Arc<App>, start: Start) -> Answer<RunRecord> {
    let starting = tokio::spawn({
        let app = Arc::clone(app);
        async move {
            let started = app.host.start(start).await?;
            let run = started.run.clone();
            app.keepers.keep(started);
            Ok::<_, StartError>(run)
        }
    });
    let started = starting.await.map_err(|error| {
        tracing::error!(%error, "a run could not be started");
        ApiError::new(ErrorCode::Internal, "the run could not be started")
    })?;
    Ok(started?)
}

/// A request for a run that there is: the store tells whether it is the one that made it. What has changed since, of the
/// thread and of the configuration, is no matter.
fn again(run: RunRecord, input: Input) -> Start {
    Start {
        run_id: run.run_id,
        thread_id: input.thread_id,
        thread_chosen: true,
        spec: run.spec,
        detached_ttl: None,
        on_disconnect: run.on_disconnect,
        messages: Some(Vec::new()),
        request: Some(input.digest),
    }
}

/// A request for a run that there is not.
async fn first(app: &App, run_id: RunId, input: Input) -> Answer<Start> {
    let stored = app.host.thread_messages(&input.thread_id, None, usize::MAX).await?;
    let stored: Vec<_> = stored.messages.into_iter().map(|row| row.message).collect();
    let turn = turn(&stored, input.messages)?;
    let plan = app.catalog.plan(input.agent.as_deref()).map_err(ApiError::invalid)?;
    let mut spec = plan.spec;
    if input.model.is_some() {
        spec.model = input.model;
    }
    spec.prompt = Some(turn.prompt);
    Ok(Start {
        run_id,
        thread_id: input.thread_id,
        thread_chosen: true,
        spec,
        detached_ttl: plan.detached_ttl,
        on_disconnect: input.on_disconnect.unwrap_or(plan.on_disconnect),
        messages: Some(turn.new),
        request: Some(input.digest),
    })
}
