//! The live end of a log, read once for all its viewers.
//!
//! Each run that has viewers here has one task that reads what is new and keeps the last of it in memory. A viewer at
//! the tail takes it from there; one that lags, however far, reads the store for itself. So a thousand viewers cost one
//! read for each event, and no viewer can hold up the reader or another viewer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use outlast_core::{Offset, RunId, Seq};
use outlast_runtime::{Host, Seen};
use outlast_store::ReadError;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::batch::Batch;

/// How much of a log's end is kept for viewers that are nearly at the tail, in bytes.
const KEPT: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Feeds {
    host: Host,
    runs: Mutex<HashMap<RunId, Weak<Feed>>>,
}

/// The live end of one run's log. Its task ends with its last viewer.
#[derive(Debug)]
pub(super) struct Feed {
    end: watch::Receiver<End>,
    task: AbortHandle,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is known of the live end.
#[derive(Debug)]
pub(super) struct End {
    /// The last batches, each beginning where the one before ends.
    batches: VecDeque<Arc<Batch>>,
    size: usize,
    /// The last event that was seen. None: nothing was looked at yet.
    tail: Option<Seq>,
    /// Nothing follows the tail.
    closed: bool,
    /// Why nothing more will be known.
    failed: Option<ReadError>,
}

/// What a viewer at a place finds.
#[derive(Debug)]
pub(super) enum Found {
    /// The events that follow.
    Batch(Arc<Batch>),
    /// They are not here any more, or the place is within a batch: read the store, at most so far.
    Store { until: Seq },
    /// Nothing follows for now.
    Tail,
    /// Nothing will ever follow.
    Closed,
    /// It is not known whether something follows.
    Failed(ReadError),
}

impl Feeds {
    pub fn new(host: Host) -> Feeds {
        Feeds { host, runs: Mutex::default() }
    }

    /// The run's feed, begun if nobody else has one.
    pub(super) fn get(&self, run_id: &RunId) -> Arc<Feed> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = runs.get(run_id).and_then(Weak::upgrade) {
            return feed;
        }
        // The map stays as large as what is watched.
        if runs.len() >= 64 && runs.len().is_power_of_two() {
            runs.retain(|_, feed| feed.strong_count() > 0);
        }
        let (sender, end) = watch::channel(End {
            batches: VecDeque::new(),
            size: 0,
            tail: None,
            closed: false,
            failed: None,
        });
        let task = tokio::spawn(read_on(self.host.clone(), run_id.clone(), sender)).abort_handle();
        let feed = Arc::new(Feed { end, task });
        runs.insert(run_id.clone(), Arc::downgrade(&feed));
        feed
    }
}

impl Feed {
    pub fn end(&self) -> watch::Receiver<End> {
        self.end.clone()
    }
}

impl End {
    /// What follows this place.
    pub fn after(&self, place: Seq) -> Found {
        let Some(tail) = self.tail else {
            return match &self.failed {
                Some(error) => Found::Failed(error.clone()),
                None => Found::Tail,
            };
        };
        if place >= tail {
            return match &self.failed {
                Some(error) => Found::Failed(error.clone()),
                None if self.closed => Found::Closed,
                None => Found::Tail,
            };
        }
        // Batches are in order and leave nothing out, so the first that ends behind the place holds what follows it.
        let n = self.batches.partition_point(|batch| batch.last <= place);
        match self.batches.get(n) {
            Some(batch) if batch.after == place => Found::Batch(Arc::clone(batch)),
            Some(batch) if batch.after < place => Found::Store { until: batch.last },
            Some(batch) => Found::Store { until: batch.after },
            None => Found::Store { until: tail },
        }
    }

    fn push(&mut self, batch: Batch) {
        self.tail = Some(batch.last);
        self.size += batch.size();
        self.batches.push_back(Arc::new(batch));
        while self.size > KEPT
            && let Some(oldest) = self.batches.pop_front()
        {
            self.size -= oldest.size();
        }
    }
}

async fn read_on(host: Host, run_id: RunId, end: watch::Sender<End>) {
    if let Err(error) = read_until_closed(&host, &run_id, &end).await {
        end.send_modify(|end| end.failed = Some(error));
    }
}

async fn read_until_closed(host: &Host, run_id: &RunId, end: &watch::Sender<End>) -> Result<(), ReadError> {
    let mut viewer = host.view(run_id, Offset::Now).await?;
    end.send_modify(|end| end.tail = Some(viewer.position()));
    loop {
        let after = viewer.position();
        match viewer.next().await? {
            Seen::Events(page) => {
                if let Some(batch) = Batch::new(after, page.events) {
                    end.send_modify(|end| end.push(batch));
                }
            }
            Seen::CaughtUp => viewer.wait().await,
            Seen::Closed | Seen::Expired => {
                end.send_modify(|end| end.closed = true);
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::event::Origin;
    use outlast_store::StoredEvent;

    fn batch(after: u64, last: u64, size: usize) -> Batch {
        let events = (after + 1..=last)
            .map(|seq| StoredEvent {
                seq: Seq(seq),
                at: 0,
                origin: Origin::Host,
                json: "x".repeat(size),
                pointer: None,
            })
            .collect();
        Batch::new(Seq(after), events).expect("events")
    }

    fn end() -> End {
        End { batches: VecDeque::new(), size: 0, tail: Some(Seq(10)), closed: false, failed: None }
    }

    fn until(found: Found) -> Option<u64> {
        match found {
            Found::Store { until } => Some(until.0),
            _ => None,
        }
    }

    #[test]
    fn every_place_finds_what_follows_it() {
        let mut end = end();
        assert!(matches!(end.after(Seq(10)), Found::Tail));
        assert_eq!(until(end.after(Seq(3))), Some(10));
        end.push(batch(10, 12, 1));
        end.push(batch(12, 15, 1));
        assert_eq!(until(end.after(Seq(3))), Some(10), "up to where the batches begin");
        assert!(matches!(end.after(Seq(10)), Found::Batch(batch) if batch.last == Seq(12)));
        assert_eq!(until(end.after(Seq(11))), Some(12), "to the end of the batch it is in");
        assert!(matches!(end.after(Seq(12)), Found::Batch(batch) if batch.last == Seq(15)));
        assert_eq!(until(end.after(Seq(14))), Some(15));
        assert!(matches!(end.after(Seq(15)), Found::Tail));
        assert!(matches!(end.after(Seq(99)), Found::Tail), "the store answered this reader later");
        end.closed = true;
        assert!(matches!(end.after(Seq(15)), Found::Closed));
        assert!(matches!(end.after(Seq(12)), Found::Batch(_)), "what is left is still delivered");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut end = end();
        for n in 0..100 {
            end.push(batch(10 + n, 11 + n, 10_000));
        }
        assert!(end.size <= KEPT && end.batches.len() < 30, "{} bytes", end.size);
        assert_eq!(end.tail, Some(Seq(110)));
        let first = end.batches.front().expect("some").after;
        assert_eq!(until(end.after(Seq(10))), Some(first.0));
        end.push(batch(110, 111, 10 * KEPT));
        assert_eq!(until(end.after(Seq(110))), Some(111), "a batch that is too large is read from the store");
    }
}
