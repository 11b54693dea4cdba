//! Listing runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_core::RunId;
use outlast_core::run::{RunRecord, Status};
use outlast_store::ListRuns;
use serde::{Deserialize, Serialize};

use super::schema::{ErrorBody, Run};
use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::extract::Params;
use crate::names;

/// Runs of a page, where the request does not say, and at most.
const PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;

/// Which runs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Filter {
    thread_id: Option<String>,
    status: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

/// A page of runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Page {
    #[schema(value_type = Vec<Run>)]
    runs: Vec<RunRecord>,
    /// What `after` is to be for the next page; null where this is the last.
    next: Option<String>,
}

/// The runs, newest first
#[utoipa::path(
    get, path = "/v1/runs", operation_id = "listRuns", tag = "runs",
    params(
        ("threadId" = Option<String>, Query, description = "Only of this thread"),
        ("status" = Option<String>, Query, description = "Only with one of these statuses, separated by commas; `live` means running,interrupted"),
        ("limit" = Option<usize>, Query, description = "At most so many, 50 unless said, 500 at most"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page", body = Page),
        (status = 400, description = "`invalid_request`", body = ErrorBody),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn runs(State(app): State<Arc<App>>, Params(filter): Params<Filter>) -> Answer<Json<Page>> {
    let limit = filter.limit.unwrap_or(PAGE);
    if limit == 0 || limit > LARGEST_PAGE {
        return Err(ApiError::invalid(format!("limit must be 1 to {LARGEST_PAGE}, not {limit}")));
    }
    let query = ListRuns {
        tenant: app.host.tenant().clone(),
        thread_id: filter.thread_id.as_deref().map(names::thread_id).transpose()?,
        statuses: statuses(filter.status.as_deref())?,
        after: filter.after.as_deref().map(read_cursor).transpose()?,
        // One more tells whether there is another page.
        limit: limit + 1,
        ..ListRuns::default()
    };
    let mut runs = app.host.store().list_runs(&query).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| more).map(|run| cursor(run.started_at, &run.run_id));
    Ok(Json(Page { runs, next }))
}

fn statuses(text: Option<&str>) -> Answer<Vec<Status>> {
    let mut statuses = Vec::new();
    for name in text.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match (name, Status::parse(name)) {
            ("live", _) => statuses.extend([Status::Running, Status::Interrupted]),
            (_, Some(status)) => statuses.push(status),
            _ => {
                let names: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
                return Err(ApiError::invalid(format!(
                    "there is no status {name:?}; statuses: {}, live",
                    names.join(", ")
                )));
            }
        }
    }
    Ok(statuses)
}

fn cursor(started_at: u64, run_id: &RunId) -> String {
    URL_SAFE_NO_PAD.encode(format!("{started_at} {run_id}"))
}

fn read_cursor(text: &str) -> Answer<(u64, RunId)> {
    let read = || {
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (at, run_id) = plain.split_once(' ')?;
        Some((at.parse().ok()?, RunId::new(run_id).ok()?))
    };
    read().ok_or_else(|| ApiError::invalid("after must be `next` of the page before"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back() {
        let run_id = RunId::new("a b/🦀").expect("id");
        assert_eq!(read_cursor(&cursor(17, &run_id)).expect("cursor"), (17, run_id));
        for bad in ["", "x", "%%%", &URL_SAFE_NO_PAD.encode("x y"), &URL_SAFE_NO_PAD.encode("17")] {
            assert!(read_cursor(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn status_names() {
        assert_eq!(statuses(None).expect("valid"), []);
        assert_eq!(statuses(Some("failed, aborted")).expect("valid"), [Status::Failed, Status::Aborted]);
        assert_eq!(statuses(Some("live")).expect("valid"), [Status::Running, Status::Interrupted]);
        assert!(statuses(Some("done")).expect_err("none").message.contains("completed"));
    }
}
