//! A stream as a response.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;

/// A response with this body. Nothing on the way may buffer, change or keep it.
pub(crate) fn stream_response<E>(
    content_type: &'static str,
    body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Response
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
