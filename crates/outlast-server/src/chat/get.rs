//! `GET /api/chat`: come back to a run, or open a thread.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::hydrate::hydrate;
use super::join::{follow, form, place};
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::Params;
use crate::names::{self, Named};
use crate::v1::ErrorBody;

/// Come back to a run (`runId` and `offset`), or open a thread (`threadId`)
///
/// With a run: its stored events at once, then those that come; where nobody drives the run, this server does from now
/// on. With a thread: its transcript and its live run, as JSON.
#[utoipa::path(
    get, path = "/api/chat", operation_id = "followRunOrOpenThread", tag = "chat",
    params(
        ("X-Run-Id" = Option<String>, Header, description = "The run's id; wins over ?runId"),
        ("Last-Event-ID" = Option<String>, Header, description = "The offset; wins over ?offset"),
        ("runId" = Option<String>, Query, description = "The run's id"),
        ("offset" = Option<String>, Query, description = "Only what comes after this event's id; `-1` is the start, `now` the end"),
        ("threadId" = Option<String>, Query, description = "The thread to open"),
        ("limit" = Option<usize>, Query, description = "With a thread: at most so many messages, the latest"),
        ("before" = Option<String>, Query, description = "With a thread: only messages before the one of this id"),
        ("format" = Option<String>, Query, description = "`sse` or `ndjson`; wins over Accept"),
    ),
    responses(
        (status = 200, description = "The run's events until it is over; or `{messages, activeRun, interrupts}`", content(
            (String = "text/event-stream"), (String = "application/x-ndjson"), (Object = "application/json"))),
        (status = 400, description = "`run_id_required`, `invalid_request`, `offset_malformed`", body = ErrorBody),
        (status = 404, description = "`run_not_found`", body = ErrorBody),
        (status = 410, description = "`cursor_expired`", body = ErrorBody),
        (status = 416, description = "`offset_ahead`", body = ErrorBody),
        (status = 503, description = "`unavailable`, `store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Params(query): Params<Named>,
    headers: HeaderMap,
) -> Answer<Response> {
    let run_id = names::run_id(&headers, query.run_id.as_deref(), None)?;
    if let (None, Some(thread)) = (&run_id, &query.thread_id) {
        return hydrate(&app, names::thread_id(thread)?, query.limit, query.before.as_deref()).await;
    }
    let run_id = names::required_run_id(&headers, query.run_id.as_deref(), None)?;
    let form = form(&headers, query.format.as_deref())?;
    let offset = names::offset(&headers, query.offset.as_deref())?.ok_or_else(|| {
        ApiError::invalid(
            "an offset is required: say it in the header Last-Event-ID or as ?offset in the URL; -1 is the start, now \
             the end",
        )
    })?;
    let run = app.host.run(&run_id).await?.ok_or_else(|| ApiError::run_not_found(&run_id))?;
    let after = place(&app, &run, offset).await?;
    follow(&app, &run, form, after)
}
