//! What belongs to one tenant does not exist for another.

use outlast_core::run::CancelReason;
use outlast_core::transcript::Role;
use outlast_core::{Seq, Tenant};

use crate::conformance::world::{Host, World, run_id, said, thread_id};
use crate::{Accept, CancelOutcome, ListRuns, NewMessage, ReadError};

/// Same threads, other runs; whoever names another tenant's run finds nothing and changes nothing.
pub async fn see_nothing_of_each_other(world: World) {
    let mine = world.host("a").await;
    let yours = Host { tenant: Tenant("you".to_owned()), ..mine.clone() };
    for (host, run) in [(&mine, "mine"), (&yours, "yours")] {
        let messages = NewMessage::input(vec![said("u", Role::User, run)]);
        host.accept_with(Accept { messages, ..host.request(run, "t") }).await;
    }
    let before = mine.snapshot("mine").await;
    let store = &yours.store;
    let (tenant, run, thread) = (&yours.tenant, run_id("mine"), thread_id("t"));
    assert_eq!(store.run(tenant, &run).await.expect("answered"), None);
    let read = store.read(tenant, &run, Seq(0), 1, 1).await;
    assert!(matches!(read, Err(ReadError::RunNotFound(_))), "{read:?}");
    let outcome = store.request_cancel(tenant, &run, CancelReason::User, None).await.expect("answered");
    assert!(matches!(outcome, CancelOutcome::NotFound), "{outcome:?}");
    assert_eq!(store.run_messages(tenant, &run).await.expect("answered"), []);
    let messages = store.thread_messages(tenant, &thread, None, usize::MAX).await.expect("answered").messages;
    assert!(messages.iter().all(|row| row.run_id == run_id("yours")) && messages.len() == 1);
    let active = store.find_active_run(tenant, &thread).await.expect("answered").expect("there is one");
    assert_eq!(active.run_id, run_id("yours"));
    let query = ListRuns { tenant: tenant.clone(), limit: 10, ..ListRuns::default() };
    let listed = store.list_runs(&query).await.expect("listed");
    assert!(listed.len() == 1 && listed[0].run_id == run_id("yours"));
    assert_eq!(mine.snapshot("mine").await, before);
}

/// All stores of a backend are one deployment, with a UUID that stays.
pub async fn one_deployment(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let id = a.store.deployment_id().await.expect("answered");
    assert_eq!(b.store.deployment_id().await.expect("answered"), id);
    let groups: Vec<_> = id.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12]);
    assert!(id.chars().all(|c| c == '-' || c.is_ascii_hexdigit()) && id.as_bytes()[14] == b'4', "{id}");
    a.store.close().await;
    b.store.close().await;
    assert_eq!(world.host("c").await.store.deployment_id().await.expect("answered"), id);
}
