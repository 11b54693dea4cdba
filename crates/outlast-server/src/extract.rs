//! What requests bring: parameters, a path's segment, a body. What cannot be read is refused in the form of every error.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use outlast_core::ErrorCode;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::ApiError;

/// The parameters of the URL.
pub(crate) struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let read = Query::<T>::from_request_parts(parts, app).await;
        read.map(|Query(value)| Params(value)).map_err(|rejection| {
            let cause = std::error::Error::source(&rejection).map_or_else(String::new, ToString::to_string);
            ApiError::invalid(format!("the parameters of the URL: {cause}"))
        })
    }
}

/// The id in the path.
pub(crate) struct Segment(pub String);

impl FromRequestParts<Arc<App>> for Segment {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let read = Path::<String>::from_request_parts(parts, app).await;
        read.map(|Path(value)| Segment(value))
            .map_err(|_| ApiError::invalid("the id in the path must be UTF-8, percent-encoded"))
    }
}

/// The body, if it is not too large.
pub(crate) struct Payload(pub Bytes);

impl FromRequest<Arc<App>> for Payload {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let clock = &app.host.ports().clock;
        let read = tokio::select! {
            biased;
            read = Bytes::from_request(request, app) => read,
            () = clock.sleep(app.config.times.request) => {
                return Err(ApiError::invalid("the body did not arrive in time"));
            }
        };
        read.map(Payload).map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                ErrorCode::RequestTooLarge,
                format!("the body is larger than {} bytes", app.config.limits.body),
            ),
            _ => ApiError::invalid(format!("the body could not be read: {}", rejection.body_text())),
        })
    }
}
