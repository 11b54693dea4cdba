//! One viewer of one run: the stored prefix at once, then what comes, until the log is closed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::duration::millis;
use outlast_core::{RunId, Seq};
use outlast_store::{LogEnd, ReadError};
use tokio::sync::watch;

use super::batch::Batch;
use super::feed::{End, Feed, Found};
use super::form::{Form, named};
use super::state::{Heartbeat, RunState};
use crate::app::{App, Seat};
use crate::keep::Attendance;

/// How much is read from the store, and held for a viewer, at a time.
const PAGE_EVENTS: usize = 1000;
const PAGE_BYTES: usize = 128 * 1024;

/// What a viewer wants.
#[derive(Debug)]
pub(crate) struct Viewing {
    pub run_id: RunId,
    pub form: Form,
    /// Only what follows this place.
    pub after: Seq,
    pub seat: Seat,
    /// None for a run that has ended.
    pub attendance: Option<Attendance>,
}

/// A viewer on its way through the log. Everything that it costs is in here and goes with it.
#[derive(Debug)]
pub(crate) struct Follow {
    app: Arc<App>,
    run_id: RunId,
    form: Form,
    place: Seq,
    live: Option<Live>,
    caught_up: bool,
    /// When something was last sent, on the boot clock in milliseconds.
    sent: u64,
    /// What was last told of the run, in the form that tells it.
    state: Option<RunState>,
    looked: u64,
    _seat: Seat,
    _attendance: Option<Attendance>,
}

/// The shared live end.
#[derive(Debug)]
struct Live {
    end: watch::Receiver<End>,
    /// Holds the feed's task.
    _feed: Arc<Feed>,
}

/// What the store had.
enum Read {
    Events(Bytes),
    /// Nothing for now.
    Nothing,
    /// Nothing, and nothing will follow.
    Over,
}

impl Follow {
    pub fn new(app: Arc<App>, viewing: Viewing) -> Follow {
        let now = app.host.ports().clock.boot_ms();
        Follow {
            run_id: viewing.run_id,
            form: viewing.form,
            place: viewing.after,
            live: None,
            caught_up: false,
            sent: now,
            state: None,
            // Long ago: the state comes first.
            looked: 0,
            _seat: viewing.seat,
            _attendance: viewing.attendance,
            app,
        }
    }

    /// The next bytes; none at the end of the log. An error ends the response as a cut connection does, so that the
    /// client comes back: a clean end would say that the run is over.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        loop {
            if let Some(bytes) = self.told().await? {
                return Ok(Some(self.sending(bytes)));
            }
            let found = match &self.live {
                // While it replays, a viewer is on its own; the live end is joined when it is near.
                None => Found::Store { until: Seq(u64::MAX) },
                Some(live) => live.end.borrow().after(self.place),
            };
            match found {
                Found::Batch(batch) => {
                    self.place = batch.last;
                    return Ok(Some(self.sending(batch.bytes(self.form))));
                }
                Found::Store { until } => match self.page(until).await? {
                    Read::Events(bytes) => return Ok(Some(self.sending(bytes))),
                    Read::Nothing => self.join(),
                    Read::Over => return self.over().await,
                },
                Found::Closed => return self.over().await,
                Found::Failed(error) => return Err(error),
                Found::Tail => {
                    if !self.caught_up {
                        self.caught_up = true;
                        return Ok(Some(self.sending(self.form.caught_up(self.place).into())));
                    }
                    if let Some(bytes) = self.wait().await {
                        return Ok(Some(self.sending(bytes)));
                    }
                }
            }
        }
    }

    fn sending(&mut self, bytes: Bytes) -> Bytes {
        self.sent = self.app.host.ports().clock.boot_ms();
        bytes
    }

    /// Reads a page from the store.
    async fn page(&mut self, until: Seq) -> Result<Read, ReadError> {
        let most = usize::try_from(until.0 - self.place.0).unwrap_or(usize::MAX).min(PAGE_EVENTS);
        let page = self.app.host.page(&self.run_id, self.place, most, PAGE_BYTES).await?;
        let over = page.is_last(self.place);
        let tail = page.tail;
        if page.end == LogEnd::Expired {
            // It aged out while it was read; nothing honest can follow.
            return Err(ReadError::RunNotFound(self.run_id.clone()));
        }
        let Some(batch) = Batch::new(self.place, page.events) else {
            return Ok(if over { Read::Over } else { Read::Nothing });
        };
        self.place = batch.last;
        if self.live.is_none() && !over && self.place >= tail {
            self.join();
        }
        Ok(Read::Events(batch.bytes(self.form)))
    }

    fn join(&mut self) {
        if self.live.is_none() {
            let feed = self.app.feeds.get(&self.run_id);
            self.live = Some(Live { end: feed.end(), _feed: feed });
        }
    }

    /// Waits until there may be more to send. Yields a heartbeat where the silence has become long.
    async fn wait(&mut self) -> Option<Bytes> {
        let times = &self.app.config.times;
        let clock = Arc::clone(&self.app.host.ports().clock);
        let until = |since: u64, time: Duration| {
            let due = since.saturating_add(millis(time));
            Duration::from_millis(due.saturating_sub(clock.boot_ms()))
        };
        let beat = until(self.sent, times.heartbeat);
        let look = match self.form {
            Form::Native => until(self.looked, times.status),
            Form::Sse | Form::Ndjson => beat,
        };
        let Some(live) = &mut self.live else {
            return None;
        };
        tokio::select! {
            biased;
            // An error means that the feed's task is gone; then what it left behind says so, or the next look does.
            changed = live.end.changed() => {
                if changed.is_err() {
                    clock.sleep(beat.min(times.status)).await;
                }
                None
            }
            () = clock.sleep(beat) => Some(self.heartbeat()),
            () = clock.sleep(look), if look < beat => None,
        }
    }

    fn heartbeat(&self) -> Bytes {
        match self.form {
            Form::Native => {
                let at = self.app.host.ports().clock.wall_ms();
                named("heartbeat", &Heartbeat::new(self.place, self.state.as_ref(), at)).into()
            }
            Form::Sse | Form::Ndjson => self.form.heartbeat().into(),
        }
    }

    /// In the form that tells it: the run's state, where it has changed since it was last told.
    async fn told(&mut self) -> Result<Option<Bytes>, ReadError> {
        let clock = &self.app.host.ports().clock;
        let every = millis(self.app.config.times.status);
        if self.form != Form::Native || clock.boot_ms() < self.looked.saturating_add(every) {
            return Ok(None);
        }
        self.look().await
    }

    async fn look(&mut self) -> Result<Option<Bytes>, ReadError> {
        self.looked = self.app.host.ports().clock.boot_ms();
        let run = self.app.host.run(&self.run_id).await?;
        let state = run.as_ref().map(RunState::of);
        if state == self.state {
            return Ok(None);
        }
        self.state = state;
        Ok(self.state.as_ref().map(|state| named("status", state).into()))
    }

    /// At the end of the log: what the run has become, where that was not told yet.
    async fn over(&mut self) -> Result<Option<Bytes>, ReadError> {
        match self.form {
            Form::Native => self.look().await,
            Form::Sse | Form::Ndjson => Ok(None),
        }
    }
}

impl Follow {
    /// The whole of it.
    pub fn into_stream(self) -> impl futures_util::Stream<Item = Result<Bytes, ReadError>> + Send + 'static {
        futures_util::stream::unfold(Some(self), async |follow| {
            let mut follow = follow?;
            match follow.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(follow))),
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(run = %follow.run_id, %error, "a stream is cut: its log cannot be read on");
                    Some((Err(error), None))
                }
            }
        })
    }
}
