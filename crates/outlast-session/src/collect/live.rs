//! What is live in a session.

use std::collections::BTreeSet;

use outlast_core::ledger::SessionId;
use outlast_store::{ReadRecords, Store};

use super::GcScan;

/// How many records are read at a time.
const PAGE: usize = 2000;

/// The keys of all bodies to which records, messages and events of the session point. An error unless every record could
/// be read and is what was written: one that is not understood may point to anything.
pub(super) async fn live_keys(store: &dyn Store, session: &SessionId) -> Result<BTreeSet<String>, GcScan> {
    let scan = |cause: String| GcScan { session_id: session.clone(), cause };
    let mut live = BTreeSet::new();
    let mut query = ReadRecords {
        session_id: session.clone(),
        after: 0,
        kinds: Vec::new(),
        max_records: PAGE,
        max_bytes: 4 << 20,
    };
    loop {
        let page = store.read_records(&query).await.map_err(|error| scan(error.to_string()))?;
        for record in &page.records {
            if record.seq != query.after + 1 {
                return Err(scan(format!("record {} is missing", query.after + 1)));
            }
            query.after = record.seq;
            if !record.is_intact() {
                return Err(scan(format!("record {} ({:?}) is damaged", record.seq, record.id)));
            }
            record.decode().map_err(|error| scan(format!("record {}: {error}", record.seq)))?;
            if let Some(pointer) = &record.pointer {
                pointer.check(session).map_err(|error| scan(format!("record {}: {error}", record.seq)))?;
                live.insert(pointer.key.clone());
            }
        }
        if !page.more {
            if query.after != page.tip {
                return Err(scan(format!("record {} is missing", query.after + 1)));
            }
            break;
        }
    }
    let others = store.pointers(session).await.map_err(|error| scan(error.to_string()))?;
    live.extend(others.into_iter().map(|pointer| pointer.key));
    Ok(live)
}
