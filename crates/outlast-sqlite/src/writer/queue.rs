//! What waits to be written.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Job;

/// At most so many writes share a commit, so that an urgent one never waits for long.
const BATCH: usize = 256;
/// So many places of a batch are kept for writes that are not urgent, so that they get on whatever happens.
const KEPT: usize = 32;

/// Which queue a write goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Claims, renewals, ends, cancels: a lease must not be lost because others print a lot.
    Urgent,
    /// Everything else.
    Normal,
}

/// What the writer is to do.
pub(super) enum Task {
    /// Write these, in this order, and perhaps look as well.
    Write(Vec<Box<dyn Job>>, bool),
    /// See whether another process has committed something.
    Look,
    /// End: nothing is left and nothing will come.
    End,
}

#[derive(Default)]
struct State {
    urgent: VecDeque<Box<dyn Job>>,
    normal: VecDeque<Box<dyn Job>>,
    look: bool,
    closed: bool,
}

/// The two queues of the writer.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a write; gives it back where the queue is closed.
    pub(crate) fn push(&self, job: Box<dyn Job>, urgency: Urgency) -> Result<(), Box<dyn Job>> {
        let mut state = self.lock();
        if state.closed {
            return Err(job);
        }
        match urgency {
            Urgency::Urgent => state.urgent.push_back(job),
            Urgency::Normal => state.normal.push_back(job),
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Something has happened to the write-ahead log, perhaps by another process.
    pub(crate) fn look(&self) {
        self.lock().look = true;
        self.wake.notify_one();
    }

    /// Takes no more writes; what is in the queue is still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Waits for something to do. Everything that came while the last commit was in flight comes at once.
    pub(super) fn next(&self) -> Task {
        let mut state = self.lock();
        loop {
            if !state.urgent.is_empty() || !state.normal.is_empty() {
                let urgent = state.urgent.len().min(BATCH - KEPT);
                let mut jobs: Vec<_> = state.urgent.drain(..urgent).collect();
                let normal = state.normal.len().min(BATCH - jobs.len());
                jobs.extend(state.normal.drain(..normal));
                return Task::Write(jobs, std::mem::take(&mut state.look));
            }
            if state.closed {
                return Task::End;
            }
            if std::mem::take(&mut state.look) {
                return Task::Look;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes what is left, for a writer that cannot go on.
    pub(super) fn drain(&self) -> Vec<Box<dyn Job>> {
        let mut state = self.lock();
        state.closed = true;
        let mut jobs: Vec<_> = state.urgent.drain(..).collect();
        jobs.extend(state.normal.drain(..));
        jobs
    }
}
