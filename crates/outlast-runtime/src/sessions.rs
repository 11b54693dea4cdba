//! What lasts of threads, as this host reaches it.

use outlast_core::decide::RecordsRefusal;
use outlast_core::run::RunRecord;
use outlast_core::{Nonce, RunId, Seq, ThreadId};
use outlast_session::bodies::Bodies;
use outlast_session::objects::ObjectsError;
use outlast_session::{Sessions, put_again, warn};
use outlast_store::{Append, MessagePage, MessageRow, NewMessage, Page, ReadError, SessionName, StoreError};

use crate::Host;
use crate::host::Inner;

impl Host {
    /// Sessions of this deployment. Asks the store for the deployment's id the first time.
    pub async fn sessions(&self) -> Result<Sessions, StoreError> {
        self.inner.sessions().await.cloned()
    }

    /// The thread's latest messages before `before` ([`MessagePage::before`]; none: the latest of all), at most about
    /// `limit`, with their bodies. Where a body is missing, a placeholder says so.
    pub async fn thread_messages(
        &self,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StoreError> {
        let sessions = self.inner.sessions().await?;
        Ok(sessions.messages(&self.inner.tenant, thread, before, limit).await?.value)
    }

    /// The run's messages, with their bodies.
    pub async fn run_messages(&self, run: &RunRecord) -> Result<Vec<MessageRow>, StoreError> {
        let host = &self.inner;
        let rows = host.store.run_messages(&host.tenant, &run.run_id).await?;
        let sessions = host.sessions().await?;
        let session = sessions.id_of(&host.tenant, &run.thread_id);
        let resolved = sessions.bodies().resolve_messages(&session, rows).await;
        warn(&resolved.missing);
        Ok(resolved.value)
    }
}

impl Inner {
    pub(crate) async fn sessions(&self) -> Result<&Sessions, StoreError> {
        self.sessions
            .get_or_try_init(|| async {
                let deployment = self.store.deployment_id().await?;
                let (store, objects) = (self.store.clone(), self.objects.clone());
                Ok(Sessions::new(store, objects, self.ports.clone(), self.owner.clone(), &deployment))
            })
            .await
    }

    /// Every message of the thread, with its body.
    pub(crate) async fn whole_thread(&self, thread: &ThreadId) -> Result<Vec<MessageRow>, StoreError> {
        let sessions = self.sessions().await?;
        Ok(sessions.messages(&self.tenant, thread, None, usize::MAX).await?.value.messages)
    }

    /// The page with the bodies that its events point to, as much of it as fits into so many bytes.
    pub(crate) async fn whole_page(
        &self,
        run_id: &RunId,
        page: Page,
        max_bytes: usize,
    ) -> Result<Page, ReadError> {
        if page.events.iter().all(|event| event.pointer.is_none()) {
            return Ok(page);
        }
        let run = self.store.run(&self.tenant, run_id).await?;
        let run = run.ok_or_else(|| ReadError::RunNotFound(run_id.clone()))?;
        let sessions = self.sessions().await?;
        let session = sessions.id_of(&self.tenant, &run.thread_id);
        let resolved = sessions.bodies().resolve_page(&session, run_id, page, max_bytes).await;
        warn(&resolved.missing);
        Ok(resolved.value)
    }

    /// The append with what is too large off-loaded, which is durable then. Of an append without that, a copy.
    pub(crate) async fn lighten(
        &self,
        run: &RunRecord,
        whole: &Append,
        salt: Option<&Nonce>,
    ) -> Result<Append, StoreError> {
        if !Bodies::any_heavy(&whole.events, &whole.messages) {
            return Ok(whole.clone());
        }
        let sessions = self.sessions().await?;
        let session = sessions.id_of(&self.tenant, &run.thread_id);
        // Before the bodies are put: a collection that begins in between is noticed.
        let Some(barrier) = sessions.barrier(&self.tenant, &run.thread_id).await? else {
            // Which is refused for a live run, so the store will say what has become of this one.
            return Ok(whole.clone());
        };
        let bodies = sessions.bodies();
        let first = Seq(whole.expected_tail.0 + 1);
        let events = bodies.lighten_events(&session, &run.run_id, first, &whole.events, salt).await;
        let messages = bodies.lighten_messages(&session, &run.run_id, &whole.messages, salt).await;
        Ok(Append {
            events: events.map_err(away)?,
            messages: messages.map_err(away)?,
            barrier: Some(barrier),
            ..whole.clone()
        })
    }

    /// As [`Inner::lighten`], for the messages of a turn's input.
    pub(crate) async fn lighten_input(
        &self,
        run_id: &RunId,
        thread: &ThreadId,
        whole: &[NewMessage],
        salt: Option<&Nonce>,
    ) -> Result<(Vec<NewMessage>, Option<u64>), StoreError> {
        if !Bodies::any_heavy(&[], whole) {
            return Ok((whole.to_vec(), None));
        }
        let sessions = self.sessions().await?;
        let session = sessions.id_of(&self.tenant, thread);
        let Some(barrier) = sessions.barrier(&self.tenant, thread).await? else {
            // The acceptance is refused; a body would only be left behind.
            return Ok((whole.to_vec(), None));
        };
        let messages = sessions.bodies().lighten_messages(&session, run_id, whole, salt).await;
        Ok((messages.map_err(away)?, Some(barrier)))
    }

    /// What follows from a refusal of bodies: they are put again, under other keys where a collection has condemned them.
    pub(crate) fn put_again(
        &self,
        refusal: RecordsRefusal,
        salt: &mut Option<Nonce>,
    ) -> Result<(), StoreError> {
        if !put_again(&refusal) {
            return Err(StoreError::Unusable { message: refusal.to_string() });
        }
        if let RecordsRefusal::Condemned { .. } = refusal {
            *salt = Some(self.ports.entropy.nonce());
        }
        Ok(())
    }

    /// What the thread's workspace was last known to be.
    pub(crate) async fn workspace_now(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<outlast_core::ledger::WorkspaceNow>, StoreError> {
        let name = SessionName::Thread(thread.clone());
        let Some(session) = self.store.session(&self.tenant, &name).await? else { return Ok(None) };
        let folded = self.sessions().await?.fold(&session).await;
        let fold = folded.map_err(|error| match error {
            outlast_store::RecordsError::Store(error) => error,
            error => StoreError::Unusable { message: error.to_string() },
        })?;
        Ok(fold.workspace)
    }
}

/// Object storage that fails is waited for as a store that does: the journal keeps what is to come.
fn away(error: ObjectsError) -> StoreError {
    StoreError::Unavailable { message: format!("object storage: {error}") }
}
