//! Adding records to a locked session.

use outlast_core::ledger::Kind;
use outlast_store::NewRecord;

use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, Value, int};

/// The records and what the session is after them, in one statement.
macro_rules! add {
    ($only:literal, $if:literal) => {
        concat!(
            "WITH added AS (\
                INSERT INTO records (session, seq, at, record_id, kind, skip, sum, body, blob_key, blob_size) \
                SELECT $1, $2 + r.n, r.at, r.id, r.kind, r.skip, r.sum, r.body, r.blob_key, r.blob_size \
                FROM unnest($3::bigint[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::text[], $9::text[], \
                    $10::bigint[]) WITH ORDINALITY AS r (at, id, kind, skip, sum, body, blob_key, blob_size, n)",
            $only,
            " RETURNING seq) \
            UPDATE sessions SET tip = $11, barrier = $12, active_at = $13, fold = $14 WHERE session = $1",
            $if
        )
    };
}
const ADD: &str = add!("", "");
/// A run's id is free again once its row is deleted; its records are not. So they may be there.
const ADD_ONCE: &str = add!(
    " WHERE (SELECT seq FROM records WHERE session = $1 AND record_id = r.id) IS NULL",
    " AND EXISTS (SELECT 1 FROM added)"
);

/// Adds records whose ids are free, after the session's tip.
pub(super) async fn add(tx: &Tx<'_>, session: &mut Session, records: &[&NewRecord]) -> Tried<()> {
    add_by(tx, session, records, ADD).await
}

/// Adds the record of a run unless it is there; the last that is done with the session.
pub(in crate::sql) async fn add_once(tx: &Tx<'_>, mut session: Session, record: &NewRecord) -> Tried<()> {
    add_by(tx, &mut session, &[record], ADD_ONCE).await
}

async fn add_by(tx: &Tx<'_>, session: &mut Session, records: &[&NewRecord], sql: &str) -> Tried<()> {
    let before = session.tip;
    session.fold(tx).await?;
    for new in records {
        session.take(new, session.now);
    }
    let times: Vec<i64> = records.iter().map(|new| int(new.at.unwrap_or(session.now))).collect();
    let ids: Vec<&str> = records.iter().map(|new| new.id.as_str()).collect();
    let kinds: Vec<&str> = records.iter().map(|new| new.record.kind().as_str()).collect();
    let skips: Vec<bool> = records.iter().map(|new| new.record.kind().skippable()).collect();
    let sums: Vec<String> = records.iter().map(|new| new.sum()).collect();
    let bodies: Vec<String> = records.iter().map(|new| new.record.body()).collect();
    let keys: Vec<Option<&str>> =
        records.iter().map(|new| new.pointer().map(|pointer| pointer.key.as_str())).collect();
    let sizes: Vec<Option<i64>> =
        records.iter().map(|new| new.pointer().map(|pointer| int(pointer.size))).collect();
    let values: [Value<'_>; 14] = [
        &session.key,
        &int(before),
        &times,
        &ids,
        &kinds,
        &skips,
        &sums,
        &bodies,
        &keys,
        &sizes,
        &int(session.tip),
        &int(session.barrier),
        &int(session.active_at),
        &session.kept.to_json(),
    ];
    tx.write(sql, &values).await?;
    Ok(())
}

impl Session {
    /// Takes note of a record that is added next. `active_at`: when happened what it tells of.
    pub(super) fn take(&mut self, new: &NewRecord, active_at: u64) {
        self.tip += 1;
        let (seq, at) = (self.tip, new.at.unwrap_or(self.now));
        self.kept.take(|fold| fold.apply(seq, at, &new.record));
        match new.record.kind() {
            Kind::Barrier => self.barrier = seq,
            Kind::SessionStopped => {}
            _ => self.active_at = self.active_at.max(active_at),
        }
    }

    /// Takes note of so many messages that are added next.
    pub(super) fn take_messages(&mut self, count: u64, active_at: u64) {
        self.tip += count;
        let (seq, at) = (self.tip, self.now);
        self.kept.take(|fold| fold.apply_messages(count, seq, at));
        if count > 0 {
            self.active_at = self.active_at.max(active_at);
        }
    }

    /// Writes what it is now.
    pub(in crate::sql) async fn save(&self, tx: &Tx<'_>) -> Tried<()> {
        tx.write(
            "UPDATE sessions SET tip = $2, barrier = $3, active_at = $4, fold = $5 WHERE session = $1",
            &[&self.key, &int(self.tip), &int(self.barrier), &int(self.active_at), &self.kept.to_json()],
        )
        .await?;
        Ok(())
    }
}
