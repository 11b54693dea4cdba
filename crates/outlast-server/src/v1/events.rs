//! `/v1/runs/{id}/events`: the stream that only reads.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use outlast_core::{Offset, Seq};
use serde::Deserialize;

use super::run::find;
use super::schema::ErrorBody;
use crate::app::App;
use crate::chat::place;
use crate::error::Answer;
use crate::extract::{Params, Segment};
use crate::names;
use crate::stream::{Follow, Form, Viewing, stream_response};

/// From where.
#[derive(Debug, Deserialize)]
pub(crate) struct From {
    offset: Option<String>,
}

/// A run's events, and what becomes of the run
///
/// Only reads: it never takes a run over. The events and offsets are those of `/api/chat`; between them come named
/// events without an id: `status` (at first and whenever it changes), `caught-up` (everything stored was sent, what
/// follows is live) and `heartbeat`. Ends with the log.
#[utoipa::path(
    get, path = "/v1/runs/{id}/events", operation_id = "followRun", tag = "runs",
    params(
        ("id" = String, Path, description = "The run"),
        ("offset" = Option<String>, Query, description = "Only what comes after this event's id; `-1`, the start, unless said; `now`: the end"),
        ("Last-Event-ID" = Option<String>, Header, description = "The offset; wins over ?offset"),
    ),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = 400, description = "`offset_malformed`", body = ErrorBody),
        (status = 404, description = "`run_not_found`", body = ErrorBody),
        (status = 410, description = "`cursor_expired`", body = ErrorBody),
        (status = 416, description = "`offset_ahead`", body = ErrorBody),
        (status = 503, description = "`unavailable`, `store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Segment(id): Segment,
    Params(From { offset }): Params<From>,
    headers: HeaderMap,
) -> Answer<Response> {
    let offset = names::offset(&headers, offset.as_deref())?.unwrap_or(Offset::After(Seq::START));
    let run = find(&app, id).await?;
    let after = place(&app, &run, offset).await?;
    let seat = app.seat()?;
    let attendance = (!run.status.is_terminal()).then(|| app.viewers.enter(&run));
    let viewing = Viewing { run_id: run.run_id, form: Form::Native, after, seat, attendance };
    let follow = Follow::new(Arc::clone(&app), viewing);
    Ok(stream_response(Form::Native.content_type(), follow.into_stream()))
}
