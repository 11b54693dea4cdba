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

#[cfg(test)]
mod tests {
    use outlast_store::StoreError;

    use super::*;
    use crate::writer::Write;

    /// The order in which the writes of the next batch come, by what their callers are told.
    fn batch(
        queue: &Queue,
        waiting: &mut Vec<(String, tokio::sync::oneshot::Receiver<Result<(), StoreError>>)>,
    ) -> Vec<String> {
        let Task::Write(jobs, _) = queue.next() else { panic!("nothing to write") };
        let mut order = Vec::new();
        for job in jobs {
            job.answer(Err(crate::failure::unavailable("now")), queue);
            waiting.retain_mut(|(name, answer)| {
                let told = answer.try_recv().is_ok();
                if told {
                    order.push(name.clone());
                }
                !told
            });
        }
        order
    }

    #[test]
    fn urgent_writes_go_first_and_the_others_are_not_forgotten() {
        let queue = Queue::default();
        let mut waiting = Vec::new();
        let mut push = |name: String, urgency| {
            let (job, answer) = Write::new(|_| Ok(Ok(())));
            assert!(queue.push(Box::new(job), urgency).is_ok());
            waiting.push((name, answer));
        };
        for n in 0..300 {
            push(format!("normal {n}"), Urgency::Normal);
        }
        for n in 0..300 {
            push(format!("urgent {n}"), Urgency::Urgent);
        }
        let first = batch(&queue, &mut waiting);
        assert_eq!(first.len(), BATCH);
        let urgent = BATCH - KEPT;
        let expected =
            (0..urgent).map(|n| format!("urgent {n}")).chain((0..KEPT).map(|n| format!("normal {n}")));
        assert!(first.into_iter().eq(expected));
        let second = batch(&queue, &mut waiting);
        assert_eq!(
            (second[0].as_str(), second.last().map(String::as_str)),
            ("urgent 224", Some("normal 211"))
        );
        assert_eq!(batch(&queue, &mut waiting).len(), 88);
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_gives_what_it_has() {
        let queue = Queue::default();
        let job = || Write::<_, (), StoreError>::new(|_| Ok(Ok(()))).0;
        assert!(queue.push(Box::new(job()), Urgency::Normal).is_ok());
        queue.close();
        assert!(queue.push(Box::new(job()), Urgency::Urgent).is_err());
        assert!(matches!(queue.next(), Task::Write(jobs, _) if jobs.len() == 1));
        assert!(matches!(queue.next(), Task::End));
    }
}
