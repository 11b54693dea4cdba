//! `/health` and `/ready`: what load balancers ask.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::app::App;

/// How long the store may take to answer a readiness check.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the process lives
#[utoipa::path(get, path = "/health", operation_id = "health", tag = "operation", security(()), responses((status = 200, description = "It lives")))]
pub(crate) async fn health() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

/// Whether requests are welcome
#[utoipa::path(
    get, path = "/ready", operation_id = "ready", tag = "operation", security(()),
    responses(
        (status = 200, description = "They are"),
        (status = 503, description = "The store is away (`store_unavailable`), or the server is about to end (`ending`)"),
    )
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let not = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": why}))).into_response();
    if app.is_ending() {
        return not("ending");
    }
    let clock = &app.host.ports().clock;
    tokio::select! {
        biased;
        answered = app.host.store().deployment_id() => match answered {
            Ok(_) => Json(json!({"status": "ready", "runs": app.keepers.len()})).into_response(),
            Err(error) => {
                tracing::warn!(%error, "not ready");
                not("store_unavailable")
            }
        },
        () = clock.sleep(PATIENCE) => not("store_unavailable"),
    }
}
