//! Reading a session from a file.

use std::io::{BufRead, Seek};

use outlast_core::ledger::{Decoded, Kind, Record, RecordError};
use outlast_core::{Tenant, ThreadId};
use outlast_store::{AppendRecords, NewRecord, ReadRecords, RecordsError, SessionName, StoreError};
use serde::Serialize;

use super::file::{FileError, FileReader, Next};
use crate::objects::ObjectsError;
use crate::{AddError, Sessions};

/// How many records are added at a time.
const BATCH: usize = 100;

/// How a session is imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// To which thread; none: the one that was exported.
    pub thread_id: Option<ThreadId>,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The thread.
    pub thread_id: ThreadId,
    /// How many records were added.
    pub added: u64,
    /// How many were there before, from an earlier attempt.
    pub known: u64,
    /// How many were left out: of no use elsewhere, or of a kind that may be passed over.
    pub passed_over: u64,
    /// How many name a snapshot of the workspace that is not in this object storage, and were left out for that.
    pub without_snapshot: u64,
}

/// Why a session is not imported, or not to the end. The same import again goes on.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is none, or not whole.
    #[error(transparent)]
    File(#[from] FileError),
    /// A record is of a kind that this program does not know, or not what its kind says.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The thread has another past.
    #[error(
        "thread {thread_id:?} has records of its own ({id:?} is not in the file): import to another thread with --thread"
    )]
    Taken {
        /// The thread.
        thread_id: ThreadId,
        /// A record that is not of the file.
        id: String,
    },
    /// The records could not be added.
    #[error(transparent)]
    Add(#[from] AddError),
    /// The ledger could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Object storage failed.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<std::io::Error> for ImportError {
    fn from(error: std::io::Error) -> Self {
        ImportError::File(error.into())
    }
}

impl Sessions {
    /// Adds the file's records to a thread that has none, or that an earlier attempt has given some of them. The file is
    /// read to its end before the first record is added: of one that was cut, or that holds what this program does not know,
    /// nothing is imported.
    pub async fn import<R: BufRead + Seek + Send>(
        &self,
        tenant: &Tenant,
        mut file: R,
        options: &ImportOptions,
    ) -> Result<Imported, ImportError> {
        let ids = ids(&mut file)?;
        file.rewind()?;
        let (header, mut reader) = FileReader::open(file)?;
        let thread_id = options.thread_id.clone().unwrap_or(header.thread_id);
        self.check_free(tenant, &thread_id, &ids).await?;
        let mut done = Imported {
            thread_id: thread_id.clone(),
            added: 0,
            known: 0,
            passed_over: 0,
            without_snapshot: 0,
        };
        let mut batch = Vec::new();
        loop {
            let next = reader.next()?;
            let end = matches!(next, Next::End(_));
            if let Next::Record { at, envelope } = next {
                match Record::decode(&envelope.kind, envelope.skip, &envelope.id, envelope.body.get())? {
                    // A barrier says something of one deployment's bodies.
                    Decoded::Skipped => done.passed_over += 1,
                    Decoded::Known(record) if record.kind() == Kind::Barrier => done.passed_over += 1,
                    Decoded::Known(record) if self.lacks_snapshot(&record).await? => {
                        done.without_snapshot += 1;
                    }
                    Decoded::Known(record) => batch.push(NewRecord::written_at(at, envelope.id, *record)),
                }
            }
            if batch.len() >= BATCH || (end && !batch.is_empty()) {
                let append = AppendRecords {
                    tenant: tenant.clone(),
                    thread_id: thread_id.clone(),
                    expected_tip: None,
                    barrier: None,
                    lease: None,
                    pin: None,
                    create: true,
                    records: std::mem::take(&mut batch),
                };
                for appended in self.append(append).await? {
                    done.added += u64::from(appended.appended);
                    done.known += u64::from(!appended.appended);
                }
            }
            if end {
                return Ok(done);
            }
        }
    }

    /// Whether the record names a snapshot that cannot be had here. To keep such a record would mean that no collection of
    /// snapshots could ever be sure of what is live.
    async fn lacks_snapshot(&self, record: &Record) -> Result<bool, ObjectsError> {
        match record.workspace_ref() {
            Some(reference) => Ok(!self.workspaces().exists(reference).await?),
            None => Ok(false),
        }
    }

    /// Refuses a thread that has a record which is not of the file.
    async fn check_free(
        &self,
        tenant: &Tenant,
        thread_id: &ThreadId,
        ids: &std::collections::HashSet<String>,
    ) -> Result<(), ImportError> {
        let name = SessionName::Thread(thread_id.clone());
        self.store.settle_session(tenant, thread_id).await?;
        let Some(session) = self.store.session(tenant, &name).await? else { return Ok(()) };
        let mut query = ReadRecords {
            session_id: session.session_id,
            after: 0,
            kinds: Vec::new(),
            max_records: 1000,
            max_bytes: 4 << 20,
        };
        loop {
            let page = self.store.read_records(&query).await?;
            for record in &page.records {
                query.after = record.seq;
                let own = record.kind == Kind::Barrier.as_str();
                if !own && !ids.contains(&record.id) {
                    let (thread_id, id) = (thread_id.clone(), record.id.clone());
                    return Err(ImportError::Taken { thread_id, id });
                }
            }
            if !page.more {
                return Ok(());
            }
        }
    }
}

/// The ids of all records, of a file that is whole and understood.
fn ids<R: BufRead>(file: R) -> Result<std::collections::HashSet<String>, ImportError> {
    let (_, mut reader) = FileReader::open(file)?;
    let mut ids = std::collections::HashSet::new();
    loop {
        match reader.next()? {
            Next::Record { envelope, .. } => {
                Record::decode(&envelope.kind, envelope.skip, &envelope.id, envelope.body.get())?;
                ids.insert(envelope.id);
            }
            Next::End(_) => return Ok(ids),
        }
    }
}
