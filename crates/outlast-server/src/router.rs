//! Which path leads where. The description of the interface is made from the same list.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware;
use outlast_core::ErrorCode;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::ApiError;
use crate::{chat, guard, v1};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Outlast",
        description = "Runs coding agents so that a run outlasts its viewer, its host and its deploy.",
        license(name = "MIT OR Apache-2.0")
    ),
    security((), ("bearer" = [])),
    modifiers(&Bearer),
    tags(
        (name = "chat", description = "What the clients of the browser's side call"),
        (name = "runs", description = "Runs, for operators and backends"),
        (name = "threads", description = "Conversations"),
        (name = "operation", description = "What load balancers ask"),
    )
)]
struct Described;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        openapi.components.get_or_insert_default().add_security_scheme("bearer", scheme);
    }
}

fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(chat::post, chat::get))
        .routes(routes!(chat::active))
        .routes(routes!(chat::cancel))
        .routes(routes!(v1::runs))
        .routes(routes!(v1::run))
        .routes(routes!(v1::messages))
        .routes(routes!(v1::events))
        .routes(routes!(v1::cancel))
        .routes(routes!(v1::thread))
        .routes(routes!(v1::thread_events))
        .routes(routes!(v1::reap, v1::reap_by_get))
        .routes(routes!(v1::health))
        .routes(routes!(v1::ready))
        .routes(routes!(v1::metrics))
        .routes(routes!(describe))
}

/// The description of the interface.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes().split_for_parts().1
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let access = &app.config.access;
    let (router, _) = routes().split_for_parts();
    let router = router
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_so)
        .layer(DefaultBodyLimit::max(app.config.limits.body))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::check));
    // Outside of the check: a browser asks for permission before it sends what the check looks at.
    let router = match guard::cors(access) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router.with_state(app)
}

/// This description
#[utoipa::path(
    get, path = "/v1/openapi.json", operation_id = "describe", tag = "operation",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object))
)]
async fn describe() -> axum::Json<utoipa::openapi::OpenApi> {
    axum::Json(openapi())
}

async fn nothing_here(uri: Uri) -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        format!("there is nothing at {:?}; GET /v1/openapi.json says what there is", uri.path()),
    )
}

async fn not_so(method: Method, uri: Uri) -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, format!("{:?} does not take {method}", uri.path()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_description_is_complete() {
        let api = serde_json::to_value(super::openapi()).expect("json");
        let mut ids = BTreeSet::new();
        for (path, methods) in api["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                let id = operation["operationId"].as_str().expect("an id");
                assert!(ids.insert(id.to_owned()), "{id} twice");
                assert!(operation["summary"].is_string(), "{method} {path}");
                for (status, response) in operation["responses"].as_object().expect("responses") {
                    let text = response["description"].as_str().unwrap_or_default();
                    assert!(!text.is_empty(), "{method} {path} {status}");
                }
                let described: BTreeSet<&str> = operation["parameters"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|parameter| parameter["in"] == "path")
                    .filter_map(|parameter| parameter["name"].as_str())
                    .collect();
                let named: BTreeSet<&str> =
                    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
                assert_eq!(described, named, "{method} {path}");
            }
        }
    }

    /// The document names every route, and no other.
    #[test]
    fn the_document_names_every_route() {
        let document = include_str!("../../../docs/http.md");
        let api = serde_json::to_value(super::openapi()).expect("json");
        for (path, methods) in api["paths"].as_object().expect("paths") {
            for method in methods.as_object().expect("methods").keys() {
                let route = format!("{} {path}", method.to_uppercase());
                assert!(document.contains(&route), "docs/http.md does not name {route}");
            }
        }
        for code in outlast_core::ErrorCode::ALL {
            if crate::error::is_an_answer(*code) {
                assert!(document.contains(&format!("`{code}`")), "docs/http.md does not name {code}");
            }
        }
    }
}
