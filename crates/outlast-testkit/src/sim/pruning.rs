//! The sweep through the runs directories: what it deletes, what it keeps and why, and that nothing stops it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_core::decide::KeepReason;
use outlast_core::run::{LaunchSpec, OnDisconnect, SandboxSpec};
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_runtime::{PruneOptions, PruneResult, PruneStage, Start};
use outlast_sandbox::AgeGate;
use outlast_store::{Instances, ListInstances};

use super::agent::Script;
use super::hosts::SimHost;
use super::plan::Plan;
use super::sandboxes::Oddities;
use super::world::World;

const HOUR: u64 = 3_600_000;

fn run(id: &str) -> RunId {
    RunId::new(id).expect("id")
}

/// A world with one host, in which nothing goes wrong, two hours old.
struct Scene {
    world: World,
    host: Arc<SimHost>,
}

impl Scene {
    async fn new() -> Scene {
        let world =
            World::new(7, Plan { fail: 1000, lose: 0, delay: 0, sandbox_fail: 1000, ..Plan::default() });
        world.trouble.store(false, Ordering::Relaxed);
        let host = SimHost::new(&world, "h".to_owned());
        // It would prune and sweep by itself.
        host.stop_jobs();
        world.time.sleep(Duration::from_secs(7200)).await;
        Scene { world, host }
    }

    /// A run of this many lines, one a second. All runs share one sandbox.
    async fn start(&self, id: &str, lines: u64) {
        self.world.sandboxes.script(&run(id), Script { lines, every: 1000, exit: 0, stubborn: false });
        let sandbox = SandboxSpec { provider: "simulated".to_owned(), ..SandboxSpec::default() };
        let start = Start {
            run_id: run(id),
            thread_id: ThreadId::new("t").expect("id"),
            thread_chosen: true,
            spec: LaunchSpec::command(vec!["agent".to_owned()], sandbox),
            detached_ttl: None,
            on_disconnect: OnDisconnect::Detach,
            messages: None,
            request: None,
        };
        self.host.keep(self.host.host.start(start).await.expect("started"));
    }

    async fn ended(&self, ids: &[&str]) {
        for id in ids {
            self.start(id, 1).await;
            while !self.host.host.run(&run(id)).await.expect("read").expect("a run").status.is_terminal() {
                self.world.time.sleep(Duration::from_secs(1)).await;
            }
        }
    }

    fn odd(&self, change: impl FnOnce(&mut Oddities)) {
        self.world.sandboxes.make_odd(change);
    }

    /// Files of a run that the store does not know, written so long ago.
    fn orphan(&self, names: &[(&str, Option<u64>)]) {
        let now = self.world.time.now();
        self.odd(|odd| {
            let stray =
                |(name, age): &(&str, Option<u64>)| (name.as_bytes().to_vec(), age.map(|age| now - age));
            odd.strays.extend(names.iter().map(stray));
        });
    }

    async fn prune(&self, options: &PruneOptions) -> PruneResult {
        self.host.host.prune_journals(options).await
    }
}

fn told(result: &PruneResult) -> (Vec<&str>, Vec<(&str, KeepReason)>) {
    let deleted = result.deleted.iter().map(RunId::as_str).collect();
    let kept = result.kept.iter().map(|kept| {
        assert_eq!(kept.run_id.is_none(), kept.reason == KeepReason::UndecodableName);
        (kept.run_id.as_ref().map_or(kept.names[0].as_str(), RunId::as_str), kept.reason)
    });
    (deleted, kept.collect())
}

fn simulated<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("runtime");
    runtime.block_on(work)
}

/// Every reason to keep something, beside a deletion in the same sweep.
#[test]
fn each_reason_beside_a_deletion() {
    simulated(async {
        let default = PruneOptions::default();
        let mut seen = BTreeSet::new();
        let mut check = |result: &PruneResult, deleted: &[&str], kept: &[(&str, KeepReason)]| {
            assert_eq!(told(result), (deleted.to_vec(), kept.to_vec()), "{result:?}");
            assert!(!deleted.is_empty());
            seen.extend(kept.iter().map(|(_, reason)| *reason));
        };

        let scene = Scene::new().await;
        scene.ended(&["done"]).await;
        scene.orphan(&[("_zz.ndjson", Some(2 * HOUR)), ("done.ndjson~", None)]);
        let result = scene.prune(&default).await;
        let reason = KeepReason::UndecodableName;
        check(&result, &["done"], &[("_zz.ndjson", reason), ("done.ndjson~", reason)]);
        assert_eq!((result.listed, result.run_ids.as_slice()), (9, &[run("done")][..]));
        assert_eq!((result.age_gate, result.failures.len()), (AgeGate::Available, 0));

        let scene = Scene::new().await;
        scene.ended(&["a", "b", "c"]).await;
        let one = PruneOptions { max_deletes: 1, ..default.clone() };
        let dry = scene.prune(&PruneOptions { dry_run: true, ..one.clone() }).await;
        let reason = KeepReason::MaxDeletes;
        let result = scene.prune(&one).await;
        assert_eq!(dry, result);
        check(&result, &["a"], &[("b", reason), ("c", reason)]);
        check(&scene.prune(&one).await, &["b"], &[("c", reason)]);
        check(&scene.prune(&one).await, &["c"], &[]);

        let scene = Scene::new().await;
        scene.ended(&["a", "b"]).await;
        scene.world.broken_lookups.lock().expect("lock").insert(run("a"));
        let result = scene.prune(&default).await;
        check(&result, &["b"], &[("a", KeepReason::StoreError)]);
        let failure = &result.failures[0];
        assert_eq!((failure.stage, failure.run_id.as_ref()), (PruneStage::Store, Some(&run("a"))));

        let scene = Scene::new().await;
        scene.ended(&["done"]).await;
        scene.orphan(&[
            ("old.ndjson", Some(2 * HOUR)),
            ("partly.err", Some(2 * HOUR)),
            ("partly.exit", None),
        ]);
        scene.orphan(&[("young.err", Some(2 * HOUR)), ("young.exit", Some(HOUR / 2))]);
        scene.odd(|odd| odd.strays.push((b"ahead.err".to_vec(), Some(u64::MAX))));
        scene.odd(|odd| odd.ageless = true);
        let result = scene.prune(&default).await;
        let reason = KeepReason::AgeGateUnavailable;
        check(
            &result,
            &["done"],
            &[("ahead", reason), ("old", reason), ("partly", reason), ("young", reason)],
        );
        assert_eq!((result.age_gate, result.failures.len()), (AgeGate::Unavailable, 0));
        scene.odd(|odd| odd.ageless = false);
        let recent = KeepReason::OrphanTooRecent;
        let kept = [("ahead", recent), ("partly", KeepReason::AgeGateMissingEntry), ("young", recent)];
        check(&scene.prune(&default).await, &["old"], &kept);

        let scene = Scene::new().await;
        scene.ended(&["done"]).await;
        scene.start("live", 500).await;
        scene.world.time.sleep(Duration::from_secs(100)).await;
        let dry = scene.prune(&PruneOptions { dry_run: true, ..default.clone() }).await;
        let result = scene.prune(&default).await;
        assert_eq!(dry, result);
        check(&result, &["done"], &[("live", KeepReason::NonTerminal)]);

        let scene = Scene::new().await;
        scene.ended(&["a", "b", "c"]).await;
        scene.odd(|odd| {
            odd.readers.insert(run("a"));
            odd.stuck.insert(run("b"));
        });
        let result = scene.prune(&default).await;
        check(&result, &["c"], &[("a", KeepReason::BeingRead), ("b", KeepReason::DeleteFailed)]);
        assert_eq!((result.failures.len(), result.failures[0].stage), (1, PruneStage::Delete));

        // The store's clock decides, not this host's, which is up to an hour off.
        let scene = Scene::new().await;
        scene.ended(&["first"]).await;
        scene.world.time.sleep(Duration::from_secs(100)).await;
        scene.ended(&["second"]).await;
        let keep = PruneOptions { keep_journals: Duration::from_secs(90), ..default };
        check(&scene.prune(&keep).await, &["first"], &[("second", KeepReason::Kept)]);

        // A shim that outlives its run's end, and an end without a seal, are shown with the real program.
        let elsewhere = [KeepReason::Unsealed, KeepReason::Live];
        let missing: Vec<_> = KeepReason::ALL.into_iter().filter(|reason| !seen.contains(reason)).collect();
        assert_eq!(missing, elsewhere);
    });
}

/// A run is looked for where its sandbox belongs: to whoever asks elsewhere it is unknown, and its files are an orphan's.
#[test]
fn another_tenants_runs_are_no_orphans() {
    simulated(async {
        let mut scene = Scene::new().await;
        scene.ended(&["done"]).await;
        scene.start("live", 10_000).await;
        scene.world.time.sleep(Duration::from_secs(10)).await;
        scene.world.sandboxes.lose(&run("live"));
        scene.world.tenant = Tenant("other".to_owned());
        let other = SimHost::new(&scene.world, "other".to_owned());
        other.stop_jobs();
        let any_age = PruneOptions { orphan_ttl: Duration::ZERO, ..PruneOptions::default() };
        let result = other.host.prune_journals(&any_age).await;
        assert_eq!(told(&result), (vec!["done"], vec![("live", KeepReason::NonTerminal)]));
    });
}

/// A store that answers nothing, and sandboxes that answer nothing: the sweep tells it, deletes nothing, and comes back.
#[test]
fn nothing_answers_and_the_sweep_ends() {
    simulated(async {
        for (store, sandboxes) in [(1000, 0), (0, 1000), (1000, 1000)] {
            let mut scene = Scene::new().await;
            scene.ended(&["a", "b", "c", "d", "e"]).await;
            scene.world.plan = Plan { fail: store, sandbox_fail: sandboxes, ..scene.world.plan.clone() };
            let troubled = SimHost::new(&scene.world, "troubled".to_owned());
            troubled.stop_jobs();
            scene.world.trouble.store(true, Ordering::Relaxed);
            for keep_journals in [Duration::ZERO, Duration::from_secs(1)] {
                let options = PruneOptions { keep_journals, ..PruneOptions::default() };
                let result = troubled.host.prune_journals(&options).await;
                assert_eq!((result.listed, result.deleted.len()), (0, 0), "{result:?}");
                assert!(
                    result.failures.iter().any(|failure| failure.stage == PruneStage::List),
                    "{result:?}"
                );
            }
            // The store goes away after it has told which sandboxes there are.
            let query = ListInstances { limit: 10, ..ListInstances::default() };
            let there = scene.world.store.list_instances(&query).await.expect("list");
            let result = troubled.host.prune_instance(&there[0], &PruneOptions::default()).await;
            assert!(result.deleted.is_empty() && !result.failures.is_empty(), "{result:?}");
            if sandboxes == 0 {
                assert_eq!(result.kept.len(), 5);
                assert!(result.kept.iter().all(|kept| kept.reason == KeepReason::StoreError));
                assert_eq!(result.failures.len(), 3, "what does not answer is not asked for ever");
            }
            scene.world.trouble.store(false, Ordering::Relaxed);
            let result = troubled.host.prune_journals(&PruneOptions::default()).await;
            assert_eq!((result.deleted.len(), result.failures.len()), (5, 0), "{result:?}");
        }
    });
}

/// Some calls fail, whichever: nothing goes that must stay, and in the end everything goes that may.
#[test]
fn failures_at_any_call() {
    for seed in 0..40 {
        simulated(async {
            let mut scene = Scene::new().await;
            scene.ended(&["a", "b", "c", "d"]).await;
            scene.start("live", 4000).await;
            scene.world.time.sleep(Duration::from_secs(10)).await;
            scene.orphan(&[("young.ndjson", Some(60_000)), ("strange", None)]);
            scene.world.dice = crate::dice::Dice::new(seed);
            scene.world.plan = Plan { fail: 300, lose: 100, sandbox_fail: 300, ..scene.world.plan.clone() };
            let troubled = SimHost::new(&scene.world, "troubled".to_owned());
            troubled.stop_jobs();
            scene.world.trouble.store(true, Ordering::Relaxed);
            for _ in 0..5 {
                let result = troubled.host.prune_journals(&PruneOptions::default()).await;
                for id in &result.deleted {
                    assert!(["a", "b", "c", "d"].contains(&id.as_str()), "{result:?}");
                }
                for kept in result.kept.iter().filter(|kept| kept.reason == KeepReason::DeleteFailed) {
                    let told = result.failures.iter().any(|failure| failure.run_id == kept.run_id);
                    assert!(told, "{result:?}");
                }
            }
            scene.world.trouble.store(false, Ordering::Relaxed);
            scene.prune(&PruneOptions::default()).await;
            let result = scene.prune(&PruneOptions::default()).await;
            let kept = [
                ("live", KeepReason::NonTerminal),
                ("young", KeepReason::OrphanTooRecent),
                ("strange", KeepReason::UndecodableName),
            ];
            assert_eq!(told(&result), (vec![], kept.to_vec()));
            for id in ["a", "b", "c", "d"] {
                assert!(scene.world.sandboxes.is_pruned(&run(id)), "seed {seed}: {id}");
            }
            assert!(!scene.world.sandboxes.is_pruned(&run("live")));
        });
    }
}
