//! Reading: what stands for a body is replaced by it.

use outlast_core::RunId;
use outlast_core::ledger::{Decoded, Kind, Record, RecordError, SessionId, message_id};
use outlast_store::{MessageRow, Page, StoredEvent, StoredRecord};

use super::fetch::EVENT;
use super::lighten::event_id;
use super::{Bodies, BodyError};

/// A body that could not be had; in its place is what stands for it, and says so.
#[derive(Debug)]
pub struct Missing {
    /// Whose: the id of a record, or of an event.
    pub id: String,
    /// Why.
    pub error: BodyError,
}

/// What was asked for, whole but for what is missing.
#[derive(Debug)]
pub struct Resolved<T> {
    /// What was asked for.
    pub value: T,
    /// What could not be had.
    pub missing: Vec<Missing>,
}

impl Bodies {
    /// The page with its bodies, as many events of it as fit into so many bytes, and at least one.
    pub async fn resolve_page(
        &self,
        session: &SessionId,
        run_id: &RunId,
        mut page: Page,
        max_bytes: usize,
    ) -> Resolved<Page> {
        let mut missing = Vec::new();
        let mut bytes = 0;
        for at in 0..page.events.len() {
            let event = &mut page.events[at];
            if let Some(lost) = self.resolve_event(session, run_id, event).await {
                missing.push(lost);
            }
            bytes += event.json.len();
            if bytes >= max_bytes {
                page.events.truncate(at + 1);
                break;
            }
        }
        Resolved { value: page, missing }
    }

    /// Puts the event's body in the place of what stands for it; tells where that fails.
    async fn resolve_event(
        &self,
        session: &SessionId,
        run_id: &RunId,
        event: &mut StoredEvent,
    ) -> Option<Missing> {
        let pointer = event.pointer.as_ref()?;
        let id = event_id(run_id, event.seq);
        match self.get(session, pointer, EVENT, &id).await {
            Ok(envelope) => {
                event.json = envelope.body.get().to_owned();
                None
            }
            Err(error) => Some(Missing { id, error }),
        }
    }

    /// The messages with their bodies.
    pub async fn resolve_messages(
        &self,
        session: &SessionId,
        mut rows: Vec<MessageRow>,
    ) -> Resolved<Vec<MessageRow>> {
        let mut missing = Vec::new();
        for row in &mut rows {
            let Some(pointer) = &row.pointer else { continue };
            let id = message_id(&row.run_id, row.ordinal);
            let kind = Kind::Message.as_str();
            let found = match self.get(session, pointer, kind, &id).await {
                Ok(envelope) => serde_json::from_str(envelope.body.get()).map_err(|error| {
                    let what = error.to_string();
                    outlast_core::ledger::PointerError::Damaged { key: pointer.key.clone(), what }.into()
                }),
                Err(error) => Err(error),
            };
            match found {
                Ok(message) => row.message = message,
                Err(error) => missing.push(Missing { id, error }),
            }
        }
        Resolved { value: rows, missing }
    }

    /// What a record says, with its body. None: a kind that may be passed over.
    pub async fn resolve_record(
        &self,
        session: &SessionId,
        stored: &StoredRecord,
    ) -> Result<Option<Record>, ResolveError> {
        let decoded = match &stored.pointer {
            None if !stored.is_intact() => {
                return Err(ResolveError::Damaged { seq: stored.seq, id: stored.id.clone() });
            }
            None => stored.decode()?,
            Some(pointer) => {
                let envelope = self.get(session, pointer, &stored.kind, &stored.id).await?;
                if envelope.sum() != stored.sum {
                    return Err(ResolveError::Damaged { seq: stored.seq, id: stored.id.clone() });
                }
                Record::decode(&envelope.kind, envelope.skip, &envelope.id, envelope.body.get())?
            }
        };
        Ok(match decoded {
            Decoded::Known(record) => Some(*record),
            Decoded::Skipped => None,
        })
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Its checksum does not match.
    #[error("record {seq} ({id:?}) is damaged: its checksum does not match")]
    Damaged {
        /// Its number.
        seq: u64,
        /// Its id.
        id: String,
    },
    /// Of a kind that this program does not know, or not what its kind says.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Its body cannot be had.
    #[error(transparent)]
    Body(#[from] BodyError),
}
