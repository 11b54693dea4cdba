//! The part of a run's row on which fenced writes are decided, locked until the transaction ends.

use outlast_core::decide::{self, WriteFacts};
use outlast_core::run::{Cancel, CancelReason, Phase, Status};
use outlast_core::{Nonce, RunId, Seq, Tenant, ThreadId};

use super::context::{Tx, get, number, parsed, uint, word};
use crate::failure::Tried;

pub(super) struct Head {
    pub(super) run: i64,
    pub(super) tenant: Tenant,
    pub(super) thread_id: ThreadId,
    /// What its thread's ledger knows of it: 0 nothing, 1 its start, 2 its end. Only a host of the version before leaves the
    /// start of a run to be added later.
    pub(super) ledgered: i16,
    pub(super) phase: Phase,
    pub(super) facts: WriteFacts,
    pub(super) instance_id: Option<String>,
    pub(super) lease_owner: Option<String>,
    /// How much longer the lease runs by the database's clock, in milliseconds.
    pub(super) lease_remaining: u64,
}

impl Head {
    pub(super) async fn lock(tx: &Tx<'_>, run_id: &RunId) -> Tried<Option<Head>> {
        // The clock is read once the lock is held, by which time the lease may have run out: what is selected beside a lock
        // may be computed before it is got, what is selected from it is not.
        let row = tx
            .maybe(
                "WITH locked AS (\
                    SELECT run, status, phase, epoch, lease_nonce, tail, last_batch, cancel_reason, cancel_at, instance_id, \
                        lease_owner, lease_until, tenant, thread_id, ledgered \
                    FROM runs WHERE run_id = $1 FOR UPDATE\
                ) SELECT status, phase, epoch, lease_nonce, tail, last_batch, cancel_reason, cancel_at, instance_id, \
                    lease_owner, greatest(coalesce(lease_until, 0) - outlast_now(), 0), run, tenant, thread_id, ledgered \
                FROM locked",
                &[&run_id.as_str()],
            )
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Head {
            run: get(&row, 11)?,
            tenant: Tenant(get(&row, 12)?),
            thread_id: parsed("thread id", ThreadId::new(get::<&str>(&row, 13)?))?,
            ledgered: get(&row, 14)?,
            phase: word("phase", get(&row, 1)?, Phase::parse)?,
            facts: WriteFacts {
                status: word("status", get(&row, 0)?, Status::parse)?,
                epoch: number(&row, 2)?,
                nonce: get::<Option<String>>(&row, 3)?.map(Nonce::from_stored),
                tail: Seq(number(&row, 4)?),
                last_batch: get::<Option<String>>(&row, 5)?.map(Nonce::from_stored),
                cancel: cancel(get(&row, 6)?, get(&row, 7)?)?,
            },
            instance_id: get(&row, 8)?,
            lease_owner: get(&row, 9)?,
            lease_remaining: number(&row, 10)?,
        }))
    }

    /// For how many milliseconds nobody has watched the run.
    pub(super) async fn detached_for(&self, tx: &Tx<'_>) -> Tried<Option<u64>> {
        let row = tx
            .one(
                "SELECT r.started_at, (SELECT max(p.until_time) FROM presence p WHERE p.run = r.run), outlast_now() \
                 FROM runs r WHERE r.run = $1",
                &[&self.run],
            )
            .await?;
        let (latest, now) = (get::<Option<i64>>(&row, 1)?.map(uint), number(&row, 2)?);
        let since = decide::detached_since(number(&row, 0)?, latest, now, self.facts.status.is_terminal());
        Ok(since.map(|since| now - since))
    }
}

/// A stored wish to stop.
pub(super) fn cancel(reason: Option<&str>, at: Option<i64>) -> Tried<Option<Cancel>> {
    reason
        .map(|reason| {
            let reason = word("reason to cancel", reason, CancelReason::parse)?;
            Ok(Cancel { reason, at: uint(at.unwrap_or(0)) })
        })
        .transpose()
}
