//! The last words: the exit file, then the sentinel.

use std::os::fd::AsFd;

use outlast_core::ExitSecret;
use outlast_core::journal::exit::{ExitCause, ExitRecord};
use outlast_core::journal::{files, sentinel};

use crate::files::{RunFiles, write_at_start};

/// How the agent ended, as far as the shim knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) exit: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout_bytes: u64,
    pub(crate) cause: Option<ExitCause>,
}

/// Records the end; called once no process of the agent is left. The exit file comes first: a reader that sees the
/// line break with which the sentinel begins must be able to find out that the agent did not print it. Where the
/// sentinel cannot be written because the disk is full, the exit file says all of it. Errors have nowhere to go: what
/// could be written stands, and a run without any of it is an agent that was lost.
pub(crate) fn record(files: &RunFiles, secret: &ExitSecret, ending: Ending) {
    let exit = ending.exit;
    let bytes = exit_bytes(secret, ending);
    let _ = write_at_start(&files.exit, &bytes);
    let _ = rustix::fs::fdatasync(&files.exit);
    append_once(&files.journal, sentinel::block(exit, secret).as_bytes());
    let _ = rustix::fs::fdatasync(&files.journal);
    let _ = rustix::fs::fdatasync(&files.stderr);
}

/// One append, so that nothing can come between the sentinel's bytes.
fn append_once(file: impl AsFd, bytes: &[u8]) {
    let _ = rustix::io::retry_on_intr(|| rustix::io::write(&file, bytes));
}

/// The record, padded to the file's size. A message that does not fit is cut.
fn exit_bytes(secret: &ExitSecret, ending: Ending) -> Vec<u8> {
    let mut record = ExitRecord {
        exit: ending.exit,
        signal: ending.signal,
        stdout_bytes: ending.stdout_bytes,
        nonce: secret.clone(),
        cause: ending.cause,
    };
    loop {
        // Plain data with string keys always becomes JSON.
        let mut bytes = serde_json::to_vec(&record).unwrap_or_default();
        match &mut record.cause {
            Some(cause) if bytes.len() > files::EXIT_BYTES => {
                let half = cause.message.chars().count() / 2;
                cause.message = cause.message.chars().take(half).collect();
            }
            _ => {
                bytes.resize(files::EXIT_BYTES, b' ');
                return bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::ErrorCode;

    use super::*;

    #[test]
    fn any_record_fits_its_block() {
        let secret = ExitSecret::from_bytes([7; 16]);
        for message in ["short".to_owned(), "\u{1}é".repeat(5000)] {
            let cause = Some(ExitCause { code: ErrorCode::LaunchFailed, message: message.clone() });
            let bytes = exit_bytes(&secret, Ending { exit: 127, signal: None, stdout_bytes: 5, cause });
            assert_eq!(bytes.len(), files::EXIT_BYTES);
            let record = ExitRecord::parse(&bytes, &secret).expect("a record");
            assert_eq!((record.exit, record.stdout_bytes), (127, 5));
            assert!(message.starts_with(&record.cause.expect("cause").message));
        }
    }
}
