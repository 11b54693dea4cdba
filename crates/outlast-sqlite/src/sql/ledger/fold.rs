//! What is kept of a ledger in its session's row.

use outlast_core::ledger::{Decoded, Fold, Kind, Record};
use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};

use super::session::Session;
use crate::failure::Tried;
use crate::sql::append::SEQ_BITS;
use crate::sql::context::{View, to_json, uint};

/// The fold that goes on with what is written.
pub(super) enum Kept {
    /// It is known.
    Fold(Box<Fold>),
    /// There is none, because this record cannot be read by this program. It is noted, so that not every append looks
    /// through the whole ledger again to find that out.
    Stuck(u64),
}

#[derive(Serialize, Deserialize)]
struct Stuck {
    unreadable: u64,
}

/// The stored fold, if it is of this version and of all records up to the tip.
pub(super) fn of(text: &str, tip: u64) -> Option<Fold> {
    Fold::read(text).filter(|fold| fold.seq == tip)
}

impl Kept {
    /// The session's fold; where it is missing, or not this version's, folded again from the records.
    pub(super) fn find(view: &View<'_>, session: &Session) -> Tried<Kept> {
        let text = session.fold.as_deref().unwrap_or_default();
        if let Some(fold) = of(text, session.tip) {
            return Ok(Kept::Fold(Box::new(fold)));
        }
        if let Ok(Stuck { unreadable }) = serde_json::from_str(text)
            && !readable(view, session, unreadable)?
        {
            return Ok(Kept::Stuck(unreadable));
        }
        fold(view, session)
    }

    /// The stored form.
    pub(super) fn to_text(&self) -> Tried<String> {
        match self {
            Kept::Fold(fold) => Ok(fold.to_json()),
            Kept::Stuck(unreadable) => to_json(&Stuck { unreadable: *unreadable }),
        }
    }
}

fn readable(view: &View<'_>, session: &Session, seq: u64) -> Tried<bool> {
    let mut statement =
        view.db.prepare_cached("SELECT kind, skip, record_id, body FROM records WHERE id = ?1")?;
    let found: Option<(String, bool, String, String)> = statement
        .query_row([session.record(seq)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    Ok(found.is_none_or(|(kind, skip, id, body)| Record::decode(&kind, skip, &id, &body).is_ok()))
}

/// Folds all records. One after the other, so it takes no more memory than the largest; of messages, which are most of
/// them, the bodies are not even read, since what they say makes no difference.
fn fold(view: &View<'_>, session: &Session) -> Tried<Kept> {
    let mut statement = view.db.prepare_cached(
        "SELECT id, at, kind, skip, record_id, CASE WHEN kind <> 'message' THEN body END FROM records \
         WHERE id > ?1 AND id <= ?2 ORDER BY id",
    )?;
    let mut rows = statement.query((session.record(0), session.record(session.tip)))?;
    let mut fold = Fold::empty();
    while let Some(row) = rows.next()? {
        let seq = uint(row.get::<_, i64>(0)? & ((1 << SEQ_BITS) - 1));
        let at = uint(row.get(1)?);
        let kind: String = row.get(2)?;
        if kind == Kind::Message.as_str() {
            fold.apply_messages(1, seq, at);
            continue;
        }
        let (id, body): (String, String) = (row.get(4)?, row.get(5)?);
        match Record::decode(&kind, row.get(3)?, &id, &body) {
            Ok(Decoded::Known(record)) => fold.apply(seq, at, &record),
            Ok(Decoded::Skipped) => fold.pass(seq, at),
            Err(error) => {
                tracing::warn!(session = %session.id, seq, %error, "what the ledger amounts to is not kept");
                return Ok(Kept::Stuck(seq));
            }
        }
    }
    Ok(Kept::Fold(Box::new(fold)))
}
