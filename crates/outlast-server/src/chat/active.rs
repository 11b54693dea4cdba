//! `GET /api/chat/active`: is there a run to come back to?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::Params;
use crate::names::{self, Named};
use crate::v1::ErrorBody;

/// A thread's live run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Active {
    /// Its id, or null where the thread has none.
    run_id: Option<String>,
}

/// The live run of a thread
#[utoipa::path(
    get, path = "/api/chat/active", operation_id = "findActiveRun", tag = "chat",
    params(("threadId" = String, Query, description = "The thread")),
    responses(
        (status = 200, description = "The live run, or none", body = Active),
        (status = 400, description = "`invalid_request`: no threadId", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn active(
    State(app): State<Arc<App>>,
    Params(query): Params<Named>,
) -> Answer<Json<Active>> {
    let thread = query.thread_id.ok_or_else(|| ApiError::invalid("threadId is required in the URL"))?;
    let found = app.host.store().find_active_run(app.host.tenant(), &names::thread_id(&thread)?).await?;
    Ok(Json(Active { run_id: found.map(|run| run.run_id.into()) }))
}
