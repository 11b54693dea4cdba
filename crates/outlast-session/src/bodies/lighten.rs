//! Off-loading: what is too large is put as a body, and what stands for it goes into the database.

use outlast_core::event::Chunk;
use outlast_core::ledger::{
    Envelope, MAX_BODY_BYTES, OFFLOAD_BYTES, Record, SessionId, message_id, stub_event, stub_message,
};
use outlast_core::{Nonce, RunId, Seq};
use outlast_store::{NewEvent, NewMessage, NewRecord, Offloaded};
use serde_json::value::RawValue;

use super::Bodies;
use super::fetch::EVENT;
use crate::objects::ObjectsError;

/// What takes the place of what was given, for a write that says with which barrier.
#[derive(Debug, Clone, Default)]
pub struct Lightened {
    /// Events.
    pub events: Vec<NewEvent>,
    /// Messages.
    pub messages: Vec<NewMessage>,
    /// Records.
    pub records: Vec<NewRecord>,
}

/// About how much an envelope adds to a body.
const AROUND: usize = 256;

fn event_is_heavy(event: &NewEvent, above: usize) -> bool {
    event.pointer.is_none() && is_heavy(event.chunk.json.len(), above)
}

fn message_is_heavy(message: &NewMessage, above: usize) -> bool {
    message.offloaded.is_none() && heavy_message(&message.message, above)
}

fn heavy_message(message: &outlast_core::transcript::Message, above: usize) -> bool {
    let calls: usize = message.tool_calls.iter().map(|call| call.function.arguments.len()).sum();
    let texts: usize = message.content.iter().chain(&message.error).map(String::len).sum();
    // Escapes make JSON up to six times as long as the text: most messages are small without a look at theirs.
    (calls + texts) * 6 > above
        && is_heavy(serde_json::to_string(message).map_or(0, |json| json.len() + AROUND), above)
}

fn is_heavy(bytes: usize, above: usize) -> bool {
    // What no body may have stays where it is: too large for there is no reason to lose it.
    bytes > above && bytes + AROUND * 4 <= MAX_BODY_BYTES
}

impl Bodies {
    /// Whether any of these is to be off-loaded, by [`OFFLOAD_BYTES`].
    pub fn any_heavy(events: &[NewEvent], messages: &[NewMessage]) -> bool {
        events.iter().any(|event| event_is_heavy(event, OFFLOAD_BYTES))
            || messages.iter().any(|message| message_is_heavy(message, OFFLOAD_BYTES))
    }

    /// Puts the bodies of those events that are too large; `first` is the number that the first of them will have. A salt
    /// makes other bodies of them, for where a collection has condemned the first ones.
    pub async fn lighten_events(
        &self,
        session: &SessionId,
        run_id: &RunId,
        first: Seq,
        events: &[NewEvent],
        salt: Option<&Nonce>,
    ) -> Result<Vec<NewEvent>, ObjectsError> {
        let mut light = Vec::with_capacity(events.len());
        for (seq, event) in (first.0..).zip(events) {
            let body =
                event_is_heavy(event, self.offload).then(|| RawValue::from_string(event.chunk.json.clone()));
            let Some(Ok(body)) = body else {
                light.push(event.clone());
                continue;
            };
            let envelope = Envelope {
                kind: EVENT.to_owned(),
                skip: false,
                id: event_id(run_id, Seq(seq)),
                salt: salt.map(|salt| salt.as_str().to_owned()),
                body,
            };
            let pointer = self.put(session, &envelope).await?;
            let chunk: Chunk = stub_event(&event.chunk);
            light.push(NewEvent { origin: event.origin, chunk, pointer: Some(pointer) });
        }
        Ok(light)
    }

    /// As [`Bodies::lighten_events`], for messages of a run.
    pub async fn lighten_messages(
        &self,
        session: &SessionId,
        run_id: &RunId,
        messages: &[NewMessage],
        salt: Option<&Nonce>,
    ) -> Result<Vec<NewMessage>, ObjectsError> {
        let mut light = Vec::with_capacity(messages.len());
        for new in messages {
            if !message_is_heavy(new, self.offload) {
                light.push(new.clone());
                continue;
            }
            let (ordinal, message) = (new.ordinal, new.message.clone());
            let record = Record::Message { run_id: run_id.clone(), ordinal, message };
            let offloaded = self.put_record(session, &message_id(run_id, ordinal), &record, salt).await?;
            let message = stub_message(&new.message);
            light.push(NewMessage { ordinal, message, offloaded: Some(offloaded) });
        }
        Ok(light)
    }

    /// As [`Bodies::lighten_events`], for records.
    pub async fn lighten_records(
        &self,
        session: &SessionId,
        records: &[NewRecord],
        salt: Option<&Nonce>,
    ) -> Result<Vec<NewRecord>, ObjectsError> {
        let mut light = Vec::with_capacity(records.len());
        for new in records {
            let heavy = match &new.record {
                Record::Message { run_id, ordinal, message } if new.offloaded.is_none() => {
                    heavy_message(message, self.offload).then(|| (run_id.clone(), *ordinal, message))
                }
                // The others are small by what they are.
                _ => None,
            };
            let Some((run_id, ordinal, message)) = heavy else {
                light.push(new.clone());
                continue;
            };
            let offloaded = self.put_record(session, &new.id, &new.record, salt).await?;
            let record = Record::Message { run_id, ordinal, message: stub_message(message) };
            light.push(NewRecord { record, offloaded: Some(offloaded), ..new.clone() });
        }
        Ok(light)
    }

    async fn put_record(
        &self,
        session: &SessionId,
        id: &str,
        record: &Record,
        salt: Option<&Nonce>,
    ) -> Result<Offloaded, ObjectsError> {
        let envelope = record.envelope(id, salt.map(|salt| salt.as_str().to_owned()));
        let pointer = self.put(session, &envelope).await?;
        Ok(Offloaded { pointer, sum: envelope.sum() })
    }
}

/// The id that the body of an event has.
pub(super) fn event_id(run_id: &RunId, seq: Seq) -> String {
    format!("event/{run_id}/{}", seq.0)
}
