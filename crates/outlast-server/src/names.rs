//! Which run, which thread, from where: what a request names, and where it may say so.

use axum::http::HeaderMap;
use outlast_core::{ErrorCode, Offset, RunId, ThreadId};
use serde::Deserialize;

use crate::error::{Answer, ApiError};

/// The parameters that requests to `/api/chat` and the streams may carry in their URL. Unknown ones are ignored: clients
/// add their own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    pub run_id: Option<String>,
    pub thread_id: Option<String>,
    pub offset: Option<String>,
    pub format: Option<String>,
    pub limit: Option<usize>,
    pub before: Option<String>,
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Answer<Option<&'h str>> {
    match headers.get(name).map(|value| std::str::from_utf8(value.as_bytes())) {
        None | Some(Ok("")) => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(ApiError::invalid(format!("the header {name} is not UTF-8"))),
    }
}

/// The run's id: the header `X-Run-Id`, else `?runId`, else the body's.
pub(crate) fn run_id(headers: &HeaderMap, query: Option<&str>, body: Option<&str>) -> Answer<Option<RunId>> {
    let named = header(headers, "x-run-id")?;
    let text = named.or_else(|| query.filter(|text| !text.is_empty())).or(body);
    text.map(|text| RunId::new(text).map_err(ApiError::from)).transpose()
}

/// As [`run_id`], where there must be one. The server mints none: an id that only the answer knows is lost with it.
pub(crate) fn required_run_id(headers: &HeaderMap, query: Option<&str>, body: Option<&str>) -> Answer<RunId> {
    run_id(headers, query, body)?.ok_or_else(|| {
        ApiError::new(
            ErrorCode::RunIdRequired,
            "a run id is required: say it in the header X-Run-Id, as ?runId in the URL, or as runId in the body",
        )
    })
}

/// The offset to go on from: the header `Last-Event-ID`, else `?offset`.
pub(crate) fn offset(headers: &HeaderMap, query: Option<&str>) -> Answer<Option<Offset>> {
    let text = header(headers, "last-event-id")?.or(query);
    Ok(text.map(Offset::parse).transpose()?)
}

/// A thread's id.
pub(crate) fn thread_id(text: &str) -> Answer<ThreadId> {
    Ok(ThreadId::new(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::Seq;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().expect("name"), value.parse().expect("value")))
            .collect()
    }

    #[test]
    fn the_header_wins_over_the_url_and_the_url_over_the_body() {
        let none = HeaderMap::new();
        let named = headers(&[("x-run-id", "h")]);
        for (headers, query, body, expected) in [
            (&named, Some("q"), Some("b"), "h"),
            (&none, Some("q"), Some("b"), "q"),
            (&none, None, Some("b"), "b"),
            (&none, Some(""), Some("b"), "b"),
        ] {
            assert_eq!(required_run_id(headers, query, body).expect("id").as_str(), expected);
        }
        let error = required_run_id(&none, None, None).expect_err("nothing names a run");
        assert_eq!(error.code, ErrorCode::RunIdRequired);
        for way in ["X-Run-Id", "?runId", "body"] {
            assert!(error.message.contains(way), "{}", error.message);
        }
        let error = required_run_id(&none, None, Some("")).expect_err("an empty id");
        assert_eq!(error.code, ErrorCode::InvalidRequest);
    }

    #[test]
    fn the_last_event_id_wins_over_the_offset() {
        let resumed = headers(&[("last-event-id", "0000000000000007")]);
        assert_eq!(offset(&resumed, Some("-1")).expect("offset"), Some(Offset::After(Seq(7))));
        assert_eq!(offset(&HeaderMap::new(), Some("now")).expect("offset"), Some(Offset::Now));
        assert_eq!(offset(&HeaderMap::new(), None).expect("offset"), None);
        let error = offset(&headers(&[("last-event-id", "e1")]), Some("-1")).expect_err("malformed");
        assert_eq!(error.code, ErrorCode::OffsetMalformed);
    }
}
