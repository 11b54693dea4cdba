//! Adding to a ledger.

use outlast_core::RunId;
use outlast_core::ledger::{Kind, checksum, message_id};
use outlast_store::NewRecord;

use super::fold::Kept;
use super::session::Session;
use crate::failure::{Failure, Tried};
use crate::sql::context::{Tx, int, stored_pointer};

/// The records that a transaction adds to one ledger. [`Entries::save`] brings the session's row up to them, in the same
/// transaction: whoever sees the one sees the other.
pub(super) struct Entries<'t> {
    tx: &'t Tx<'t>,
    session: Session,
    kept: Kept,
}

/// A record as it is written.
struct Row<'r> {
    at: u64,
    id: &'r str,
    kind: Kind,
    sum: &'r str,
    body: &'r str,
    blob_key: Option<&'r str>,
    blob_size: Option<i64>,
}

impl<'t> Entries<'t> {
    pub(super) fn open(tx: &'t Tx<'t>, session: Session) -> Tried<Entries<'t>> {
        let kept = Kept::find(tx, &session)?;
        Ok(Entries { tx, session, kept })
    }

    /// Adds the record, unless there is one of its id. Answers with its number.
    pub(super) fn add(&mut self, new: &NewRecord) -> Tried<Option<u64>> {
        let (blob_key, blob_size) = stored_pointer(new.pointer());
        let (kind, at) = (new.record.kind(), new.at.unwrap_or(self.tx.wall));
        let row =
            Row { at, id: &new.id, kind, sum: &new.sum(), body: &new.record.body(), blob_key, blob_size };
        let Some(seq) = self.insert(&row)? else { return Ok(None) };
        if let Kept::Fold(fold) = &mut self.kept {
            fold.apply(seq, at, &new.record);
        }
        if kind == Kind::Barrier {
            self.session.barrier = seq;
        }
        Ok(Some(seq))
    }

    /// Takes the messages of a run that has ended: what is in the ledger is not anywhere else.
    pub(super) fn take_messages(&mut self, run: i64, run_id: &RunId) -> Tried<()> {
        let mut statement = self.tx.db.prepare_cached(
            "SELECT ordinal, json, sum, blob_key, blob_size FROM messages WHERE run = ?1 ORDER BY ordinal",
        )?;
        let mut rows = statement.query([run])?;
        while let Some(row) = rows.next()? {
            let id = message_id(run_id, row.get(0)?);
            let (body, sum, blob_key): (String, Option<String>, Option<String>) =
                (row.get(1)?, row.get(2)?, row.get(3)?);
            let sum = sum.unwrap_or_else(|| checksum(Kind::Message.as_str(), &id, &body));
            let row = Row {
                at: self.tx.wall,
                id: &id,
                kind: Kind::Message,
                sum: &sum,
                body: &body,
                blob_key: blob_key.as_deref(),
                blob_size: row.get(4)?,
            };
            if let (Some(seq), Kept::Fold(fold)) = (self.insert(&row)?, &mut self.kept) {
                fold.apply_messages(1, seq, self.tx.wall);
            }
        }
        self.tx.db.prepare_cached("DELETE FROM messages WHERE run = ?1")?.execute([run])?;
        Ok(())
    }

    fn insert(&mut self, row: &Row<'_>) -> Tried<Option<u64>> {
        let seq = self.session.tip + 1;
        if seq > u64::from(u32::MAX) {
            return Err(Failure::Damaged("a ledger has more than 4294967295 records".to_owned()));
        }
        let added = self
            .tx
            .db
            .prepare_cached(
                "INSERT INTO records (id, session, at, kind, skip, record_id, sum, blob_key, blob_size, body) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (session, record_id) DO NOTHING",
            )?
            .execute((
                self.session.record(seq),
                self.session.key,
                int(row.at),
                row.kind.as_str(),
                row.kind.skippable(),
                row.id,
                row.sum,
                row.blob_key,
                row.blob_size,
                row.body,
            ))?;
        if added == 0 {
            return Ok(None);
        }
        self.session.tip = seq;
        Ok(Some(seq))
    }

    /// Says when something happened last that was no upkeep.
    pub(super) fn active(&mut self, at: u64) {
        self.session.active_at = at;
    }

    /// Writes the session's row.
    pub(super) fn save(mut self) -> Tried<Session> {
        let fold = self.kept.to_text()?;
        let session = &self.session;
        self.tx
            .db
            .prepare_cached(
                "UPDATE sessions SET tip = ?2, barrier = ?3, active_at = ?4, fold = ?5 WHERE session = ?1",
            )?
            .execute((session.key, int(session.tip), int(session.barrier), int(session.active_at), &fold))?;
        self.session.fold = Some(fold);
        Ok(self.session)
    }
}
