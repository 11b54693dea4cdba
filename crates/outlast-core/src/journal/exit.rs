//! The exit file, which says what the sentinel says and more.

use serde::{Deserialize, Serialize};

use crate::{ErrorCode, ExitSecret};

/// How the agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The exit status as a shell would give it: 128 + N after signal N, 126 or 127 where nothing could be started.
    pub exit: i32,
    /// The signal that ended the agent's main process, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Bytes of the journal that are the agent's. The line break at this position is the sentinel's, not the agent's.
    pub stdout_bytes: u64,
    /// The run's exit secret: proof that the shim wrote this.
    pub nonce: ExitSecret,
    /// Why the shim ended the agent, or could not start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<ExitCause>,
}

/// What the shim knows about the end beyond the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCause {
    /// `launch_failed` or `output_limit`.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

impl ExitRecord {
    /// Reads the exit file's bytes. A file that is only preallocated, torn, or of another run is `None`.
    pub fn parse(bytes: &[u8], secret: &ExitSecret) -> Option<ExitRecord> {
        let text = bytes.trim_ascii();
        if text.is_empty() {
            return None;
        }
        serde_json::from_slice::<ExitRecord>(text).ok().filter(|record| record.nonce == *secret)
    }
}
