//! The check of every request.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use outlast_core::ErrorCode;
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::origin;
use crate::app::App;
use crate::config::Access;
use crate::error::{Answer, ApiError};

/// What a load balancer asks, which bears no token.
const OPEN: [&str; 2] = ["/health", "/ready"];

/// Refuses who may not ask, and counts the requests that are being answered.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    // How a server that is about to end fares is a question that it answers until it has ended.
    let allowed = match OPEN.contains(&request.uri().path()) {
        true => Ok(None),
        false => may(&app.config.access, &request).and_then(|()| app.enter().map(Some)),
    };
    let mut response = match allowed {
        Ok(_answering) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn may(access: &Access, request: &Request) -> Answer<()> {
    let headers = request.headers();
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(token) = &access.token {
        return if token.is_borne_by(headers) {
            Ok(())
        } else {
            Err(ApiError::new(ErrorCode::Unauthorized, "this server asks for `Authorization: Bearer TOKEN`"))
        };
    }
    let authority =
        request.uri().authority().map(|authority| authority.as_str()).or_else(|| text(&header::HOST));
    if !origin::may_be_addressed_as(authority, &access.hosts) {
        return Err(ApiError::new(
            ErrorCode::Forbidden,
            format!(
                "this server is not to be addressed as {:?}: without a token it answers to names of loopback and to \
                 those in [serve] hosts",
                authority.unwrap_or_default()
            ),
        ));
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !reads && !origin::may_come_from(text(&header::ORIGIN), authority, &access.hosts, &access.origins) {
        return Err(ApiError::new(
            ErrorCode::Forbidden,
            "pages of this origin may not ask: add it to [serve] cors_origins",
        ));
    }
    Ok(())
}

/// The CORS headers, where pages of other origins may ask.
pub(crate) fn cors(access: &Access) -> Option<CorsLayer> {
    if access.origins.is_empty() {
        return None;
    }
    let origin = if access.origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(access.origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    let named = |name: &'static str| HeaderName::from_static(name);
    Some(
        CorsLayer::new()
            .allow_origin(origin)
            .allow_methods([Method::GET, Method::POST])
            .allow_headers([
                header::CONTENT_TYPE,
                header::ACCEPT,
                header::AUTHORIZATION,
                named("x-run-id"),
                named("last-event-id"),
            ])
            .expose_headers([header::RETRY_AFTER])
            .max_age(std::time::Duration::from_secs(600)),
    )
}
