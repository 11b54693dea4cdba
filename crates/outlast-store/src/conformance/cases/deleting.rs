//! The end of sessions.

use std::time::Duration;

use outlast_core::Tenant;
use outlast_core::decide::{AcceptRefusal, DeleteRefusal, RecordsRefusal, SessionState};

use super::ledger::{checkpoint, head, read, records, turn};
use crate::conformance::world::{Host, World, run_id, thread_id};
use crate::{AcceptError, AppendRecords, DeleteError, ListSessions, RecordsError, SessionHead, SessionName};

const HOUR: Duration = Duration::from_secs(3600);

async fn begin(host: &Host, thread: &str, idle: Option<Duration>) -> Result<SessionHead, DeleteError> {
    host.store.begin_delete(&host.tenant, &SessionName::Thread(thread_id(thread)), idle).await
}

async fn listed(host: &Host, state: SessionState) -> usize {
    let query = ListSessions { states: vec![state], limit: 9, ..ListSessions::default() };
    host.store.list_sessions(&query).await.expect("listed").len()
}

/// From the beginning of the deletion on, nothing is added and no run is accepted; after its end that stays so.
pub async fn nothing_begins_again(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    turn(&a, "r", "t").await;
    turn(&a, "other", "kept").await;
    let session = head(&a, "t").await.session_id;
    assert_eq!(begin(&a, "t", None).await.expect("begun").state, SessionState::Deleting);
    let refused = async || {
        let accepted = b.store.accept(b.request("new", "t")).await;
        let Err(AcceptError::Refused(AcceptRefusal::ThreadDeleted { .. })) = accepted else {
            panic!("{accepted:?}");
        };
        for create in [false, true] {
            let wanted = AppendRecords { create, ..records(&b, "t", vec![checkpoint("c", 1)]) };
            let added = b.store.append_records(wanted).await;
            let Err(RecordsError::Refused(RecordsRefusal::SessionDeleted(_))) = added else {
                panic!("{added:?}");
            };
        }
    };
    refused().await;
    begin(&b, "t", None).await.expect("again");
    assert_eq!((listed(&a, SessionState::Deleting).await, listed(&a, SessionState::Active).await), (1, 1));
    while a.store.delete_rows(&session, 500).await.expect("swept").more {}
    assert_eq!(read(&a, &session).await, []);
    a.store.end_delete(&session).await.expect("ended");
    refused().await;
    let gone = head(&a, "t").await;
    assert_eq!((gone.state, gone.session_id, gone.fold), (SessionState::Deleted, session.clone(), None));
    assert!(gone.deleted_at.is_some());
    assert_eq!(a.store.run(&a.tenant, &run_id("r")).await.expect("answered"), None);
    let page = a.store.thread_messages(&a.tenant, &thread_id("t"), None, 9).await.expect("answered");
    assert_eq!(page.messages, []);
    assert_eq!(begin(&b, "t", None).await.expect("again").state, SessionState::Deleted);
    assert_eq!(head(&a, "kept").await.tip, 4);
    assert_eq!(a.log("other").await.len(), 3);
    // The id of the run is free, on another thread.
    a.accept("r", "another").await;
}

/// Rows go in steps, and only those of the session.
pub async fn in_small_steps(world: World) {
    let a = world.host("a").await;
    for n in 0..5 {
        let run = format!("r{n}");
        let token = a.accept(&run, "t").await.token;
        a.append(&token, 1, &["x"; 7]).await.expect("written");
        a.complete(&token, 8).await.expect("ended");
    }
    turn(&a, "other", "kept").await;
    let session = head(&a, "t").await.session_id;
    assert_eq!(a.store.delete_rows(&session, 500).await.expect("swept").rows, 0, "it is not being deleted");
    begin(&a, "t", None).await.expect("begun");
    let (mut runs, mut steps) = (0, 0);
    loop {
        let swept = a.store.delete_rows(&session, 10).await.expect("swept");
        assert!(swept.rows <= 30, "{swept:?}");
        runs += swept.runs;
        steps += 1;
        assert!(steps < 50);
        if !swept.more {
            break;
        }
    }
    assert!(runs == 5 && steps > 3, "{runs} {steps}");
    assert_eq!(read(&a, &session).await, []);
    assert_eq!((head(&a, "kept").await.tip, a.log("other").await.len()), (4, 3));
}

/// A session with a live run is not deleted, nor one that was used since it was found to be old; nor another tenant's.
pub async fn not_what_lives_or_was_used(world: World) {
    let a = world.host("a").await;
    let refused = begin(&a, "t", None).await;
    assert!(matches!(refused, Err(DeleteError::Refused(DeleteRefusal::SessionNotFound(_)))), "{refused:?}");
    let token = a.accept("r", "t").await.token;
    let refused = begin(&a, "t", None).await;
    let Err(DeleteError::Refused(DeleteRefusal::Live { run_id: live, .. })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(live, run_id("r"));
    a.complete(&token, 1).await.expect("ended");
    world.pass(HOUR - Duration::from_millis(1)).await;
    let refused = begin(&a, "t", Some(HOUR)).await;
    assert!(matches!(refused, Err(DeleteError::Refused(DeleteRefusal::Used(_)))), "{refused:?}");
    assert_eq!(head(&a, "t").await.state, SessionState::Active);
    let yours = Host { tenant: Tenant("you".to_owned()), ..a.clone() };
    assert!(begin(&yours, "t", None).await.is_err());
    world.pass(Duration::from_millis(1)).await;
    begin(&a, "t", Some(HOUR)).await.expect("begun");
}
