//! Bodies that are elsewhere: who points to them, and to which nobody may.

use outlast_core::decide::{self, RecordsRefusal, SessionState};
use outlast_core::ledger::{Pointer, SessionId};
use outlast_store::{Append, LeaseOn, LeaseToken, RecordsError};

use super::leases;
use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, View, uint};
use crate::sql::messages::pointer_of;

/// Whether what the append points to may be pointed to. Where it points to nothing, nothing is looked up.
pub(crate) fn check_bodies(tx: &Tx<'_>, run: i64, append: &Append) -> Tried<Result<(), RecordsRefusal>> {
    let of_events = append.events.iter().filter_map(|event| event.pointer.as_ref());
    let mut pointers = of_events.chain(append.messages.iter().filter_map(pointer_of)).peekable();
    if pointers.peek().is_none() {
        return Ok(Ok(()));
    }
    let session = Session::of_run(tx, run)?;
    check_pointers(tx, session.as_ref(), append.barrier, pointers)
}

/// Whether these bodies may be pointed to in the session, put after the barrier that was seen. Asked in the transaction
/// that writes the pointers: a body is condemned in another one, before or after it.
pub(crate) fn check_pointers<'k>(
    view: &View<'_>,
    session: Option<&Session>,
    seen: Option<u64>,
    pointers: impl Iterator<Item = &'k Pointer>,
) -> Tried<Result<(), RecordsRefusal>> {
    let mut pointers = pointers.peekable();
    if pointers.peek().is_none() {
        return Ok(Ok(()));
    }
    let Some(session) = session else {
        return Ok(decide::bodies(0, Some(seen.unwrap_or_default()), None));
    };
    if session.state != SessionState::Active {
        return Ok(Err(RecordsRefusal::SessionDeleted(session.id.clone())));
    }
    let mut found = None;
    for pointer in pointers {
        if condemned(view, session, &pointer.key)? {
            found = Some(&pointer.key);
            break;
        }
    }
    Ok(decide::bodies(session.barrier, Some(seen.unwrap_or_default()), found))
}

/// Whether a collection has condemned the body.
pub(super) fn condemned(view: &View<'_>, session: &Session, key: &str) -> Tried<bool> {
    let mut statement = view
        .db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM condemned WHERE session = ?1 AND blob_key = ?2)")?;
    Ok(statement.query_row((session.key, key), |row| row.get(0))?)
}

/// Every body in a range of keys that something points to. The keys of a session's bodies begin with its id.
pub(super) const POINTERS: &str = "SELECT blob_key, blob_size FROM records WHERE blob_key >= ?1 AND blob_key < ?2 \
     UNION SELECT blob_key, blob_size FROM events WHERE blob_key >= ?1 AND blob_key < ?2 \
     UNION SELECT blob_key, blob_size FROM messages WHERE blob_key >= ?1 AND blob_key < ?2 ORDER BY blob_key";

/// See [`outlast_store::Ledger::pointers`].
pub(crate) fn pointers(view: &View<'_>, session: &SessionId) -> Tried<Vec<Pointer>> {
    let prefix = session.blobs_prefix();
    let mut statement = view.db.prepare_cached(POINTERS)?;
    // `0` comes after `/`.
    let mut rows = statement.query((format!("{prefix}/"), format!("{prefix}0")))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Pointer { key: row.get(0)?, size: uint(row.get(1)?) });
    }
    Ok(found)
}

/// Whether anything points to the body.
pub(super) const POINTED_TO: &str = "SELECT EXISTS (SELECT 1 FROM records WHERE blob_key = ?1) \
     OR EXISTS (SELECT 1 FROM events WHERE blob_key = ?1) OR EXISTS (SELECT 1 FROM messages WHERE blob_key = ?1)";

/// See [`outlast_store::Ledger::condemn`]. The look for references and the sentence are one transaction, as are the look
/// for a sentence and the reference that an append makes: of the two, one sees the other.
pub(crate) fn condemn(
    tx: &Tx<'_>,
    lease: &LeaseToken,
    keys: &[String],
) -> Tried<Result<Vec<String>, RecordsError>> {
    let LeaseOn::Session(id) = &lease.on else { return Ok(Ok(Vec::new())) };
    if !leases::holds(tx, lease)? {
        let refusal = RecordsRefusal::LeaseLost { session_id: id.clone(), epoch: lease.epoch };
        return Ok(Err(refusal.into()));
    }
    let Some(session) = Session::by_id(tx, id)? else {
        return Ok(Err(RecordsRefusal::SessionNotFound(id.to_string()).into()));
    };
    let mut pointed_to = tx.db.prepare_cached(POINTED_TO)?;
    let mut insert = tx
        .db
        .prepare_cached("INSERT INTO condemned (session, blob_key) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    for key in keys {
        if !pointed_to.query_row([key], |row| row.get(0))? {
            insert.execute((session.key, key))?;
        }
    }
    let mut all =
        tx.db.prepare_cached("SELECT blob_key FROM condemned WHERE session = ?1 ORDER BY blob_key")?;
    let found = all.query_map([session.key], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Ok(found))
}
