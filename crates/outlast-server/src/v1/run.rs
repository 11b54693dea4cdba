//! One run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outlast_core::RunId;
use outlast_core::run::RunRecord;
use outlast_core::transcript;
use serde::Serialize;

use super::schema::{ErrorBody, Message, Run};
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::Segment;

/// Messages, in order.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Messages {
    #[schema(value_type = Vec<Message>)]
    messages: Vec<transcript::Message>,
}

/// What is known of a run
#[utoipa::path(
    get, path = "/v1/runs/{id}", operation_id = "getRun", tag = "runs",
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "The run", body = Run),
        (status = 400, description = "`invalid_request`: no such id can be", body = ErrorBody),
        (status = 404, description = "`run_not_found`", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn run(State(app): State<Arc<App>>, Segment(id): Segment) -> Answer<Json<RunRecord>> {
    find(&app, id).await.map(Json)
}

/// A run's messages: those of the turn's input, and what the agent has said so far
#[utoipa::path(
    get, path = "/v1/runs/{id}/messages", operation_id = "listRunMessages", tag = "runs",
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "The messages, in order", body = Messages),
        (status = 400, description = "`invalid_request`: no such id can be", body = ErrorBody),
        (status = 404, description = "`run_not_found`", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn messages(State(app): State<Arc<App>>, Segment(id): Segment) -> Answer<Json<Messages>> {
    let run = find(&app, id).await?;
    let rows = app.host.run_messages(&run).await?;
    Ok(Json(Messages { messages: rows.into_iter().map(|row| row.message).collect() }))
}

pub(super) async fn find(app: &App, id: String) -> Answer<RunRecord> {
    let run_id = RunId::new(id)?;
    app.host.run(&run_id).await?.ok_or_else(|| ApiError::run_not_found(&run_id))
}
