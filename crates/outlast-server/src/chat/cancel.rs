//! `POST /api/chat/cancel`: Stop.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use outlast_core::RunId;
use serde::Deserialize;

use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::{Params, Payload};
use crate::names::{self, Named};
use crate::v1::{ErrorBody, stop};

/// What to stop: a run, or whatever runs on a thread.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancel {
    /// The run.
    run_id: Option<String>,
    /// The thread whose live run is meant, if there is one.
    thread_id: Option<String>,
}

/// Stop a run, or a thread's live run
///
/// The wish is durable when this answers; the agent's whole tree is killed at once where this machine reaches it.
#[utoipa::path(
    post, path = "/api/chat/cancel", operation_id = "stop", tag = "chat", request_body = Cancel,
    params(
        ("X-Run-Id" = Option<String>, Header, description = "The run's id; wins over ?runId and the body's runId"),
        ("runId" = Option<String>, Query, description = "The run's id"),
    ),
    responses(
        (status = 204, description = "Recorded, or nothing is live"),
        (status = 400, description = "`invalid_request`: neither a run nor a thread", body = ErrorBody),
        (status = 404, description = "`run_not_found`", body = ErrorBody),
        (status = 413, description = "`request_too_large`", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Params(query): Params<Named>,
    headers: HeaderMap,
    Payload(bytes): Payload,
) -> Answer<StatusCode> {
    let asked: Cancel = match bytes.as_ref() {
        b"" => Cancel::default(),
        json => {
            serde_json::from_slice(json).map_err(|error| ApiError::invalid(format!("the body: {error}")))?
        }
    };
    let named = names::run_id(&headers, query.run_id.as_deref(), asked.run_id.as_deref())?;
    let run_id: Option<RunId> = match (named, asked.thread_id.or(query.thread_id)) {
        (Some(run_id), _) => Some(run_id),
        (None, Some(thread)) => {
            let thread = names::thread_id(&thread)?;
            app.host.store().find_active_run(app.host.tenant(), &thread).await?.map(|run| run.run_id)
        }
        (None, None) => {
            return Err(ApiError::invalid("what is to stop? Say {\"threadId\"} or {\"runId\"}"));
        }
    };
    if let Some(run_id) = run_id {
        stop(&app, &run_id).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
