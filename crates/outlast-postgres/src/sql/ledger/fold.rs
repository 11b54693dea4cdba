//! What a ledger amounts to, kept with its tip.

use outlast_core::ledger::{Decoded, Fold, Kind, Record};

use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, get, int, number};

/// How many records are folded at a time.
const PAGE: i64 = 1000;

/// Kept where a record could not be read, of a kind that a newer program has added: whoever adds next need not find that
/// out again, and a newer program, which takes this for none, folds anew.
const GAVE_UP: &str = r#"{"version":0,"gaveUp":1}"#;
const _: () = assert!(Fold::VERSION == 1, "another version has not given up: it has another word for it");

/// The fold as it is kept.
pub(super) enum Kept {
    /// Of all records up to the tip.
    Of(Fold),
    /// Of another version, or none: to be folded anew.
    Another,
    /// There is a record that this program cannot read.
    None,
}

impl Kept {
    /// Reads what is stored beside this tip.
    pub(super) fn read(json: Option<&str>, tip: u64) -> Kept {
        match json {
            Some(GAVE_UP) => Kept::None,
            json => fold(json, tip).map_or(Kept::Another, Kept::Of),
        }
    }

    /// The stored form.
    pub(super) fn to_json(&self) -> Option<String> {
        match self {
            Kept::Of(fold) => Some(fold.to_json()),
            Kept::Another => None,
            Kept::None => Some(GAVE_UP.to_owned()),
        }
    }

    /// Goes on with the next of the records, where there is a fold.
    pub(super) fn take(&mut self, next: impl FnOnce(&mut Fold)) {
        if let Kept::Of(fold) = self {
            next(fold);
        }
    }
}

/// The stored fold, where it is of this version and of all records up to the tip.
pub(super) fn fold(json: Option<&str>, tip: u64) -> Option<Fold> {
    json.and_then(Fold::read).filter(|fold| fold.seq == tip)
}

impl Session {
    /// Folds anew what another version has kept, before more is added.
    pub(super) async fn fold(&mut self, tx: &Tx<'_>) -> Tried<()> {
        if let Kept::Another = self.kept {
            self.kept = match fold_anew(tx, self.key).await? {
                Some(fold) => Kept::Of(fold),
                None => Kept::None,
            };
        }
        Ok(())
    }
}

/// The fold of all records; none where one cannot be read. What messages say makes no difference, so they stay where they
/// are.
async fn fold_anew(tx: &Tx<'_>, session: i64) -> Tried<Option<Fold>> {
    let mut fold = Fold::empty();
    loop {
        let rows = tx
            .all(
                "SELECT seq, at, record_id, kind, skip, CASE WHEN kind <> 'message' THEN body END FROM records \
                 WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3",
                &[&session, &int(fold.seq), &PAGE],
            )
            .await?;
        for row in &rows {
            let (seq, at, kind) = (number(row, 0)?, number(row, 1)?, get::<&str>(row, 3)?);
            if kind == Kind::Message.as_str() {
                fold.apply_messages(1, seq, at);
                continue;
            }
            let body = get::<Option<&str>>(row, 5)?.unwrap_or_default();
            match Record::decode(kind, get(row, 4)?, get(row, 2)?, body) {
                Ok(Decoded::Known(record)) => fold.apply(seq, at, &record),
                Ok(Decoded::Skipped) => fold.pass(seq, at),
                Err(error) => {
                    tracing::debug!(%error, "a ledger is not folded");
                    return Ok(None);
                }
            }
        }
        if rows.len() < PAGE as usize {
            return Ok(Some(fold));
        }
    }
}
