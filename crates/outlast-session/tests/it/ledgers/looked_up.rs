//! Finding sessions, and the snapshots that they name.

use outlast_core::WorkspaceRef;
use outlast_core::ledger::{Record, WorkspaceRestored};
use outlast_store::{NewRecord, SessionName};

use super::world::{World, checkpoint, message, run, run_id, thread};

fn reference(content: u8) -> WorkspaceRef {
    WorkspaceRef::from_digest([content; 32])
}

fn restored(id: &str, content: u8) -> NewRecord {
    let record = Record::WorkspaceRestored(WorkspaceRestored { reference: reference(content), run_id: None });
    NewRecord::new(id, record)
}

async fn some() -> World {
    let world = World::new();
    let records = vec![
        message("w", 1, "small"),
        checkpoint("one", 1, Some("r1")),
        checkpoint("two", 2, Some("r1")),
        restored("three", 3),
        checkpoint("four", 1, None),
    ];
    world.add("t", records).await;
    world.add("other", vec![checkpoint("five", 5, None)]).await;
    world
}

#[test]
fn a_session_is_found_by_thread_and_by_id() {
    run(async {
        let world = some().await;
        let found = |name: &str| {
            let name = name.to_owned();
            let world = &world;
            async move { world.sessions.find(&world.tenant, &name).await.unwrap() }
        };
        let id = world.id("t");
        assert_eq!(found("t").await.unwrap().session_id, id);
        assert_eq!(found(id.as_str()).await.unwrap().thread_id, thread("t"));
        assert_eq!(found("nobody").await, None);
        assert_eq!(found("").await, None);
        assert_eq!(found(world.id("nobody").as_str()).await, None);
        // A thread may be called as the id of another one's session; the thread is meant.
        world.add(id.as_str(), vec![message("x", 1, "mine")]).await;
        assert_eq!(found(id.as_str()).await.unwrap().thread_id, thread(id.as_str()));
        let other = outlast_core::Tenant("somebody".to_owned());
        assert_eq!(world.sessions.find(&other, "t").await.unwrap(), None);
        world.sessions.delete(&world.tenant, &SessionName::Id(id.clone()), None).await.unwrap();
        assert!(found("t").await.unwrap().deleted_at.is_some(), "so that its deletion can be told");
    });
}

#[test]
fn every_named_snapshot_is_live() {
    run(async {
        let world = some().await;
        let both = [world.id("t"), world.id("other")];
        let live = world.sessions.workspace_live_refs(&both).await.unwrap();
        assert_eq!(live.into_iter().collect::<Vec<_>>(), [1, 2, 3, 5].map(reference));
        let one = world.sessions.workspace_live_refs(&both[1..]).await.unwrap();
        assert_eq!(one.into_iter().collect::<Vec<_>>(), [reference(5)]);
        let mut retained = world.sessions.retained_sessions().await.unwrap();
        retained.sort();
        let mut expected = both.to_vec();
        expected.sort();
        assert_eq!(retained, expected);
        assert!(world.sessions.workspace_live_refs(&[]).await.unwrap().is_empty());
    });
}

#[test]
fn an_incomplete_scan_is_an_error_and_no_set() {
    run(async {
        let world = some().await;
        let both = [world.id("t"), world.id("other")];
        let unknown = [world.id("t"), world.id("nobody")];
        let failed = world.sessions.workspace_live_refs(&unknown).await.unwrap_err();
        assert_eq!(failed.session_id, world.id("nobody").to_string());
        type Alter = fn(&mut outlast_store::StoredRecord);
        let damages: [Alter; 3] = [
            |record| record.body = record.body.replace("manual", "idle"),
            |record| record.sum.clear(),
            |record| {
                record.body = "{}".to_owned();
                record.sum = outlast_core::ledger::checksum(&record.kind, &record.id, &record.body);
            },
        ];
        for damage in damages {
            world.trouble.alter_records(move |record| {
                if record.id == "five" {
                    damage(record);
                }
            });
            let failed = world.sessions.workspace_live_refs(&both).await.unwrap_err();
            assert_eq!(failed.session_id, world.id("other").to_string(), "{failed}");
            let failed = world.sessions.workspace_checkpoint_by_seq(&world.id("other"), 1).await;
            assert!(failed.is_err(), "{failed:?}");
            world.trouble.heal();
        }
        world.trouble.fail_on("read_records");
        assert!(world.sessions.workspace_live_refs(&both).await.is_err());
        assert!(world.sessions.workspace_checkpoint_by_seq(&both[0], 2).await.is_err());
        assert!(world.sessions.workspace_checkpoint_by_turn(&both[0], &run_id("r1")).await.is_err());
        world.trouble.heal();
        world.trouble.fail_on("list_sessions");
        assert!(world.sessions.retained_sessions().await.is_err());
    });
}

#[test]
fn a_snapshot_by_its_number() {
    run(async {
        let world = some().await;
        let by_seq = |seq| {
            let world = &world;
            async move { world.sessions.workspace_checkpoint_by_seq(&world.id("t"), seq).await.unwrap() }
        };
        let two = by_seq(3).await.unwrap();
        assert_eq!((two.seq, two.reference, two.run_id), (3, reference(2), Some(run_id("r1"))));
        for (seq, why) in [(0, "there is none"), (1, "a message"), (4, "a restore"), (6, "beyond the end")] {
            assert_eq!(by_seq(seq).await, None, "{why}");
        }
    });
}

#[test]
fn a_snapshot_by_its_turn() {
    run(async {
        let world = some().await;
        let by_turn = |run: &str| {
            let (world, run) = (&world, run_id(run));
            async move { world.sessions.workspace_checkpoint_by_turn(&world.id("t"), &run).await.unwrap() }
        };
        assert_eq!(by_turn("r1").await.unwrap().seq, 3, "the latest");
        assert_eq!(by_turn("r2").await, None);
        let all = world.sessions.workspace_checkpoints(&world.id("t")).await.unwrap();
        assert_eq!(all.iter().map(|made| made.seq).collect::<Vec<_>>(), [2, 3, 5]);
    });
}
