//! `/metrics`: numbers for those who watch over a service.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use outlast_core::ErrorCode;
use outlast_core::run::Status;
use outlast_runtime::ReapOutcome;
use outlast_store::InstanceState;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};

use super::schema::ErrorBody;
use crate::app::App;
use crate::error::{Answer, ApiError};

type Labels = [(&'static str, &'static str); 1];
type Numbers = Family<Labels, Gauge<f64, AtomicU64>>;
type Counts = Family<Labels, Counter>;

/// The label of a job's name. Prometheus itself has one that is called `job`.
const JOB: &str = "name";

/// Numbers in the form of Prometheus
///
/// What is said of runs and sandboxes is of the whole deployment, whichever of its servers is asked; jobs, appends and
/// viewers are of this process.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operation",
    responses(
        (status = 200, description = "The numbers", content_type = "application/openmetrics-text", body = String),
        (status = 503, description = "`store_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Answer<Response> {
    let stats = app.host.store().stats().await?;
    let mut registry = Registry::with_prefix("outlast");
    let gauge = |registry: &mut Registry, name: &str, help: &str, value: u64| {
        registry.register(name, help, ConstGauge::new(value));
    };

    let runs = numbers(&mut registry, "runs", "Runs by status");
    for status in Status::ALL {
        let count = stats.runs.get(status.as_str()).copied().unwrap_or(0);
        set(&runs, "status", status.as_str(), count as f64);
    }
    gauge(&mut registry, "runs_detached", "Live runs that nobody watches", stats.detached);
    gauge(&mut registry, "runs_undriven", "Live runs that nobody drives", stats.undriven);
    gauge(
        &mut registry,
        "runs_overdue",
        "Live runs past the time that they may go on without a viewer",
        stats.overdue,
    );
    registry.register_with_unit(
        "oldest_detached_age",
        "For how long nobody has watched the live run for which that is longest",
        Unit::Seconds,
        ConstGauge::new(stats.oldest_detached.unwrap_or(0) as f64 / 1000.0),
    );

    let sandboxes = numbers(&mut registry, "sandboxes", "Sandboxes that are not gone, by state");
    for state in [InstanceState::Creating, InstanceState::Live, InstanceState::Destroying] {
        let count = stats.instances.get(state.as_str()).copied().unwrap_or(0);
        set(&sandboxes, "state", state.as_str(), count as f64);
    }
    gauge(
        &mut registry,
        "reclaims_pending",
        "Sandboxes that are due to be destroyed",
        stats.reclaims_pending,
    );
    gauge(
        &mut registry,
        "reclaims_failed",
        "Sandboxes that are due and of which an attempt has failed: they may be costing money",
        stats.reclaims_failed,
    );

    registry.register_with_unit(
        "store_size",
        "What the store takes",
        Unit::Bytes,
        ConstGauge::new(stats.bytes),
    );
    if let Ok(bytes) = app.host.journal_bytes().await {
        registry.register_with_unit(
            "journals_size",
            "What the journals here take",
            Unit::Bytes,
            ConstGauge::new(bytes),
        );
    }
    registry.register(
        "events_appended",
        "Events that this process has added to logs",
        ConstCounter::new(app.host.appended()),
    );
    gauge(&mut registry, "runs_kept", "Runs that this process keeps driven", app.keepers.len() as u64);
    gauge(&mut registry, "viewers", "Streams that this process serves", app.streams() as u64);

    let swept = app.swept.all();
    let outcomes =
        counts(&mut registry, "reaped_runs", "Runs that sweeps of this process have looked at, by outcome");
    for outcome in ReapOutcome::ALL {
        let count = swept.get(&outcome).copied().unwrap_or(0);
        outcomes.get_or_create(&[("outcome", outcome.as_str())]).inc_by(count);
    }
    jobs(&app, &mut registry);

    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| ApiError::new(ErrorCode::Internal, error))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")], text).into_response())
}

/// How the jobs of this process fare.
fn jobs(app: &App, registry: &mut Registry) {
    let now = app.host.ports().clock.boot_ms();
    let ago = numbers_in(
        registry,
        "job_last_success_age",
        "Since a job succeeded last, or was begun with",
        Unit::Seconds,
    );
    let every = numbers_in(registry, "job_interval", "How often a job is done", Unit::Seconds);
    let took = numbers_in(registry, "job_duration", "How long a job took last", Unit::Seconds);
    let succeeded = counts(registry, "job_successes", "How often a job has succeeded");
    let failed = counts(registry, "job_failures", "How often a job has failed");
    for job in app.jobs.all() {
        set(&ago, JOB, job.name, now.saturating_sub(job.last_success) as f64 / 1000.0);
        set(&every, JOB, job.name, job.every.as_secs_f64());
        set(&took, JOB, job.name, job.took.as_secs_f64());
        succeeded.get_or_create(&[(JOB, job.name)]).inc_by(job.succeeded);
        failed.get_or_create(&[(JOB, job.name)]).inc_by(job.failed);
    }
}

fn numbers(registry: &mut Registry, name: &str, help: &str) -> Numbers {
    let family = Numbers::default();
    registry.register(name, help, family.clone());
    family
}

fn counts(registry: &mut Registry, name: &str, help: &str) -> Counts {
    let family = Counts::default();
    registry.register(name, help, family.clone());
    family
}

fn numbers_in(registry: &mut Registry, name: &str, help: &str, unit: Unit) -> Numbers {
    let family = Numbers::default();
    registry.register_with_unit(name, help, unit, family.clone());
    family
}

fn set(family: &Numbers, label: &'static str, value: &'static str, number: f64) {
    family.get_or_create(&[(label, value)]).set(number);
}
