//! Instances: bound to runs, never used again, never destroyed under a run.

use outlast_core::Seq;
use outlast_core::decide::ReclaimRefusal;
use outlast_core::run::{Phase, Purpose};

use crate::InstanceState::{Creating, Destroying, Gone, Live};
use crate::conformance::world::{Host, World, all_at_once, instance, instance_id, run_id};
use crate::{Instance, InstanceError, ReclaimEnd, ReclaimError, StoreError};

async fn made(host: &Host, id: &str) {
    host.store.instance_created(&instance_id(id)).await.expect("it is there");
}

async fn destroy(host: &Host, id: &str) -> Result<Instance, ReclaimError> {
    host.store.begin_reclaim(&host.reclaim(id, true)).await
}

async fn gone(host: &Host, id: &str) {
    host.store.end_reclaim(&instance_id(id), &host.owner, &ReclaimEnd::Gone).await.expect("written");
}

async fn get(host: &Host, id: &str) -> Option<Instance> {
    host.store.instance(&instance_id(id)).await.expect("answered")
}

/// The intent and the binding of the run are one write; the same again is harmless.
pub async fn creating_binds_the_run(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    assert_eq!(get(&a, "i").await, None);
    let wanted = instance("i", "key", Some("here"), 42);
    a.store.create_instance(&token, &wanted).await.expect("made");
    assert_eq!(get(&a, "i").await, Some(wanted.clone()));
    let record = a.record("r").await;
    assert_eq!((record.phase, record.instance_id), (Phase::Launching, Some(instance_id("i"))));
    assert_eq!((record.sandbox_key.as_deref(), record.machine.as_deref()), (Some("key"), Some("here")));
    made(&a, "i").await;
    let before = a.snapshot("r").await;
    a.store.create_instance(&token, &wanted).await.expect("known");
    assert_eq!(a.snapshot("r").await, before);
    assert_eq!(get(&a, "i").await.expect("there").state, Live);
}

/// A run is bound to an instance that there is, and to none that is being destroyed or is gone.
pub async fn using_binds_the_run(world: World) {
    let a = world.host("a").await;
    let first = a.accept("r1", "t").await.token;
    a.store.create_instance(&first, &instance("i", "key", Some("here"), 1)).await.expect("made");
    made(&a, "i").await;
    a.complete(&first, 1).await.expect("ended");

    let second = a.accept("r2", "t").await.token;
    let missing = a.store.use_instance(&second, &instance_id("none")).await;
    assert!(matches!(missing, Err(InstanceError::NotFound(_))), "{missing:?}");
    a.store.use_instance(&second, &instance_id("i")).await.expect("bound");
    a.store.use_instance(&second, &instance_id("i")).await.expect("bound already");
    let record = a.record("r2").await;
    assert_eq!((record.phase, record.instance_id), (Phase::Launching, Some(instance_id("i"))));
    assert_eq!((record.sandbox_key.as_deref(), record.machine.as_deref()), (Some("key"), Some("here")));
    a.complete(&second, 1).await.expect("ended");

    let third = a.accept("r3", "t").await.token;
    destroy(&a, "i").await.expect("begun");
    for _ in 0..2 {
        let refused = a.store.use_instance(&third, &instance_id("i")).await;
        assert!(matches!(refused, Err(InstanceError::Destroying(_))), "{refused:?}");
        gone(&a, "i").await;
    }
    let record = a.record("r3").await;
    assert_eq!((record.phase, record.instance_id), (Phase::Accepted, None));
}

/// An id that was used is refused for another instance, also after that one is gone.
pub async fn ids_are_never_used_again(world: World) {
    let a = world.host("a").await;
    let first = a.accept("r1", "t1").await.token;
    a.store.create_instance(&first, &instance("i", "key", None, 1)).await.expect("made");
    let second = a.accept("r2", "t2").await.token;
    for _ in 0..2 {
        let refused = a.store.create_instance(&second, &instance("i", "key2", None, 2)).await;
        assert!(matches!(refused, Err(InstanceError::Store(StoreError::Unusable { .. }))), "{refused:?}");
        assert_eq!(a.record("r2").await.phase, Phase::Accepted);
        if get(&a, "i").await.expect("there").state != Gone {
            a.complete(&first, 1).await.expect("ended");
            destroy(&a, "i").await.expect("begun");
            gone(&a, "i").await;
        }
    }
    assert_eq!(get(&a, "i").await.expect("there").sandbox_key, "key");
}

/// States only go forward; the same state again is harmless.
pub async fn never_back(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    a.store.create_instance(&token, &instance("i", "key", None, 1)).await.expect("made");
    a.complete(&token, 1).await.expect("ended");
    let state = async || get(&a, "i").await.expect("there").state;
    gone(&a, "i").await;
    assert_eq!(state().await, Creating, "what nobody has begun to destroy is not gone");
    for _ in 0..2 {
        made(&a, "i").await;
        assert_eq!(state().await, Live);
    }
    for _ in 0..2 {
        assert_eq!(destroy(&a, "i").await.expect("begun").state, Destroying);
    }
    let created = || async { a.store.instance_created(&instance_id("i")).await };
    assert!(matches!(created().await, Err(InstanceError::Destroying(_))));
    for _ in 0..2 {
        gone(&a, "i").await;
        assert_eq!(state().await, Gone);
    }
    assert!(matches!(created().await, Err(InstanceError::Destroying(_))));
    assert!(matches!(destroy(&a, "i").await, Err(ReclaimError::Refused(ReclaimRefusal::Gone))));
    assert_eq!(state().await, Gone);
    let missing = a.store.instance_created(&instance_id("none")).await;
    assert!(matches!(missing, Err(InstanceError::NotFound(_))));
    assert!(matches!(destroy(&a, "none").await, Err(ReclaimError::NotFound(_))));
}

/// An instance is not destroyed while a live run is bound to it, whoever wants it to be.
pub async fn not_destroyed_while_used(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let first = a.accept("r1", "t1").await.token;
    a.store.create_instance(&first, &instance("i", "key", None, 1)).await.expect("made");
    let second = a.accept("r2", "t2").await.token;
    a.store.use_instance(&second, &instance_id("i")).await.expect("bound");
    made(&a, "i").await;
    a.complete(&first, 1).await.expect("ended");
    match destroy(&b, "i").await {
        Err(ReclaimError::Refused(ReclaimRefusal::InUse(run))) => assert_eq!(run, run_id("r2")),
        other => panic!("{other:?}"),
    }
    assert_eq!(get(&a, "i").await.expect("there").state, Live);
    // A claim that lapsed does not end a run.
    world.pass(std::time::Duration::from_secs(3600)).await;
    assert!(destroy(&b, "i").await.is_err());
    let current = b.claim("r2", Purpose::Drive).await.expect("granted").token;
    b.complete(&current, 1).await.expect("ended");
    destroy(&b, "i").await.expect("nobody uses it");
}

/// Found is the newest that is usable, on this machine or on any.
pub async fn found_by_key_and_machine(world: World) {
    let a = world.host("a").await;
    let find = |key: &'static str, machine: Option<&'static str>| {
        let a = a.clone();
        async move {
            let found = a.store.find_instance(key, machine).await.expect("answered");
            found.map(|instance| instance.instance_id.as_str().to_owned())
        }
    };
    for (id, key, machine, at) in [
        ("old", "key", Some("here"), 1),
        ("new", "key", Some("here"), 3),
        ("mid", "key", Some("here"), 2),
        ("there", "key", Some("there"), 9),
        ("other", "key2", Some("here"), 9),
        ("remote", "key3", None, 9),
    ] {
        let token = a.accept(id, id).await.token;
        a.store.create_instance(&token, &instance(id, key, machine, at)).await.expect("made");
        a.complete(&token, 1).await.expect("ended");
    }
    assert_eq!(find("key", Some("here")).await.as_deref(), Some("new"));
    assert_eq!(find("key", Some("there")).await.as_deref(), Some("there"));
    assert_eq!(find("key", Some("nowhere")).await, None);
    assert_eq!(find("key3", Some("here")).await.as_deref(), Some("remote"));
    assert_eq!(find("key3", None).await.as_deref(), Some("remote"));
    assert_eq!(find("key", None).await, None);
    made(&a, "mid").await;
    destroy(&a, "new").await.expect("begun");
    assert_eq!(find("key", Some("here")).await.as_deref(), Some("mid"));
    destroy(&a, "mid").await.expect("begun");
    gone(&a, "mid").await;
    assert_eq!(find("key", Some("here")).await.as_deref(), Some("old"));
}

/// The agent of a launched run is where it was launched: it is not bound elsewhere, and its phase does not go back.
pub async fn a_launched_run_stays_where_it_is(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    a.store.create_instance(&token, &instance("i", "key", None, 1)).await.expect("made");
    a.store.launched(&token, Seq(1), vec![]).await.expect("written");
    a.store.use_instance(&token, &instance_id("i")).await.expect("it is there already");
    assert_eq!(a.record("r").await.phase, Phase::Launched);
    let refused = a.store.create_instance(&token, &instance("i2", "key", None, 1)).await;
    assert!(matches!(refused, Err(InstanceError::Store(StoreError::Unusable { .. }))), "{refused:?}");
    assert_eq!(a.record("r").await.instance_id, Some(instance_id("i")));
    assert_eq!(get(&a, "i2").await, None);
}

/// Of a run that is to use an instance and somebody who is to destroy it, at once, one is first and the other is told.
pub async fn racing_to_use_and_to_destroy(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for round in 0..20 {
        let (id, user) = (format!("i{round}"), format!("user{round}"));
        let first = a.accept(&id, &id).await.token;
        a.store.create_instance(&first, &instance(&id, "key", None, 1)).await.expect("made");
        made(&a, &id).await;
        a.complete(&first, 1).await.expect("ended");
        let token = a.accept(&user, &user).await.token;
        let using = tokio::spawn({
            let (a, id) = (a.clone(), instance_id(&id));
            async move { a.store.use_instance(&token, &id).await }
        });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        let destroying = destroy(&b, &id).await;
        let using = using.await.expect("it ends");
        let bound = a.record(&user).await.instance_id == Some(instance_id(&id));
        match (&using, &destroying) {
            (Ok(()), Err(ReclaimError::Refused(ReclaimRefusal::InUse(run)))) => {
                assert!(bound && *run == run_id(&user));
            }
            (Err(InstanceError::Destroying(_)), Ok(_)) => assert!(!bound),
            other => panic!("two winners or none: {other:?}"),
        }
    }
}

/// Of several runs that are to make an instance of one id, at once, one does.
pub async fn racing_to_create(world: World) {
    let hosts = [world.host("a").await, world.host("b").await];
    for round in 0..5 {
        let mut runs = Vec::new();
        for n in 0..8 {
            let run = format!("r{round}-{n}");
            runs.push((hosts[n % 2].clone(), hosts[n % 2].accept(&run, &run).await.token, run));
        }
        let wanted = instance(&format!("i{round}"), "key", None, 1);
        let answers = all_at_once(runs.iter().map(|(host, token, _)| {
            let (host, token, wanted) = (host.clone(), token.clone(), wanted.clone());
            async move { host.store.create_instance(&token, &wanted).await.is_ok() }
        }))
        .await;
        assert_eq!(answers.iter().filter(|made| **made).count(), 1);
        for ((host, _, run), made) in runs.iter().zip(answers) {
            assert_eq!(host.record(run).await.phase == Phase::Launching, made);
        }
    }
}
