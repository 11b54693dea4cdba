//! Adding records, whatever their size, and reading them.

use outlast_core::decide::{RecordsRefusal, SessionState};
use outlast_core::ledger::{Decoded, Fold, SessionId};
use outlast_core::{Nonce, Tenant, ThreadId};
use outlast_store::{
    AppendRecords, MessagePage, ReadRecords, RecordAppended, RecordsError, SessionHead, SessionName,
    StoreError,
};

use crate::Sessions;
use crate::bodies::{Missing, Resolved};
use crate::objects::ObjectsError;

/// Of [`Sessions::append`].
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The store refused, or failed.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A body could not be put; nothing was written that points to it.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl From<StoreError> for AddError {
    fn from(error: StoreError) -> Self {
        AddError::Records(error.into())
    }
}

/// How often bodies are put again because collections begin meanwhile, before that counts as a failure.
const ATTEMPTS: u32 = 8;

impl Sessions {
    /// Adds records, durable before it returns; those that are too large are off-loaded first. The same append again, after
    /// an answer that was lost, adds nothing and is answered as the first was.
    pub async fn append(&self, mut append: AppendRecords) -> Result<Vec<RecordAppended>, AddError> {
        let session = self.id_of(&append.tenant, &append.thread_id);
        let whole = std::mem::take(&mut append.records);
        let mut salt: Option<Nonce> = None;
        let mut attempt = 1;
        loop {
            // The barrier is looked at before the bodies are put: a collection that begins in between is noticed.
            let Some(barrier) = self.barrier(&append.tenant, &append.thread_id).await? else {
                return Err(RecordsError::from(RecordsRefusal::SessionDeleted(session)).into());
            };
            let records = self.bodies().lighten_records(&session, &whole, salt.as_ref()).await?;
            append.barrier = records.iter().any(|new| new.pointer().is_some()).then_some(barrier);
            append.records = records;
            match self.store.append_records(append.clone()).await {
                Err(RecordsError::Refused(refusal)) if attempt < ATTEMPTS && put_again(&refusal) => {
                    if let RecordsRefusal::Condemned { .. } = refusal {
                        salt = Some(self.ports.entropy.nonce());
                    }
                    attempt += 1;
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// The latest barrier of a thread's ledger; 0 where there is none yet. None: the session was deleted, and nothing is to be
    /// put for it, since nobody looks for it there any more.
    pub async fn barrier(&self, tenant: &Tenant, thread: &ThreadId) -> Result<Option<u64>, StoreError> {
        let found = self.store.session(tenant, &SessionName::Thread(thread.clone())).await?;
        Ok(match found {
            None => Some(0),
            Some(session) => (session.state == SessionState::Active).then_some(session.barrier),
        })
    }

    /// The session that a person names by its thread, or by its id.
    pub async fn find(&self, tenant: &Tenant, name: &str) -> Result<Option<SessionHead>, StoreError> {
        if let Ok(thread) = ThreadId::new(name) {
            if let Some(found) = self.store.session(tenant, &SessionName::Thread(thread.clone())).await?
                && found.state != SessionState::Active
            {
                return Ok(Some(found));
            }
            if let Some(found) = self.store.settle_session(tenant, &thread).await? {
                return Ok(Some(found));
            }
        }
        match SessionId::parse(name) {
            Ok(id) => self.store.session(tenant, &SessionName::Id(id)).await,
            Err(_) => Ok(None),
        }
    }

    /// What the session's records amount to: kept with its head, or folded from them where another version has kept it.
    pub async fn fold(&self, session: &SessionHead) -> Result<Fold, RecordsError> {
        if let Some(fold) = &session.fold {
            return Ok(fold.clone());
        }
        let mut fold = Fold::empty();
        let mut query = ReadRecords {
            session_id: session.session_id.clone(),
            after: 0,
            kinds: Vec::new(),
            max_records: 1000,
            max_bytes: 4 << 20,
        };
        loop {
            let page = self.store.read_records(&query).await?;
            for record in &page.records {
                match record.decode() {
                    Ok(Decoded::Known(known)) => fold.apply(record.seq, record.at, &known),
                    // What cannot be read is told by whoever reads it; the rest is still worth showing.
                    Ok(Decoded::Skipped) | Err(_) => fold.pass(record.seq, record.at),
                }
                query.after = record.seq;
            }
            if !page.more {
                return Ok(fold);
            }
        }
    }

    /// The thread's latest messages before `before` ([`MessagePage::before`]), with their bodies.
    pub async fn messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Resolved<MessagePage>, StoreError> {
        let page = self.store.thread_messages(tenant, thread, before, limit).await?;
        let session = self.id_of(tenant, thread);
        let Resolved { value: messages, missing } =
            self.bodies().resolve_messages(&session, page.messages).await;
        warn(&missing);
        Ok(Resolved { value: MessagePage { messages, before: page.before }, missing })
    }
}

/// Whether the same is to be tried with bodies that are put again.
pub fn put_again(refusal: &RecordsRefusal) -> bool {
    matches!(refusal, RecordsRefusal::BarrierMoved { .. } | RecordsRefusal::Condemned { .. })
}

/// Tells whoever watches over the deployment that bodies are missing.
pub fn warn(missing: &[Missing]) {
    for Missing { id, error } in missing {
        tracing::warn!(id, %error, "a body is not to be had; a placeholder is shown");
    }
}
