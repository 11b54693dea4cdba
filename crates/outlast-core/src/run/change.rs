//! What became of a run between two looks at its record.

use serde::Serialize;

use super::{CancelReason, EndReason, RunRecord, Status};
use crate::OwnerId;

/// A change that operators and clients act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Change {
    /// The agent is known to be launched.
    Launched,
    /// The last viewer has left.
    Detached {
        /// When, in milliseconds since 1970.
        since: u64,
    },
    /// Somebody watches again.
    Attached,
    /// Another claim was granted: a takeover, also by the same process again.
    TakenOver {
        /// By whom.
        owner: OwnerId,
        /// The claim's epoch.
        epoch: u64,
    },
    /// Nobody drives it any more.
    Undriven,
    /// Somebody wants it to stop.
    CancelRequested {
        /// Whose wish it was.
        reason: CancelReason,
    },
    /// It went on without a viewer for longer than it may, and has ended for that.
    Expired,
    /// It has ended.
    Ended {
        /// How.
        status: Status,
        /// Why.
        reason: Option<EndReason>,
    },
}

/// What has changed, in the order in which it is told. Several changes between two looks are all told, unless one undid
/// another: who left and came back in between was there all the time.
pub fn changes(before: &RunRecord, after: &RunRecord) -> Vec<Change> {
    let mut changes = Vec::new();
    if before.phase != after.phase && after.phase == super::Phase::Launched {
        changes.push(Change::Launched);
    }
    match (&after.driver, before.driver.is_some()) {
        (Some(driver), _) if after.driver_epoch > before.driver_epoch => {
            changes.push(Change::TakenOver { owner: driver.owner.clone(), epoch: after.driver_epoch });
        }
        // The end of a run takes its driver away; that is the end, and told as such.
        (None, true) if !after.status.is_terminal() => changes.push(Change::Undriven),
        _ => {}
    }
    match (before.detached_since, after.detached_since) {
        (None, Some(since)) => changes.push(Change::Detached { since }),
        (Some(_), None) if !after.status.is_terminal() => changes.push(Change::Attached),
        _ => {}
    }
    if let (None, Some(cancel)) = (before.cancel_requested, after.cancel_requested) {
        changes.push(Change::CancelRequested { reason: cancel.reason });
    }
    if !before.status.is_terminal() && after.status.is_terminal() {
        if after.end_reason == Some(EndReason::Expired) {
            changes.push(Change::Expired);
        }
        changes.push(Change::Ended { status: after.status, reason: after.end_reason });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Cancel, Driver, LaunchSpec, OnDisconnect, Phase, SandboxSpec};
    use crate::{ExitSecret, Tenant};

    fn run() -> RunRecord {
        RunRecord {
            run_id: "r".parse().expect("id"),
            thread_id: "t".parse().expect("id"),
            tenant: Tenant::default(),
            agent: String::new(),
            model: None,
            status: Status::Running,
            phase: Phase::Launched,
            started_at: 0,
            finished_at: None,
            error: None,
            end_reason: None,
            usage: Vec::new(),
            exit_code: None,
            sandbox_key: None,
            instance_id: None,
            machine: None,
            detached_since: None,
            detached_ttl: None,
            on_disconnect: OnDisconnect::Detach,
            cancel_requested: None,
            driver_epoch: 1,
            driver: Some(Driver { owner: "a".parse().expect("id"), since: 0, lease_remaining: 5 }),
            tail: 0,
            sealed: false,
            agent_session: None,
            spec: LaunchSpec::command(Vec::new(), SandboxSpec::default()),
            exit_secret: ExitSecret::from_bytes([0; 16]),
            cursor: None,
        }
    }

    #[test]
    fn table() {
        let driver =
            |owner: &str| Some(Driver { owner: owner.parse().expect("id"), since: 1, lease_remaining: 9 });
        let ended = |reason| RunRecord {
            status: Status::Aborted,
            end_reason: Some(reason),
            driver: None,
            detached_since: None,
            ..run()
        };
        let undriven = RunRecord { driver: None, ..run() };
        let detached = RunRecord { detached_since: Some(7), ..run() };
        let taken = RunRecord { driver: driver("b"), driver_epoch: 2, ..run() };
        let cancel = Some(Cancel { reason: CancelReason::Ttl, at: 1 });
        let end = |reason| Change::Ended { status: Status::Aborted, reason: Some(reason) };
        for (before, after, expected) in [
            (run(), run(), vec![]),
            (run(), RunRecord { driver: driver("a"), tail: 9, ..run() }, vec![]),
            (RunRecord { phase: Phase::Launching, ..run() }, run(), vec![Change::Launched]),
            (run(), undriven.clone(), vec![Change::Undriven]),
            (undriven, taken.clone(), vec![Change::TakenOver { owner: "b".parse().expect("id"), epoch: 2 }]),
            (run(), taken, vec![Change::TakenOver { owner: "b".parse().expect("id"), epoch: 2 }]),
            (run(), detached.clone(), vec![Change::Detached { since: 7 }]),
            (detached.clone(), run(), vec![Change::Attached]),
            (
                detached,
                RunRecord { cancel_requested: cancel, ..ended(EndReason::Expired) },
                vec![
                    Change::CancelRequested { reason: CancelReason::Ttl },
                    Change::Expired,
                    end(EndReason::Expired),
                ],
            ),
            (run(), ended(EndReason::Cancelled), vec![end(EndReason::Cancelled)]),
            (ended(EndReason::Cancelled), ended(EndReason::Cancelled), vec![]),
        ] {
            assert_eq!(changes(&before, &after), expected);
        }
    }

    #[test]
    fn on_the_wire() {
        let text = |change: Change| serde_json::to_string(&change).expect("json");
        assert_eq!(text(Change::Detached { since: 7 }), r#"{"change":"detached","since":7}"#);
        assert_eq!(
            text(Change::TakenOver { owner: "b".parse().expect("id"), epoch: 2 }),
            r#"{"change":"taken-over","owner":"b","epoch":2}"#
        );
    }
}
