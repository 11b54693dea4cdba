//! Opening a thread.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use outlast_core::ThreadId;
use serde_json::json;

use super::ui::{ui_messages, window};
use crate::app::App;
use crate::error::Answer;

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
    let rows = store.thread_messages(tenant, &thread_id).await?;
    let messages = ui_messages(&rows, active.as_ref().map(|run_id| run_id.as_str()));
    let (messages, more) = window(messages, limit, before);
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
