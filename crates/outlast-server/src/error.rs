//! Errors on the wire: `{"error":{"code","message"}}` with the status that the code stands for.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outlast_core::decide::AcceptRefusal;
use outlast_core::{ErrorCode, IdError, OffsetError, RunId};
use outlast_runtime::{CancelError, StartError};
use outlast_store::{ReadError, StoreError};
use serde_json::json;

/// Why a request was refused.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    /// The run that is in the way, where there is one.
    pub run_id: Option<RunId>,
    /// Where to go instead, where there is such a place.
    pub url: Option<String>,
}

pub(crate) type Answer<T> = Result<T, ApiError>;

impl ApiError {
    pub fn new(code: ErrorCode, message: impl std::fmt::Display) -> Self {
        ApiError { code, message: message.to_string(), run_id: None, url: None }
    }

    pub fn invalid(message: impl std::fmt::Display) -> Self {
        ApiError::new(ErrorCode::InvalidRequest, message)
    }

    pub fn run_not_found(run_id: &RunId) -> Self {
        ApiError::new(ErrorCode::RunNotFound, format!("there is no run {run_id:?}"))
    }
}

/// The status of each code: the one place that maps them.
pub(crate) fn status(code: ErrorCode) -> StatusCode {
    use ErrorCode as C;
    match code {
        C::RunIdRequired | C::OffsetMalformed | C::InvalidRequest => StatusCode::BAD_REQUEST,
        C::Unauthorized => StatusCode::UNAUTHORIZED,
        C::Forbidden => StatusCode::FORBIDDEN,
        C::RunNotFound | C::NotFound | C::SessionNotFound => StatusCode::NOT_FOUND,
        C::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        C::RunIdConflict
        | C::ThreadBusy
        | C::ClaimHeld
        | C::ClaimLost
        | C::TerminalRun
        | C::InterruptedRun
        | C::Cancelled
        | C::Superseded
        | C::SessionHeld
        | C::Aborted => StatusCode::CONFLICT,
        C::CursorExpired | C::SandboxGone | C::SessionDeleted | C::Expired => StatusCode::GONE,
        C::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        C::OffsetAhead => StatusCode::RANGE_NOT_SATISFIABLE,
        C::TooManyRuns => StatusCode::TOO_MANY_REQUESTS,
        C::UnsupportedCapability => StatusCode::NOT_IMPLEMENTED,
        C::StoreUnavailable
        | C::Unavailable
        | C::LaunchEnvMissing
        | C::SandboxUnreachable
        | C::BodyUnavailable
        | C::SnapshotUnavailable
        | C::SandboxReclaimFailed => StatusCode::SERVICE_UNAVAILABLE,
        C::JournalTimeout | C::BudgetExceeded => StatusCode::GATEWAY_TIMEOUT,
        C::LaunchFailed
        | C::AgentLost
        | C::AgentFailed
        | C::OutputLimit
        | C::ReplayDiverged
        | C::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Whether requests are answered with this code. The others say what became of a run.
#[cfg(test)]
pub(crate) fn is_an_answer(code: ErrorCode) -> bool {
    use ErrorCode as C;
    matches!(
        code,
        C::RunIdRequired
            | C::InvalidRequest
            | C::OffsetMalformed
            | C::Unauthorized
            | C::Forbidden
            | C::RunNotFound
            | C::NotFound
            | C::MethodNotAllowed
            | C::RunIdConflict
            | C::ThreadBusy
            | C::CursorExpired
            | C::SessionDeleted
            | C::RequestTooLarge
            | C::OffsetAhead
            | C::TooManyRuns
            | C::Unavailable
            | C::StoreUnavailable
            | C::LaunchEnvMissing
            | C::Internal
    )
}

/// After how many seconds another try may succeed.
fn retry_after(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::TooManyRuns => Some("5"),
        ErrorCode::Unavailable | ErrorCode::StoreUnavailable => Some("1"),
        _ => None,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(run_id), Some(fields)) = (&self.run_id, error.as_object_mut()) {
            fields.insert("runId".to_owned(), json!(run_id));
        }
        if let (Some(url), Some(fields)) = (&self.url, error.as_object_mut()) {
            fields.insert("url".to_owned(), json!(url));
        }
        let mut response = (status(self.code), axum::Json(json!({"error": error}))).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = retry_after(self.code) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        if self.code == ErrorCode::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        // What the store says names files of this machine; that is for its log.
        tracing::warn!(%error, "the store failed a request");
        ApiError::new(error.code(), "the store is not available at the moment")
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::RunNotFound(run_id) => ApiError::run_not_found(&run_id),
            ReadError::OffsetAhead { .. } => ApiError::new(ErrorCode::OffsetAhead, error),
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        let run_id = match &error {
            StartError::Store(error) => return error.clone().into(),
            StartError::Refused(
                AcceptRefusal::ThreadBusy { run_id, .. }
                | AcceptRefusal::WorkspaceBusy { run_id, .. }
                | AcceptRefusal::RunIdConflict { run_id, .. },
            ) => Some(run_id.clone()),
            StartError::Refused(AcceptRefusal::ThreadDeleted { .. })
            | StartError::Invalid { .. }
            | StartError::EnvMissing { .. } => None,
        };
        ApiError { run_id, ..ApiError::new(error.code(), error) }
    }
}

impl From<CancelError> for ApiError {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::NotFound(run_id) => ApiError::run_not_found(&run_id),
            CancelError::Store(error) => error.into(),
        }
    }
}

impl From<IdError> for ApiError {
    fn from(error: IdError) -> Self {
        ApiError::invalid(error)
    }
}

impl From<OffsetError> for ApiError {
    fn from(error: OffsetError) -> Self {
        ApiError::new(ErrorCode::OffsetMalformed, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_status() {
        for code in ErrorCode::ALL {
            assert!(status(*code).as_u16() >= 400, "{code}");
        }
        assert_eq!(status(ErrorCode::ThreadBusy), 409);
        assert_eq!(status(ErrorCode::CursorExpired), 410);
    }

    #[test]
    fn what_the_store_says_stays_inside() {
        let error = ApiError::from(StoreError::Unusable { message: "/var/lib/secret is damaged".into() });
        assert!(!error.message.contains("/var/lib"), "{error:?}");
    }
}
