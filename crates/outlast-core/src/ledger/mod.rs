//! The ledger of a session: what lasts of a thread, as records that are only ever added.

mod envelope;
mod fold;
mod pointer;
mod record;
mod session_id;
mod stub;
#[cfg(test)]
mod tests;

pub use envelope::{Envelope, EnvelopeError, MAX_BODY_BYTES, MAX_RECORD_ID_BYTES, OFFLOAD_BYTES, checksum};
pub use fold::{Fold, LastRun, Stopped, WorkspaceNow};
pub use pointer::{Pointer, PointerError};
pub use record::{
    Consistency, Decoded, Kind, Record, RecordError, RunEnded, RunStarted, SessionStopped, StopReason,
    Trigger, WorkspaceCheckpointed, WorkspaceRestored, message_id, message_place, title,
};
pub use session_id::{SessionId, SessionIdError};
pub use stub::{stub_event, stub_message};
