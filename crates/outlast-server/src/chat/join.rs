//! Following a run.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use outlast_core::run::RunRecord;
use outlast_core::{ErrorCode, Offset, Seq};
use outlast_store::LogEnd;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::stream::{Follow, Form, Viewing, stream_response};

/// The form that the client asks for: `?format` wins, since some clients send no `Accept`.
pub(super) fn form(headers: &HeaderMap, format: Option<&str>) -> Answer<Form> {
    match format {
        Some("ndjson") => Ok(Form::Ndjson),
        Some("sse") => Ok(Form::Sse),
        Some(other) => Err(ApiError::invalid(format!("format must be sse or ndjson, not {other:?}"))),
        None => {
            let accept =
                headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let wants = |kind: &str| accept.split(',').any(|range| range.trim().starts_with(kind));
            let lines = wants("application/x-ndjson") || wants("application/ndjson");
            Ok(if lines && !wants("text/event-stream") { Form::Ndjson } else { Form::Sse })
        }
    }
}

/// The place that the offset means, if the log has it.
pub(crate) async fn place(app: &App, run: &RunRecord, offset: Offset) -> Answer<Seq> {
    let after = match offset {
        Offset::After(seq) => seq,
        Offset::Now => Seq(run.tail),
    };
    // Refuses what lies beyond the tail, or has aged out, before a response is begun.
    let page = app.host.page(&run.run_id, after, 0, 0).await?;
    if page.end == LogEnd::Expired {
        let thread = utf8_percent_encode(run.thread_id.as_str(), NON_ALPHANUMERIC);
        let gone = ApiError::new(
            ErrorCode::CursorExpired,
            "the events of this run have aged out; its thread's messages are there",
        );
        return Err(ApiError { url: Some(format!("/api/chat?threadId={thread}")), ..gone });
    }
    Ok(after)
}

/// The run's log from this place on, while this process sees to it that the run is driven. The stored prefix does not
/// wait for that: a client that hears nothing for two seconds gives up.
pub(super) fn follow(app: &Arc<App>, run: &RunRecord, form: Form, after: Seq) -> Answer<Response> {
    let seat = app.seat()?;
    let lives = !run.status.is_terminal();
    let attendance = lives.then(|| app.viewers.enter(run));
    if lives {
        app.keepers.ensure(&run.run_id);
    }
    let viewing = Viewing { run_id: run.run_id.clone(), form, after, seat, attendance };
    let follow = Follow::new(Arc::clone(app), viewing);
    Ok(stream_response(form.content_type(), follow.into_stream()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (accept, format, expected) in [
            (None, None, Form::Sse),
            (Some("text/event-stream"), None, Form::Sse),
            (Some("*/*"), None, Form::Sse),
            (Some("application/x-ndjson"), None, Form::Ndjson),
            (Some("application/json, application/x-ndjson;q=0.9"), None, Form::Ndjson),
            (Some("text/event-stream, application/x-ndjson"), None, Form::Sse),
            (None, Some("ndjson"), Form::Ndjson),
            (Some("application/x-ndjson"), Some("sse"), Form::Sse),
        ] {
            let headers: HeaderMap =
                accept.map(|accept| (header::ACCEPT, accept.parse().expect("value"))).into_iter().collect();
            assert_eq!(form(&headers, format).expect("form"), expected, "{accept:?} {format:?}");
        }
        assert!(form(&HeaderMap::new(), Some("xml")).is_err());
    }
}
