//! The form of the file: one JSON object a line. A header, the records, a trailer with how many there are and the digest of
//! all lines before it, so that a file which was cut or changed is known for one.

use std::io::{BufRead, Read};

use outlast_core::ledger::{Envelope, EnvelopeError, MAX_BODY_BYTES, SessionId};
use outlast_core::{ThreadId, hex};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The version that this program writes, and the newest that it reads.
pub(super) const VERSION: u32 = 1;

/// The longest line: a record with its body, and what is around it.
const MAX_LINE: u64 = MAX_BODY_BYTES as u64 + 64 * 1024;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Always `session`: what the file is.
    pub outlast: String,
    /// The version of the form.
    pub version: u32,
    /// The session that was exported.
    pub session_id: SessionId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// When that was, in milliseconds since 1970.
    pub exported_at: u64,
}

/// A record's line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line<'a> {
    pub(super) seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub(super) at: u64,
    #[serde(borrow)]
    pub(super) record: &'a RawValue,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trailer {
    /// How many records there are.
    pub records: u64,
    /// How many of them are without their body, because it could not be had.
    #[serde(default)]
    pub incomplete: u64,
    /// The hex SHA-256 of all bytes before this line.
    pub sha256: String,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Reading failed.
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is no such file.
    #[error("it is no exported session: {0}")]
    NoSession(String),
    /// It is of a newer version.
    #[error("it is of version {found}, this program reads up to {VERSION}: use a newer program")]
    Version {
        /// The file's.
        found: u32,
    },
    /// A line is not what it should be.
    #[error("line {line} cannot be read: {what}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A record is not what was written.
    #[error("line {line}: {error}")]
    Record {
        /// Which, from 1.
        line: u64,
        /// What is wrong.
        error: EnvelopeError,
    },
    /// It ends before its end, or was changed.
    #[error("it was cut or changed: {0}")]
    Cut(String),
}

/// Reads a file line by line.
pub struct FileReader<R> {
    input: R,
    line: u64,
    digest: Sha256,
    buffer: Vec<u8>,
    last_seq: u64,
    records: u64,
}

/// What a line holds.
pub(super) enum Next {
    Record { at: u64, envelope: Envelope },
    End(Trailer),
}

impl<R: BufRead> FileReader<R> {
    /// Reads the header.
    pub fn open(input: R) -> Result<(Header, FileReader<R>), FileError> {
        let mut reader =
            FileReader { input, line: 0, digest: Sha256::new(), buffer: Vec::new(), last_seq: 0, records: 0 };
        if !reader.read_line()? {
            return Err(FileError::NoSession("it is empty".to_owned()));
        }
        #[derive(Deserialize)]
        struct Kind {
            outlast: String,
            version: u32,
        }
        let no = |error: &dyn std::fmt::Display| FileError::NoSession(error.to_string());
        let kind: Kind = serde_json::from_slice(&reader.buffer).map_err(|error| no(&error))?;
        if kind.outlast != "session" {
            return Err(no(&format!("it says that it is a {:?}", kind.outlast)));
        }
        if kind.version > VERSION {
            return Err(FileError::Version { found: kind.version });
        }
        let header = serde_json::from_slice(&reader.buffer).map_err(|error| no(&error))?;
        reader.accept();
        Ok((header, reader))
    }

    /// Reads the file to its end without keeping anything: whether it is whole.
    pub fn check(mut self) -> Result<Trailer, FileError> {
        loop {
            if let Next::End(trailer) = self.next()? {
                return Ok(trailer);
            }
        }
    }

    /// The next record, or the end.
    pub(super) fn next(&mut self) -> Result<Next, FileError> {
        if !self.read_line()? {
            return Err(FileError::Cut("its last line is missing".to_owned()));
        }
        let line = self.line;
        let bad = |what: String| FileError::Line { line, what };
        if let Ok(trailer) = serde_json::from_slice::<Trailer>(&self.buffer) {
            let found = hex::encode(&self.digest.clone().finalize());
            if trailer.sha256 != found || trailer.records != self.records {
                return Err(FileError::Cut("its digest is another".to_owned()));
            }
            if self.read_line()? {
                return Err(FileError::Cut("something follows its end".to_owned()));
            }
            return Ok(Next::End(trailer));
        }
        let parsed: Line<'_> =
            serde_json::from_slice(&self.buffer).map_err(|error| bad(error.to_string()))?;
        if parsed.seq <= self.last_seq {
            return Err(bad(format!("record {} comes after record {}", parsed.seq, self.last_seq)));
        }
        let (seq, at) = (parsed.seq, parsed.at);
        let envelope = Envelope::decode(parsed.record.get().as_bytes())
            .map_err(|error| FileError::Record { line, error })?;
        self.last_seq = seq;
        self.records += 1;
        self.accept();
        Ok(Next::Record { at, envelope })
    }

    /// False at the end of the file.
    fn read_line(&mut self) -> Result<bool, FileError> {
        self.buffer.clear();
        let read = self.input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut self.buffer)?;
        self.line += 1;
        if read as u64 > MAX_LINE {
            let what = format!("it has more than {MAX_LINE} bytes");
            return Err(FileError::Line { line: self.line, what });
        }
        Ok(read > 0)
    }

    /// Takes the line into the digest.
    fn accept(&mut self) {
        self.digest.update(&self.buffer);
    }
}
