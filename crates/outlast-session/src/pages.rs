//! Many sessions, some at a time.

use outlast_store::{ListSessions, SessionHead, Store, StoreError};

use crate::Sessions;

/// How many sessions are listed at a time.
const PAGE: usize = 200;

/// The sessions that a query finds, page by page.
pub(crate) struct Pages<'s> {
    store: &'s dyn Store,
    query: Option<ListSessions>,
}

impl Sessions {
    /// All that the query finds, whatever its limit. By their ids, so that none is missed or met twice that is there all the
    /// time.
    pub(crate) fn pages(&self, query: ListSessions) -> Pages<'_> {
        Pages { store: &*self.store, query: Some(ListSessions { after: None, limit: PAGE, ..query }) }
    }
}

impl Pages<'_> {
    /// The next page; none after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<SessionHead>>, StoreError> {
        let Some(query) = &mut self.query else { return Ok(None) };
        let page = self.store.list_sessions(query).await?;
        match page.last().filter(|_| page.len() == PAGE) {
            Some(last) => query.after = Some(last.session_id.clone()),
            None => self.query = None,
        }
        Ok(Some(page))
    }
}
