//! Opening a thread.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use outlast_core::{RunId, ThreadId};
use serde_json::json;

use super::ui::{UiMessage, ui_messages, window};
use crate::app::App;
use crate::error::Answer;

/// How many stored messages are read for each that is shown, since several make one.
const STORED: usize = 8;

/// The thread's transcript and its live run.
pub(super) async fn hydrate(
    app: &App,
    thread_id: ThreadId,
    limit: Option<usize>,
    before: Option<&str>,
) -> Answer<Response> {
    let (store, tenant) = (app.host.store(), app.host.tenant());
    // First the live run, then the messages: a run that ends in between is shown whole. The other way round it would be
    // neither live nor there.
    let active = store.find_active_run(tenant, &thread_id).await?.map(|run| run.run_id);
    let (messages, more) = messages(app, &thread_id, active.as_ref(), limit, before).await?;
    let mut body = json!({
        "messages": messages,
        "activeRun": active.map(|run_id| json!({"runId": run_id})),
        "interrupts": null,
    });
    if limit.is_some() || before.is_some() {
        body["page"] = match more {
            Some(cursor) => json!({"truncated": true, "cursor": cursor}),
            None => json!({"truncated": false}),
        };
    }
    let mut response = axum::Json(body).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The window of the transcript that is wanted, and where to go on from. Of a long thread, no more is read than that takes.
async fn messages(
    app: &App,
    thread_id: &ThreadId,
    active: Option<&RunId>,
    limit: Option<usize>,
    before: Option<&str>,
) -> Answer<(Vec<UiMessage>, Option<String>)> {
    let size = limit.map_or(usize::MAX, |limit| limit.saturating_mul(STORED).max(100));
    let (mut rows, mut older) = (Vec::new(), None);
    loop {
        let page = app.host.thread_messages(thread_id, older, size).await?;
        rows.splice(0..0, page.messages);
        older = page.before;
        let messages = ui_messages(&rows, active.map(|run_id| run_id.as_str()));
        let until =
            before.map_or(Some(messages.len()), |id| messages.iter().position(|message| message.id == id));
        // The oldest one may have begun before what was read.
        let enough = limit.zip(until).is_some_and(|(limit, until)| until > limit.max(1));
        if older.is_none() || enough {
            return Ok(window(messages, limit, before));
        }
    }
}
