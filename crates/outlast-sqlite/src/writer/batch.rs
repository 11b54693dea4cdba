//! One commit for many writes.

use std::path::Path;

use outlast_core::RunId;
use outlast_store::StoreError;
use rusqlite::Connection;

use super::{Job, Queue};
use crate::failure::{Failure, Tried};
use crate::sql::{Tx, View};

/// What a transaction needs besides its writes.
pub(super) struct Scene<'a> {
    pub(super) db: &'a Connection,
    pub(super) shared: &'a crate::store::Shared,
    pub(super) queue: &'a Queue,
}

/// Why nothing of a transaction was committed.
enum Fault {
    /// A write failed, and another alone may succeed.
    Attempt(Failure),
    /// The transaction itself could not begin or end, as no other one will now.
    Whole(Failure),
}

impl Scene<'_> {
    fn file(&self) -> &Path {
        &self.shared.file
    }

    /// Writes all in one transaction; where one of them fails, each in a transaction of its own. Nobody hears of a
    /// write before the commit that holds it has succeeded: a crash in between leaves a write that is repeated, never
    /// an answer without a write.
    pub(super) fn write(&self, jobs: Vec<Box<dyn Job>>) {
        let mut jobs: Vec<_> = jobs.into_iter().filter(|job| !job.is_pointless()).collect();
        if jobs.is_empty() {
            return;
        }
        match self.transaction(&mut jobs) {
            Ok(touched) => self.committed(jobs, &touched),
            Err(Fault::Attempt(_)) if jobs.len() > 1 => self.write_each(jobs),
            Err(Fault::Attempt(failure) | Fault::Whole(failure)) => {
                let told = self.tell(&failure);
                self.refuse(jobs, &told);
            }
        }
    }

    fn write_each(&self, jobs: Vec<Box<dyn Job>>) {
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            let mut alone = vec![job];
            match self.transaction(&mut alone) {
                Ok(touched) => self.committed(alone, &touched),
                Err(Fault::Attempt(failure)) => {
                    let told = self.tell(&failure);
                    self.refuse(alone, &told);
                }
                // Waiting for a lock or a full disk once for each would hold them all for minutes.
                Err(Fault::Whole(failure)) => {
                    let told = self.tell(&failure);
                    self.refuse(alone, &told);
                    return self.refuse(jobs.collect(), &told);
                }
            }
        }
    }

    fn transaction(&self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<RunId>, Fault> {
        self.execute("BEGIN IMMEDIATE").map_err(Fault::Whole)?;
        let view = View::now(self.db, &self.shared.owners, &self.shared.ports);
        let tx = Tx::new(view, &*self.shared.ports.entropy, &self.shared.deployment_id);
        for job in jobs {
            if let Err(failure) = job.attempt(&tx) {
                self.roll_back();
                return Err(Fault::Attempt(failure));
            }
        }
        // Whether a commit that fails was in fact made is not known in every case. All are told that it is not
        // known, and whoever repeats a write names the same batch.
        if let Err(failure) = self.execute("COMMIT") {
            self.roll_back();
            return Err(Fault::Whole(failure));
        }
        Ok(tx.into_touched())
    }

    fn execute(&self, sql: &str) -> Tried<()> {
        self.db.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn roll_back(&self) {
        // SQLite has rolled back by itself after some errors.
        if !self.db.is_autocommit()
            && let Err(failure) = self.execute("ROLLBACK")
        {
            tracing::warn!(?failure, "cannot roll back");
        }
    }

    fn committed(&self, jobs: Vec<Box<dyn Job>>, touched: &[RunId]) {
        for job in jobs {
            job.answer(Ok(()), self.queue);
        }
        for run_id in touched {
            self.shared.signals.run_changed(run_id);
        }
    }

    fn refuse(&self, jobs: Vec<Box<dyn Job>>, told: &StoreError) {
        for job in jobs {
            job.answer(Err(told.clone()), self.queue);
        }
    }

    fn tell(&self, failure: &Failure) -> StoreError {
        let told = failure.told(self.file());
        if told.is_transient() {
            tracing::warn!("{told}");
        } else {
            tracing::error!("{told}");
        }
        told
    }
}
