//! `/v1/reap`: a sweep, for those who schedule it themselves.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast_core::ErrorCode;
use outlast_core::duration::parse_duration;
use outlast_runtime::ReapOptions;
use serde::Deserialize;

use super::schema::ErrorBody;
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::Params;

/// How to sweep.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sweep {
    ttl: Option<String>,
    max_runs: Option<usize>,
    time_limit: Option<String>,
}

/// Bring runs that nobody watches to their end
///
/// The finished are completed, those whose time is up are stopped, those that work are left alone. Asks for a token
/// always, also where nothing else does: it stops runs and destroys sandboxes. Overlapping sweeps do no harm.
#[utoipa::path(
    post, path = "/v1/reap", operation_id = "reap", tag = "operation", security(("bearer" = [])),
    params(
        ("ttl" = Option<String>, Query, description = "How long any run may go on without a viewer, as `30m`, whatever it was started with"),
        ("maxRuns" = Option<usize>, Query, description = "How many runs are driven or ended at most"),
        ("timeLimit" = Option<String>, Query, description = "When no further run is begun with, as `25s`"),
    ),
    responses(
        (status = 200, description = "What was done: `considered`, `probed`, `outcomes`, `runs`", body = Object),
        (status = 400, description = "`invalid_request`", body = ErrorBody),
        (status = 401, description = "`unauthorized`", body = ErrorBody),
        (status = 503, description = "The same body, where the listing, a run or a sandbox failed", body = Object),
    )
)]
pub(crate) async fn reap(State(app): State<Arc<App>>, Params(sweep): Params<Sweep>) -> Answer<Response> {
    if app.config.access.token.is_none() {
        return Err(ApiError::new(
            ErrorCode::Unauthorized,
            "this server was started without a token, and a sweep asks for one: start it with --token-file, or call \
             `outlast reap`",
        ));
    }
    let time = |name: &str, text: Option<String>| -> Answer<Option<Duration>> {
        text.map(|text| parse_duration(&text).map_err(|error| ApiError::invalid(format!("{name}: {error}"))))
            .transpose()
    };
    let usual = app.config.jobs.reap.as_ref().map_or_else(ReapOptions::default, |job| job.options.clone());
    if sweep.max_runs == Some(0) {
        return Err(ApiError::invalid("maxRuns: at least 1"));
    }
    let options = ReapOptions {
        ttl: time("ttl", sweep.ttl)?,
        max_runs: sweep.max_runs.unwrap_or(usual.max_runs),
        time_limit: time("timeLimit", sweep.time_limit)?,
        ..usual
    };
    // In a task of its own: a caller that goes away, as a platform's cron may, does not cut a run's end short.
    let sweeping = {
        let app = Arc::clone(&app);
        tokio::spawn(async move {
            let result = app.host.reap_detached_runs(&options).await;
            app.swept.add(&result);
            result
        })
    };
    let result = sweeping.await.map_err(|error| ApiError::new(ErrorCode::Internal, error))?;
    let status = if result.has_failed() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    Ok((status, Json(result)).into_response())
}

/// The same, for platforms whose schedulers send GET
#[utoipa::path(
    get, path = "/v1/reap", operation_id = "reapByGet", tag = "operation", security(("bearer" = [])),
    params(
        ("ttl" = Option<String>, Query, description = "As with POST"),
        ("maxRuns" = Option<usize>, Query, description = "As with POST"),
        ("timeLimit" = Option<String>, Query, description = "As with POST"),
    ),
    responses(
        (status = 200, description = "What was done", body = Object),
        (status = 400, description = "`invalid_request`", body = ErrorBody),
        (status = 401, description = "`unauthorized`", body = ErrorBody),
        (status = 503, description = "The same body, where the listing, a run or a sandbox failed", body = Object),
    )
)]
pub(crate) async fn reap_by_get(state: State<Arc<App>>, params: Params<Sweep>) -> Answer<Response> {
    reap(state, params).await
}
