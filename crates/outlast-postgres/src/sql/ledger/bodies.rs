//! May these bodies be pointed to?

use outlast_core::decide::{self, RecordsRefusal};
use outlast_core::ledger::SessionId;
use outlast_store::{Append, NewEvent, NewMessage};

use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, get};

/// The bodies that these events and messages point to.
pub(in crate::sql) fn pointers_of<'p>(events: &'p [NewEvent], messages: &'p [NewMessage]) -> Vec<&'p str> {
    let of_events = events.iter().filter_map(|event| event.pointer.as_ref());
    let of_messages =
        messages.iter().filter_map(|new| new.offloaded.as_ref().map(|offloaded| &offloaded.pointer));
    of_events.chain(of_messages).map(|pointer| pointer.key.as_str()).collect()
}

/// Whether an append points to bodies: only then it has anything to do with its thread's session.
pub(crate) fn points_elsewhere(append: &Append) -> bool {
    !pointers_of(&append.events, &append.messages).is_empty()
}

/// Where the keys of a session's bodies begin and where those that come after them do.
pub(super) fn key_range(session: &SessionId) -> (String, String) {
    let prefix = session.blobs_prefix();
    // The character after the slash.
    (format!("{prefix}/"), format!("{prefix}0"))
}

impl Session {
    /// Whether these bodies may be pointed to from its thread. Under the lock: from the answer to the commit no collection
    /// begins and none of them is condemned; whoever would condemn one looks for what points to it after that.
    pub(in crate::sql) async fn may_point_to(
        &self,
        tx: &Tx<'_>,
        barrier: Option<u64>,
        keys: &[&str],
    ) -> Tried<Result<(), RecordsRefusal>> {
        if keys.is_empty() {
            return Ok(Ok(()));
        }
        if !self.is_active() {
            return Ok(Err(RecordsRefusal::SessionDeleted(self.id.clone())));
        }
        let condemned = self.condemned(tx, keys).await?;
        Ok(decide::bodies(self.barrier, Some(barrier.unwrap_or_default()), condemned.first()))
    }

    /// Those of the bodies that a collection has condemned.
    pub(super) async fn condemned(&self, tx: &Tx<'_>, keys: &[&str]) -> Tried<Vec<String>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT blob_key FROM condemned WHERE blob_key = ANY ($1) ORDER BY blob_key";
        tx.all(sql, &[&keys]).await?.iter().map(|row| get(row, 0)).collect()
    }
}
