//! Following a log.

use std::time::Duration;

use outlast_core::event::{Chunk, EventKind};
use outlast_core::{Offset, RunId, Seq};
use outlast_store::{LogEnd, Page, ReadError, Signal};

use crate::Host;

/// Events of a page at most, and bytes after which no further event joins it.
const PAGE_EVENTS: usize = 1000;
const PAGE_BYTES: usize = 512 * 1024;

/// One reader of one run's log. It only reads: it neither drives nor slows down who does, and one that lagged reads on
/// from where it was.
#[derive(Debug)]
pub struct Viewer {
    host: Host,
    run_id: RunId,
    after: Seq,
    signal: Signal,
}

/// What a reader sees next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Events, in order, each exactly once.
    Events(Page),
    /// Nothing more for now: what follows is live.
    CaughtUp,
    /// The log is closed and everything was seen.
    Closed,
    /// The events have aged out.
    Expired,
}

impl Host {
    /// A reader from this offset on. An offset beyond the tail is refused.
    pub async fn view(&self, run_id: &RunId, from: Offset) -> Result<Viewer, ReadError> {
        let signal = self.inner.store.subscribe(run_id);
        let mut viewer = Viewer { host: self.clone(), run_id: run_id.clone(), after: Seq::START, signal };
        viewer.after = match from {
            Offset::After(seq) => seq,
            Offset::Now => viewer.page(Seq::START, 1).await?.tail,
        };
        viewer.page(viewer.after, 1).await?;
        Ok(viewer)
    }
}

impl Host {
    /// A piece of a run's log: at most so many events, strictly after `after`, and no further one once so many bytes are
    /// reached. Waits for a store that is away.
    pub async fn page(
        &self,
        run_id: &RunId,
        after: Seq,
        max_events: usize,
        max_bytes: usize,
    ) -> Result<Page, ReadError> {
        let host = &self.inner;
        let mut hold = host.hold_reads();
        loop {
            match host.store.read(&host.tenant, run_id, after, max_events, max_bytes).await {
                Ok(page) => match host.whole_page(run_id, page, max_bytes).await {
                    Ok(page) => {
                        hold.done();
                        return Ok(page);
                    }
                    Err(ReadError::Store(error)) => hold.wait(error).await?,
                    Err(error) => return Err(error),
                },
                Err(ReadError::Store(error)) => hold.wait(error).await?,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Viewer {
    /// Where the reader is: after the event of this number.
    pub fn position(&self) -> Seq {
        self.after
    }

    /// What is stored after the last answer, at once.
    pub async fn next(&mut self) -> Result<Seen, ReadError> {
        let page = self.page(self.after, PAGE_EVENTS).await?;
        if page.end == LogEnd::Expired {
            return Ok(Seen::Expired);
        }
        match page.events.last() {
            Some(last) => {
                self.after = last.seq;
                Ok(Seen::Events(page))
            }
            None if page.is_last(self.after) => Ok(Seen::Closed),
            None => Ok(Seen::CaughtUp),
        }
    }

    /// Returns when something may have changed, or when it is time to look anyway.
    pub async fn wait(&mut self) {
        let poll: Duration = self.host.inner.options.read_poll;
        let clock = self.host.inner.ports.clock.clone();
        tokio::select! {
            biased;
            () = self.signal.changed() => {}
            () = clock.sleep(poll) => {}
        }
    }

    async fn page(&self, after: Seq, events: usize) -> Result<Page, ReadError> {
        self.host.page(&self.run_id, after, events, PAGE_BYTES).await
    }
}

/// A stored event as a chunk again. None for JSON without a type, which no store of ours holds.
pub(crate) fn chunk(json: String) -> Option<Chunk> {
    #[derive(serde::Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "type")]
        kind: std::borrow::Cow<'a, str>,
    }
    let kind =
        serde_json::from_str::<Typed<'_>>(&json).ok().and_then(|typed| EventKind::parse(&typed.kind))?;
    Some(Chunk { kind, json })
}
