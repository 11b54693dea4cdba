//! Is a replay of the journal the stored log?
//!
//! The events that a journal yields when it is translated again must be the stored ones, one after the other: the same
//! origin, and the same content but for times. Events of the host (`run.accepted`, the terminal event, whatever a host
//! writes in between) come from no journal and are left out by their origin, however many there are.

use serde_json::Value;

use crate::event::Origin;
use crate::{Seq, canonical};

/// A replay that differs from the log. The log is what clients have seen, so it is right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Diverged {
    /// `JournalReplayDiverged`: an event is another one, is missing, or is one too many.
    #[error("the replay differs at journal event {index}{}: stored {stored}, replayed {replayed}", at(.offset))]
    Event {
        /// Which of the journal's events, from 0.
        index: u64,
        /// The stored event's number; none where the log has no such event.
        offset: Option<Seq>,
        /// What is stored, as origin and fingerprint; `nothing` where the log has no such event.
        stored: String,
        /// What the journal yields, likewise.
        replayed: String,
    },
    /// `JournalReplayThreadIdMismatch`: the first difference is the thread that the events name. The journal is that of
    /// another conversation, or the run's thread was given wrongly.
    #[error("the replay differs at journal event {index}{}: it is of thread {replayed:?}, the log of {stored:?}", at(.offset))]
    ThreadId {
        /// Which of the journal's events, from 0.
        index: u64,
        /// The stored event's number.
        offset: Option<Seq>,
        /// The thread that the log names.
        stored: String,
        /// The thread that the journal yields.
        replayed: String,
    },
}

fn at(offset: &Option<Seq>) -> String {
    offset.map_or_else(String::new, |seq| format!(" (offset {})", seq.offset()))
}

/// Walks along a log and a replay of its journal.
#[derive(Debug, Clone, Default)]
pub struct Alignment {
    compared: u64,
}

/// One event of the walk.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Where it comes from.
    pub origin: Origin,
    /// Its JSON.
    pub json: &'a str,
}

impl Alignment {
    /// How many events of the journal were the same so far.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// Whether an event of the log takes part: those of the host do not.
    pub fn takes(origin: Origin) -> bool {
        origin != Origin::Host
    }

    /// Compares the next event of each. `stored` has its number.
    pub fn step(
        &mut self,
        stored: Option<(Seq, Step<'_>)>,
        replayed: Option<Step<'_>>,
    ) -> Result<(), Diverged> {
        let (index, offset) = (self.compared, stored.map(|(seq, _)| seq));
        match (stored, replayed) {
            (Some((_, a)), Some(b)) if a.origin == b.origin && same(a.json, b.json) => {
                self.compared += 1;
                Ok(())
            }
            (Some((_, a)), Some(b)) => match (thread_id(a.json), thread_id(b.json)) {
                (Some(stored), Some(replayed)) if stored != replayed => {
                    Err(Diverged::ThreadId { index, offset, stored, replayed })
                }
                _ => Err(Diverged::Event { index, offset, stored: show(Some(a)), replayed: show(Some(b)) }),
            },
            (a, b) => {
                let stored = show(a.map(|(_, step)| step));
                Err(Diverged::Event { index, offset, stored, replayed: show(b) })
            }
        }
    }
}

fn same(a: &str, b: &str) -> bool {
    a == b || fingerprint(a) == fingerprint(b)
}

fn fingerprint(json: &str) -> String {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => canonical::fingerprint(&value),
        // Text that is no JSON is compared as it is.
        Err(_) => canonical::digest(&Value::String(json.to_owned())),
    }
}

fn thread_id(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    value.get("threadId")?.as_str().map(str::to_owned)
}

fn show(step: Option<Step<'_>>) -> String {
    let Some(Step { origin, json }) = step else {
        return "nothing".to_owned();
    };
    let print = fingerprint(json);
    let short = print.get(..16).unwrap_or(&print);
    match origin {
        Origin::Host => format!("{short} of the host"),
        Origin::Journal { byte, index } => format!("{short} of byte {byte}, event {index}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(byte: u64, json: &str) -> Step<'_> {
        Step { origin: Origin::Journal { byte, index: 0 }, json }
    }

    fn walk(stored: &[Step<'_>], replayed: &[Step<'_>]) -> Result<u64, Diverged> {
        let mut alignment = Alignment::default();
        for n in 0..stored.len().max(replayed.len()) {
            let stored = stored.get(n).map(|step| (Seq(n as u64 + 3), *step));
            alignment.step(stored, replayed.get(n).copied())?;
        }
        Ok(alignment.compared())
    }

    #[test]
    fn the_same_but_for_times_and_the_order_of_keys() {
        let stored = [step(0, r#"{"type":"RAW","a":1,"timestamp":5}"#), step(9, r#"{"x":{"b":1,"a":2}}"#)];
        let replayed = [step(0, r#"{"a":1,"type":"RAW"}"#), step(9, r#"{"x":{"a":2,"b":1}}"#)];
        assert_eq!(walk(&stored, &replayed), Ok(2));
        assert_eq!(walk(&[], &[]), Ok(0));
    }

    #[test]
    fn every_kind_of_difference() {
        let one = step(0, r#"{"type":"RAW"}"#);
        for (stored, replayed, at) in [
            (vec![one, step(9, "{\"a\":1}")], vec![one, step(9, "{\"a\":2}")], 1),
            (vec![one], vec![step(1, one.json)], 0),
            (vec![one, one], vec![one], 1),
            (vec![one], vec![one, one], 1),
            (vec![step(0, r#"{"args":[1,2]}"#)], vec![step(0, r#"{"args":[2,1]}"#)], 0),
        ] {
            match walk(&stored, &replayed) {
                Err(Diverged::Event { index, .. }) => assert_eq!(index, at),
                other => panic!("{other:?}"),
            }
        }
        let error = walk(&[one, one], &[one]).expect_err("shorter").to_string();
        assert!(error.contains("replayed nothing") && error.contains("offset 0000000000000004"), "{error}");
    }

    #[test]
    fn another_thread_is_told_as_such() {
        let of = |thread: &str| format!(r#"{{"type":"RUN_STARTED","threadId":"{thread}"}}"#);
        let (a, b) = (of("t"), of("u"));
        match walk(&[step(0, &a)], &[step(0, &b)]) {
            Err(Diverged::ThreadId { index: 0, stored, replayed, .. }) => {
                assert_eq!((stored.as_str(), replayed.as_str()), ("t", "u"));
            }
            other => panic!("{other:?}"),
        }
    }
}
