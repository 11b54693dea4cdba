//! Writing a session to a file.

use std::io::Write;

use outlast_core::hex;
use outlast_core::ledger::{Envelope, SessionId};
use outlast_store::{ReadRecords, RecordsError, SessionHead, StoreError, StoredRecord};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::file::{Header, Line, Trailer, VERSION};
use crate::Sessions;
use crate::bodies::BodyError;

/// How a session is exported.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// Whether records whose bodies cannot be had are exported as what stands for them.
    pub incomplete: bool,
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// How many records.
    pub records: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How many records are without their body.
    pub incomplete: u64,
}

/// Why a session is not exported. What was written so far is of no use.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A record is damaged.
    #[error("record {seq} ({id:?}) is damaged: {what}")]
    Damaged {
        /// Its number.
        seq: u64,
        /// Its id.
        id: String,
        /// What is wrong.
        what: String,
    },
    /// A body cannot be had.
    #[error("the body of record {seq} ({id:?}) cannot be exported: {error}")]
    Body {
        /// The record's number.
        seq: u64,
        /// The record's id.
        id: String,
        /// Why.
        error: BodyError,
    },
    /// The file cannot be written.
    #[error("the file cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// The ledger cannot be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sessions {
    /// Writes the session's records, bodies included, as they are up to its tip. Messages of a live run are no records yet.
    pub async fn export(
        &self,
        session: &SessionHead,
        options: &ExportOptions,
        out: &mut (dyn Write + Send),
    ) -> Result<Exported, ExportError> {
        let mut writer = Writer { out, digest: Sha256::new(), bytes: 0 };
        let header = Header {
            outlast: "session".to_owned(),
            version: VERSION,
            session_id: session.session_id.clone(),
            thread_id: session.thread_id.clone(),
            exported_at: self.store.now().await?,
        };
        writer.line(&header)?;
        let mut done = Exported::default();
        let mut query = ReadRecords {
            session_id: session.session_id.clone(),
            after: 0,
            kinds: Vec::new(),
            max_records: 500,
            max_bytes: 4 << 20,
        };
        loop {
            let page = self.store.read_records(&query).await?;
            for stored in &page.records {
                query.after = stored.seq;
                let (envelope, whole) = self.whole(&session.session_id, stored, options).await?;
                done.records += 1;
                done.incomplete += u64::from(!whole);
                let record = raw(stored, envelope.encode())?;
                writer.line(&Line { seq: stored.seq, at: stored.at, record: &record })?;
            }
            if !page.more {
                break;
            }
        }
        let sha256 = hex::encode(&writer.digest.clone().finalize());
        writer.line(&Trailer { records: done.records, incomplete: done.incomplete, sha256 })?;
        writer.out.flush()?;
        Ok(Exported { bytes: writer.bytes, ..done })
    }

    /// The record with its body, and whether that could be had.
    async fn whole(
        &self,
        session: &SessionId,
        stored: &StoredRecord,
        options: &ExportOptions,
    ) -> Result<(Envelope, bool), ExportError> {
        let (seq, id) = (stored.seq, stored.id.clone());
        let inline = |stored: &StoredRecord| -> Result<Envelope, ExportError> {
            let body = raw(stored, stored.body.clone())?;
            Ok(Envelope {
                kind: stored.kind.clone(),
                skip: stored.skip,
                id: stored.id.clone(),
                salt: None,
                body,
            })
        };
        let Some(pointer) = &stored.pointer else {
            if !stored.is_intact() {
                return Err(ExportError::Damaged { seq, id, what: "its checksum does not match".to_owned() });
            }
            return Ok((inline(stored)?, true));
        };
        match self.bodies().get(session, pointer, &stored.kind, &stored.id).await {
            Ok(envelope) if envelope.sum() != stored.sum => {
                Err(ExportError::Damaged { seq, id, what: "its body is another record's".to_owned() })
            }
            Ok(envelope) => Ok((Envelope { salt: None, ..envelope }, true)),
            Err(_) if options.incomplete => Ok((inline(stored)?, false)),
            Err(error) => Err(ExportError::Body { seq, id, error }),
        }
    }
}

fn raw(stored: &StoredRecord, json: String) -> Result<Box<RawValue>, ExportError> {
    RawValue::from_string(json).map_err(|error| ExportError::Damaged {
        seq: stored.seq,
        id: stored.id.clone(),
        what: error.to_string(),
    })
}

struct Writer<'w> {
    out: &'w mut (dyn Write + Send),
    digest: Sha256,
    bytes: u64,
}

impl Writer<'_> {
    fn line<T: Serialize>(&mut self, value: &T) -> Result<(), std::io::Error> {
        let mut line = serde_json::to_vec(value).map_err(std::io::Error::other)?;
        line.push(b'\n');
        self.digest.update(&line);
        self.bytes += line.len() as u64;
        self.out.write_all(&line)
    }
}
