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
        .routes(routes!(v1::health))
        .routes(routes!(v1::ready))
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
    get, path = "/v1/openapi.json", tag = "operation",
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
