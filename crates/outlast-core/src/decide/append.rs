//! May this fenced write be made?

use crate::decide::Fenced;
use crate::run::{Cancel, CancelReason, ClaimToken, Status};
use crate::{Nonce, Seq};

/// The part of a run that decides on fenced writes, as of the transaction that would write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFacts {
    /// The run's status.
    pub status: Status,
    /// The epoch of the latest claim.
    pub epoch: u64,
    /// Its nonce; none once it was given back.
    pub nonce: Option<Nonce>,
    /// The number of the log's last event.
    pub tail: Seq,
    /// The batch of the append that was committed last.
    pub last_batch: Option<Nonce>,
    /// Whether somebody wants the run to stop.
    pub cancel: Option<Cancel>,
}

/// What becomes of a write that is not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteDecision {
    /// It is written.
    Write,
    /// It was committed before: it is answered as it was then.
    Written,
}

/// Why a write changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteRefusal {
    /// The claim is not current.
    Fenced(Fenced),
    /// The log ends elsewhere than the writer believes.
    TailMoved {
        /// What the writer named.
        expected: Seq,
        /// What is so.
        actual: Seq,
    },
}

/// Why an end changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndRefusal {
    /// As any write.
    Write(WriteRefusal),
    /// A cancel is on the record that the end does not take into account.
    Cancelled(Cancel),
}

impl From<Fenced> for WriteRefusal {
    fn from(fenced: Fenced) -> Self {
        WriteRefusal::Fenced(fenced)
    }
}

impl From<WriteRefusal> for EndRefusal {
    fn from(refusal: WriteRefusal) -> Self {
        EndRefusal::Write(refusal)
    }
}

impl WriteFacts {
    /// Whether the token may write. A lease that has merely run out is no reason to refuse: as long as nobody else has
    /// claimed, there is one writer.
    pub fn fence(&self, token: &ClaimToken) -> Result<(), Fenced> {
        if token.epoch != self.epoch || self.nonce.as_ref() != Some(&token.nonce) {
            return Err(Fenced::ClaimLost {
                run_id: token.run_id.clone(),
                held_epoch: token.epoch,
                current_epoch: self.epoch,
            });
        }
        if self.status.is_terminal() {
            return Err(Fenced::TerminalRun(self.status));
        }
        Ok(())
    }

    /// Decides on an append.
    pub fn append(
        &self,
        token: &ClaimToken,
        batch: &Nonce,
        expected_tail: Seq,
    ) -> Result<WriteDecision, WriteRefusal> {
        // Before the fence: what was committed was committed, whoever holds the claim since.
        if self.last_batch.as_ref() == Some(batch) {
            return Ok(WriteDecision::Written);
        }
        self.fence(token)?;
        self.at_tail(expected_tail)
    }

    /// Decides on the end. `cancel` is the wish to stop that the end takes into account.
    pub fn finish(
        &self,
        token: &ClaimToken,
        batch: &Nonce,
        expected_tail: Seq,
        cancel: Option<CancelReason>,
    ) -> Result<WriteDecision, EndRefusal> {
        if self.status.is_terminal() && self.last_batch.as_ref() == Some(batch) {
            return Ok(WriteDecision::Written);
        }
        self.fence(token).map_err(WriteRefusal::from)?;
        match self.cancel {
            Some(recorded) if Some(recorded.reason) != cancel => Err(EndRefusal::Cancelled(recorded)),
            _ => Ok(self.at_tail(expected_tail)?),
        }
    }

    /// Decides on the word that the latch is taken; `launched` where that is on the record already.
    pub fn launched(
        &self,
        token: &ClaimToken,
        expected_tail: Seq,
        launched: bool,
    ) -> Result<WriteDecision, WriteRefusal> {
        self.fence(token)?;
        if launched { Ok(WriteDecision::Written) } else { self.at_tail(expected_tail) }
    }

    fn at_tail(&self, expected: Seq) -> Result<WriteDecision, WriteRefusal> {
        if self.tail == expected {
            Ok(WriteDecision::Write)
        } else {
            Err(WriteRefusal::TailMoved { expected, actual: self.tail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OwnerId, RunId};

    fn token(epoch: u64, nonce: &str) -> ClaimToken {
        ClaimToken {
            run_id: RunId::new("r").expect("id"),
            owner: OwnerId::new("o").expect("id"),
            epoch,
            nonce: Nonce::from_stored(nonce),
        }
    }

    fn facts(status: Status) -> WriteFacts {
        WriteFacts {
            status,
            epoch: 3,
            nonce: Some(Nonce::from_stored("n")),
            tail: Seq(7),
            last_batch: Some(Nonce::from_stored("last")),
            cancel: None,
        }
    }

    #[test]
    fn the_fence_wants_epoch_and_nonce() {
        let token = token(3, "n");
        assert_eq!(facts(Status::Running).fence(&token), Ok(()));
        assert_eq!(facts(Status::Completed).fence(&token), Err(Fenced::TerminalRun(Status::Completed)));
        let nonce = |text| Some(Nonce::from_stored(text));
        for (epoch, nonce) in [(4, nonce("n")), (3, nonce("m")), (3, None), (2, nonce("n"))] {
            // A stale claim is told as such also where the run has ended.
            for status in [Status::Running, Status::Completed] {
                let facts = WriteFacts { epoch, nonce: nonce.clone(), ..facts(status) };
                assert!(matches!(
                    facts.fence(&token),
                    Err(Fenced::ClaimLost { held_epoch: 3, current_epoch, .. }) if current_epoch == epoch
                ));
            }
        }
    }

    #[test]
    fn an_append() {
        let batch = Nonce::from_stored;
        let running = facts(Status::Running);
        assert_eq!(running.append(&token(3, "n"), &batch("new"), Seq(7)), Ok(WriteDecision::Write));
        for tail in [6, 8] {
            let answer = running.append(&token(3, "n"), &batch("new"), Seq(tail));
            assert_eq!(answer, Err(WriteRefusal::TailMoved { expected: Seq(tail), actual: Seq(7) }));
        }
        assert!(matches!(
            running.append(&token(2, "n"), &batch("new"), Seq(7)),
            Err(WriteRefusal::Fenced(Fenced::ClaimLost { .. }))
        ));
        // What was committed last is answered so, also to who was superseded since, and at whatever tail.
        assert_eq!(running.append(&token(2, "m"), &batch("last"), Seq(5)), Ok(WriteDecision::Written));
    }

    #[test]
    fn an_end() {
        let batch = Nonce::from_stored;
        let cancel = |reason| Some(Cancel { reason, at: 1 });
        let end =
            |facts: &WriteFacts, name, reason| facts.finish(&token(3, "n"), &batch(name), Seq(7), reason);
        let running = facts(Status::Running);
        assert_eq!(end(&running, "new", None), Ok(WriteDecision::Write));
        // An append is not the end, whatever batch it had.
        assert_eq!(end(&running, "last", None), Ok(WriteDecision::Write));
        assert_eq!(end(&facts(Status::Failed), "last", None), Ok(WriteDecision::Written));
        let refused = WriteRefusal::Fenced(Fenced::TerminalRun(Status::Failed));
        assert_eq!(end(&facts(Status::Failed), "new", None), Err(refused.into()));
        let stopped = WriteFacts { cancel: cancel(CancelReason::User), ..running };
        assert_eq!(end(&stopped, "new", Some(CancelReason::User)), Ok(WriteDecision::Write));
        for reason in [None, Some(CancelReason::Ttl)] {
            let recorded = Cancel { reason: CancelReason::User, at: 1 };
            assert_eq!(end(&stopped, "new", reason), Err(EndRefusal::Cancelled(recorded)));
        }
    }

    #[test]
    fn a_launch() {
        let running = facts(Status::Running);
        assert_eq!(running.launched(&token(3, "n"), Seq(7), false), Ok(WriteDecision::Write));
        assert_eq!(
            running.launched(&token(3, "n"), Seq(6), false),
            Err(WriteRefusal::TailMoved { expected: Seq(6), actual: Seq(7) })
        );
        assert_eq!(running.launched(&token(3, "n"), Seq(6), true), Ok(WriteDecision::Written));
        assert!(running.launched(&token(2, "n"), Seq(7), true).is_err());
    }
}
