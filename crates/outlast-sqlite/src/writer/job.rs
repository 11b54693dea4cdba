//! Writes on their way to the writer and their answers on the way back.

use outlast_core::run::ClaimToken;
use outlast_store::StoreError;
use tokio::sync::oneshot;

use super::queue::{Queue, Urgency};
use crate::failure::Tried;
use crate::sql::{self, Tx};

/// One write. It may be attempted several times, since a batch that fails is repeated one by one; only what the last
/// attempt found counts, and it is told only after the commit.
pub(crate) trait Job: Send {
    /// Gathers facts, decides, writes. A refusal has written nothing and is no failure.
    fn attempt(&mut self, tx: &Tx<'_>) -> Tried<()>;
    /// Whether it is pointless to attempt it.
    fn is_pointless(&self) -> bool;
    /// Tells the caller: what the last attempt found, or why it was not committed.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>, queue: &Queue);
}

/// A [`Job`] made of a closure.
pub(crate) struct Write<W, T, E> {
    work: W,
    found: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
    /// For writes that grant a claim: which one.
    granted: Option<fn(&T) -> Option<&ClaimToken>>,
}

impl<W, T, E> Write<W, T, E>
where
    W: FnMut(&Tx<'_>) -> Tried<Result<T, E>> + Send,
{
    /// A write, and where its answer comes.
    pub(crate) fn new(work: W) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (reply, answer) = oneshot::channel();
        (Write { work, found: None, reply, granted: None }, answer)
    }

    /// Says which claim the answer grants. Where nobody waits for the answer any more, the claim is given back:
    /// otherwise its owner would renew for ever what it does not know to hold.
    pub(crate) fn granting(mut self, granted: fn(&T) -> Option<&ClaimToken>) -> Self {
        self.granted = Some(granted);
        self
    }
}

impl<W, T, E> Job for Write<W, T, E>
where
    W: FnMut(&Tx<'_>) -> Tried<Result<T, E>> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn attempt(&mut self, tx: &Tx<'_>) -> Tried<()> {
        self.found = Some((self.work)(tx)?);
        Ok(())
    }

    fn is_pointless(&self) -> bool {
        self.granted.is_some() && self.reply.is_closed()
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>, queue: &Queue) {
        let answer = match (outcome, self.found) {
            (Ok(()), Some(found)) => found,
            (Ok(()), None) => return,
            (Err(error), _) => Err(error.into()),
        };
        if let (Err(Ok(unheard)), Some(granted)) = (self.reply.send(answer), self.granted)
            && let Some(token) = granted(&unheard)
        {
            let release = Release(token.clone());
            // A queue that is closed is about to give back everything.
            let _ = queue.push(Box::new(release), Urgency::Urgent);
        }
    }
}

/// Gives back a claim that nobody has heard of.
struct Release(ClaimToken);

impl Job for Release {
    fn attempt(&mut self, tx: &Tx<'_>) -> Tried<()> {
        sql::release(tx, &self.0)
    }

    fn is_pointless(&self) -> bool {
        false
    }

    /// Nobody waits. A claim that could not be given back runs out.
    fn answer(self: Box<Self>, _outcome: Result<(), StoreError>, _queue: &Queue) {}
}
