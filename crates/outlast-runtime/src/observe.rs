//! Watching what becomes of a run, without counting as somebody who watches its events.

use std::collections::VecDeque;

use outlast_core::RunId;
use outlast_core::run::{Change, RunRecord, changes};
use outlast_store::{Signal, StoreError};

use crate::Host;

/// Tells of one run's changes: detached, attached, taken over, cancelled, expired, ended. Reads only, and is no viewer: the
/// run stays as detached as it is.
#[derive(Debug)]
pub struct Observer {
    host: Host,
    run: RunRecord,
    waiting: VecDeque<Change>,
    signal: Signal,
}

impl Host {
    /// Observes the run from now on; none where there is no such run.
    pub async fn observe(&self, run_id: &RunId) -> Result<Option<Observer>, StoreError> {
        let signal = self.inner.store.subscribe(run_id);
        let run = self.run(run_id).await?;
        Ok(run.map(|run| Observer { host: self.clone(), run, waiting: VecDeque::new(), signal }))
    }
}

impl Observer {
    /// The run, as it was when it was last looked at.
    pub fn run(&self) -> &RunRecord {
        &self.run
    }

    /// The next change; none once the run has ended and everything was told. Comes at most about a second after it
    /// happened, whichever host made it.
    pub async fn next(&mut self) -> Result<Option<Change>, StoreError> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                return Ok(Some(change));
            }
            if self.run.status.is_terminal() {
                return Ok(None);
            }
            let host = &self.host.inner;
            tokio::select! {
                biased;
                () = self.signal.changed() => {}
                () = host.ports.clock.sleep(host.options.read_poll) => {}
            }
            let Some(run) = self.host.run(&self.run.run_id).await? else {
                return Ok(None);
            };
            self.waiting.extend(changes(&self.run, &run));
            self.run = run;
        }
    }
}
