//! One thread.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outlast_core::run::RunRecord;
use outlast_core::{ErrorCode, ThreadId, transcript};
use outlast_store::ListRuns;
use serde::Serialize;

use super::schema::{ErrorBody, Message, Run};
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::Segment;
use crate::names;

/// The latest runs of a thread that are shown with it; `/v1/runs?threadId=` pages through all.
const RUNS: usize = 100;

/// A conversation.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Thread {
    #[schema(value_type = String)]
    thread_id: ThreadId,
    /// Its live run.
    #[schema(value_type = Option<Run>)]
    active_run: Option<RunRecord>,
    /// Its latest runs, newest first, at most 100.
    #[schema(value_type = Vec<Run>)]
    runs: Vec<RunRecord>,
    /// The whole conversation.
    #[schema(value_type = Vec<Message>)]
    messages: Vec<transcript::Message>,
}

/// A thread: its runs and its messages
#[utoipa::path(
    get, path = "/v1/threads/{id}", operation_id = "getThread", tag = "threads",
    params(("id" = String, Path, description = "The thread")),
    responses(
        (status = 200, description = "The thread", body = Thread),
        (status = 400, description = "`invalid_request`: no such id can be", body = ErrorBody),
        (status = 404, description = "`not_found`", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn thread(State(app): State<Arc<App>>, Segment(id): Segment) -> Answer<Json<Thread>> {
    let thread_id = names::thread_id(&id)?;
    let (store, tenant) = (app.host.store(), app.host.tenant());
    let active_run = store.find_active_run(tenant, &thread_id).await?;
    let query = ListRuns {
        tenant: tenant.clone(),
        thread_id: Some(thread_id.clone()),
        limit: RUNS,
        ..ListRuns::default()
    };
    let runs = store.list_runs(&query).await?;
    if runs.is_empty() {
        return Err(ApiError::new(ErrorCode::NotFound, format!("there is no thread {thread_id:?}")));
    }
    let messages = app.host.thread_messages(&thread_id, None, usize::MAX).await?.messages;
    let messages = messages.into_iter().map(|row| row.message).collect();
    Ok(Json(Thread { thread_id, active_run, runs, messages }))
}
