//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_core::ErrorCode;
use outlast_runtime::Host;
use tokio::sync::watch;

use crate::catalog::Catalog;
use crate::config::ServerConfig;
use crate::error::{Answer, ApiError};
use crate::jobs::{Jobs, Outcomes};
use crate::keep::{Keepers, Viewers};
use crate::stream::Feeds;
use crate::until::until;

#[derive(Debug)]
pub(crate) struct App {
    pub host: Host,
    pub catalog: Arc<dyn Catalog>,
    pub config: ServerConfig,
    pub keepers: Keepers,
    pub viewers: Viewers,
    pub feeds: Feeds,
    /// How the jobs fare.
    pub jobs: Jobs,
    /// What sweeps have done.
    pub swept: Outcomes,
    /// Whether the server is about to end.
    pub ending: watch::Sender<bool>,
    /// Requests whose answer has not begun.
    answering: watch::Sender<usize>,
    streams: AtomicUsize,
}

/// A request that is being answered.
pub(crate) struct Answering(Arc<App>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.send_modify(|n| *n -= 1);
    }
}

/// A place among the streams that the server serves at once.
#[derive(Debug)]
pub(crate) struct Seat(Arc<App>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl App {
    pub fn new(host: Host, catalog: Arc<dyn Catalog>, config: ServerConfig) -> Arc<App> {
        Arc::new(App {
            keepers: Keepers::new(host.clone()),
            viewers: Viewers::new(host.clone(), config.times.reconnect_grace),
            feeds: Feeds::new(host.clone()),
            host,
            catalog,
            config,
            jobs: Jobs::default(),
            swept: Outcomes::default(),
            ending: watch::Sender::new(false),
            answering: watch::Sender::new(0),
            streams: AtomicUsize::new(0),
        })
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Counts a request from now until its answer begins. Refused once the server is about to end: another one, or this
    /// one's successor, will answer.
    pub fn enter(self: &Arc<Self>) -> Answer<Answering> {
        self.answering.send_modify(|n| *n += 1);
        let answering = Answering(Arc::clone(self));
        if self.is_ending() {
            return Err(ApiError::new(ErrorCode::Unavailable, "this server is about to end: try again"));
        }
        Ok(answering)
    }

    /// How many streams are being served.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Returns once every answer that was due has begun.
    pub async fn answered(&self) {
        let mut answering = self.answering.subscribe();
        until(&mut answering, |n| *n == 0).await;
    }

    /// A place for a stream.
    pub fn seat(self: &Arc<Self>) -> Answer<Seat> {
        let most = self.config.limits.viewers;
        let taken = self.streams.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(self));
        if taken >= most {
            return Err(ApiError::new(
                ErrorCode::Unavailable,
                format!(
                    "this server serves {most} streams at once and has no room for another: try again later"
                ),
            ));
        }
        Ok(seat)
    }
}
