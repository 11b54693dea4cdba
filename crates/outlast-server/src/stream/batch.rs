//! Events that were read together, encoded once for all who are at the same place.

use std::sync::OnceLock;

use bytes::Bytes;
use outlast_core::Seq;
use outlast_store::StoredEvent;

use super::form::Form;

/// A piece of the log: everything after `after` up to and including `last`.
#[derive(Debug)]
pub(super) struct Batch {
    pub after: Seq,
    pub last: Seq,
    events: Vec<StoredEvent>,
    sse: OnceLock<Bytes>,
    ndjson: OnceLock<Bytes>,
}

impl Batch {
    /// Of events that follow `after`; none where there are none.
    pub fn new(after: Seq, events: Vec<StoredEvent>) -> Option<Batch> {
        let last = events.last()?.seq;
        Some(Batch { after, last, events, sse: OnceLock::new(), ndjson: OnceLock::new() })
    }

    /// About how much memory it takes.
    pub fn size(&self) -> usize {
        self.events.iter().map(|event| event.json.len() + 64).sum()
    }

    pub fn bytes(&self, form: Form) -> Bytes {
        let cell = match form {
            // Events look the same in both.
            Form::Sse | Form::Native => &self.sse,
            Form::Ndjson => &self.ndjson,
        };
        let encode = || {
            let mut out = Vec::new();
            form.events(&self.events, &mut out);
            Bytes::from(out)
        };
        cell.get_or_init(encode).clone()
    }
}
