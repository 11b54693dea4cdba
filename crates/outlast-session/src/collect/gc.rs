//! One pass.

use std::time::Duration;

use outlast_core::decide::RecordsRefusal;
use outlast_core::duration::millis;
use outlast_core::ledger::{Record, SessionId};
use outlast_core::{Tenant, ThreadId};
use outlast_store::{AppendRecords, NewRecord, RecordsError, SessionHead};

use super::decide::{ObjectFacts, Verdict, judge};
use super::live::live_keys;
use super::{GcDelete, GcError, GcLeaseNotHeld, GcList, GcResult, GcScan};
use crate::lease::Lease;
use crate::{Sessions, fail};

/// How many bodies are condemned at a time.
const BATCH: usize = 500;

/// How a pass is made.
#[derive(Debug, Clone)]
pub struct GcOptions {
    /// How long a body to which nothing points is left alone. An hour unless something else is wished.
    pub grace: Duration,
    /// Whether to tell only what would be deleted.
    pub dry_run: bool,
}

impl Default for GcOptions {
    fn default() -> Self {
        GcOptions { grace: Duration::from_secs(3600), dry_run: false }
    }
}

/// Whether a pass is to go on: asked before each delete.
pub type StillWanted<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// Collects the bodies of one session. Borrows the lease: it takes none and gives none back.
#[derive(Debug)]
pub struct ObjectGc<'l> {
    sessions: Sessions,
    session_id: SessionId,
    tenant: Tenant,
    thread_id: ThreadId,
    lease: &'l Lease,
}

impl Sessions {
    /// Prepares collections of a session under a lease on it.
    pub fn open_object_gc<'l>(&self, session: &SessionHead, lease: &'l Lease) -> ObjectGc<'l> {
        ObjectGc {
            sessions: self.clone(),
            session_id: session.session_id.clone(),
            tenant: session.tenant.clone(),
            thread_id: session.thread_id.clone(),
            lease,
        }
    }

    /// What a collection would do now, without a lease and without a trace. Old as soon as it is told.
    pub async fn look_for_orphans(
        &self,
        session: &SessionHead,
        grace: Duration,
    ) -> Result<GcResult, GcError> {
        let live = live_keys(&*self.store, &session.session_id).await?;
        let (result, orphans) = self.sort_out(&session.session_id, &live, grace).await?;
        let deleted = orphans.len() as u64;
        Ok(GcResult { deleted, deleted_keys: orphans, dry_run: true, ..result })
    }

    /// Lists the session's bodies and tells which of them are orphans.
    async fn sort_out(
        &self,
        session: &SessionId,
        live: &std::collections::BTreeSet<String>,
        grace: Duration,
    ) -> Result<(GcResult, Vec<String>), GcError> {
        let prefix = session.blobs_prefix();
        let list = |cause: String| GcList { prefix: prefix.clone(), cause };
        let listed = self.objects.list(&prefix).await.map_err(|error| list(error.to_string()))?;
        let now = self.store.now().await.map_err(|error| list(error.to_string()))?;
        let mut result = GcResult { scanned: listed.len() as u64, ..GcResult::default() };
        let mut orphans = Vec::new();
        for object in listed {
            let name = object.key.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('/'));
            let facts = ObjectFacts {
                name: name.filter(|name| !name.contains('/')),
                live: live.contains(&object.key),
                modified: object.modified,
                now,
                grace: millis(grace),
            };
            match judge(&facts) {
                Verdict::Referenced => result.referenced += 1,
                Verdict::Keep => result.kept += 1,
                Verdict::Orphan => orphans.push(object.key),
            }
        }
        Ok((result, orphans))
    }
}

impl ObjectGc<'_> {
    /// Deletes the bodies to which nothing points, safely beside writers of the same session: a barrier, a scan, a listing;
    /// what is old and has no pointer is condemned, which is where the store looks a second time, in the transaction after
    /// which nothing can point to it any more; then it is deleted, in order, the lease checked before each.
    ///
    /// Fails closed: where the scan or the listing is incomplete, nothing is deleted. What was deleted before another
    /// failure stays deleted, is told by the error, and the next pass finishes.
    pub async fn gc(&self, options: &GcOptions) -> Result<GcResult, GcError> {
        self.gc_while(options, &|| true).await
    }

    /// As [`ObjectGc::gc`], until nobody wants it any more.
    pub async fn gc_while(&self, options: &GcOptions, wanted: StillWanted<'_>) -> Result<GcResult, GcError> {
        self.held(wanted, &GcResult::default())?;
        if !options.dry_run {
            fail::point("gc.barrier.before");
            self.barrier().await?;
            fail::point("gc.barrier.after");
        }
        let live = live_keys(&*self.sessions.store, &self.session_id).await?;
        fail::point("gc.scanned");
        let (mut result, mut orphans) =
            self.sessions.sort_out(&self.session_id, &live, options.grace).await?;
        if options.dry_run {
            let deleted = orphans.len() as u64;
            return Ok(GcResult { deleted, deleted_keys: orphans, dry_run: true, ..result });
        }
        fail::point("gc.listed");
        orphans.sort_unstable();
        let condemned = self.condemn(&orphans).await?;
        fail::point("gc.condemned");
        for key in orphans {
            if !condemned.contains(&key) {
                // Something points to it since the scan.
                result.referenced += 1;
                continue;
            }
            self.held(wanted, &result)?;
            fail::point("gc.delete.before");
            if let Err(error) = self.sessions.objects.delete(&key).await {
                return Err(GcDelete { key, cause: error.to_string(), partial: result }.into());
            }
            result.deleted += 1;
            result.deleted_keys.push(key);
        }
        Ok(result)
    }

    fn held(&self, wanted: StillWanted<'_>, partial: &GcResult) -> Result<(), GcError> {
        if self.lease.valid() && wanted() {
            return Ok(());
        }
        Err(self.not_held(partial.clone()))
    }

    fn not_held(&self, partial: GcResult) -> GcError {
        let (session_id, epoch) = (self.session_id.clone(), self.lease.epoch());
        GcLeaseNotHeld { session_id, epoch, partial }.into()
    }

    /// Says in the ledger that a collection begins. Whoever has put a body before, and points to it after, is refused and
    /// puts it again; so a body without a pointer is either older than the grace for a reason, or young again.
    async fn barrier(&self) -> Result<(), GcError> {
        let epoch = self.lease.epoch();
        let id = format!("barrier/{epoch}/{}", self.sessions.ports.entropy.nonce().as_str());
        let append = AppendRecords {
            tenant: self.tenant.clone(),
            thread_id: self.thread_id.clone(),
            expected_tip: None,
            barrier: None,
            lease: Some(self.lease.token().clone()),
            pin: None,
            create: false,
            records: vec![NewRecord::new(id, Record::Barrier { epoch })],
        };
        match self.sessions.store.append_records(append).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Those of the orphans that are condemned from now on.
    async fn condemn(&self, orphans: &[String]) -> Result<std::collections::HashSet<String>, GcError> {
        let mut condemned = std::collections::HashSet::new();
        for keys in orphans.chunks(BATCH) {
            match self.sessions.store.condemn(self.lease.token(), keys).await {
                Ok(all) => condemned.extend(all),
                Err(error) => return Err(self.refused(error)),
            }
        }
        Ok(condemned)
    }

    fn refused(&self, error: RecordsError) -> GcError {
        match error {
            RecordsError::Refused(RecordsRefusal::LeaseLost { .. }) => self.not_held(GcResult::default()),
            error => {
                let (session_id, cause) = (self.session_id.clone(), error.to_string());
                GcScan { session_id, cause }.into()
            }
        }
    }
}
