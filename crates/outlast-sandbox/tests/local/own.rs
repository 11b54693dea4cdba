//! What is the local provider's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::journal::latch::{Fence, Latch, LatchState, LaunchLatch, ProcessId};
use outlast_core::shim::OutputLimits;
use outlast_core::{ExitSecret, InstanceId, RunId, encoding};
use outlast_sandbox::conformance::{Subject, census};
use outlast_sandbox::{
    KillOutcome, LaunchError, LaunchOrder, LaunchOutcome, LocalConfig, LocalProvider, Provider, ShimProgram,
    remote_listing,
};
use outlast_shim::process;
use outlast_store::{Ports, SystemClock};
use rustix::process::Signal;

use crate::subject::{Local, block_on};

type Run = fn(Arc<Local>);

/// Every case.
pub fn cases() -> Vec<(&'static str, Run)> {
    vec![
        ("own::the_machine_keeps_its_name", the_machine_keeps_its_name),
        ("own::a_shim_that_does_not_work_is_a_failure", a_shim_that_does_not_work_is_a_failure),
        ("own::a_dead_shim_is_noticed_and_its_tree_killed", a_dead_shim_is_noticed_and_its_tree_killed),
        ("own::a_shim_that_is_stopped_again_and_again", a_shim_that_is_stopped_again_and_again),
        ("own::a_shim_that_is_stopped_is_woken", a_shim_that_is_stopped_is_woken),
        ("own::another_boot_is_dead", another_boot_is_dead),
        ("own::recycled_pids_are_left_alone", recycled_pids_are_left_alone),
        ("own::another_pid_namespace_is_unverified", another_pid_namespace_is_unverified),
        ("own::a_torn_latch_started_nothing", a_torn_latch_started_nothing),
        ("own::destroying_and_launching_race", destroying_and_launching_race),
        ("own::an_interrupted_destroy_is_finished", an_interrupted_destroy_is_finished),
        ("own::a_dropped_launch_is_whole_or_nothing", a_dropped_launch_is_whole_or_nothing),
        ("own::the_secret_is_out_of_reach", the_secret_is_out_of_reach),
        ("own::the_listing_is_what_a_shell_lists", the_listing_is_what_a_shell_lists),
        ("own::an_interrupted_removal_is_finished", an_interrupted_removal_is_finished),
    ]
}

/// A run of one instance.
struct Scene {
    local: Arc<Local>,
    provider: Arc<dyn Provider>,
    instance: InstanceId,
    run: RunId,
    secret: ExitSecret,
    marker: String,
}

impl Scene {
    async fn new(local: &Arc<Local>) -> Scene {
        let entropy = local.ports().entropy;
        let (provider, instance) = (local.provider(), entropy.instance_id());
        provider.create(&instance, None).await.expect("create");
        Scene {
            local: Arc::clone(local),
            provider,
            instance,
            run: RunId::new("r/1").expect("id"),
            secret: entropy.exit_secret(),
            marker: format!("marker-{}", entropy.hex_id()),
        }
    }

    fn order(&self, script: &str) -> LaunchOrder {
        LaunchOrder {
            instance: self.instance.clone(),
            run: self.run.clone(),
            secret: self.secret.clone(),
            argv: vec!["sh".into(), "-c".into(), format!(": {}\n{script}", self.marker)],
            prompt: Some("hush".into()),
            prompt_on_stdin: true,
            fallback: None,
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            cwd: self.provider.paths(&self.instance, None).workspace,
            fence: self.local.fence(),
            limits: OutputLimits::default(),
        }
    }

    /// Launches a script that makes the file `up` when it is.
    async fn launch(&self, script: &str) -> LaunchLatch {
        let launched = self.provider.launch(self.order(script)).await.expect("launch");
        assert_eq!(launched, LaunchOutcome::Taken);
        let up = self.provider.paths(&self.instance, None).workspace.join("up");
        self.until("the agent", || up.exists()).await;
        match self.provider.facts(&self.instance, &self.run, &self.secret).await.expect("facts").latch {
            LatchState::Taken(Latch::Launch(launch)) => launch,
            other => panic!("not launched: {other:?}"),
        }
    }

    async fn kill(&self) -> KillOutcome {
        self.provider.kill(&self.instance, &self.run, Duration::from_secs(5)).await.expect("kill")
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let clock = self.local.ports().clock;
        let deadline = clock.boot_ms() + 30_000;
        while !holds() {
            assert!(clock.boot_ms() < deadline, "waited in vain: {what}");
            clock.sleep(Duration::from_millis(5)).await;
        }
    }

    fn instance_dir(&self) -> std::path::PathBuf {
        self.local.root.path().join("sandboxes").join(encoding::encode(self.instance.as_str()))
    }

    fn write_latch(&self, bytes: &[u8]) {
        let path = self.instance_dir().join("runs").join(format!("{}.start", self.run.encoded()));
        std::fs::write(path, bytes).expect("latch");
    }
}

fn the_machine_keeps_its_name(local: Arc<Local>) {
    let (first, second) = (local.provider(), local.provider());
    assert!(first.machine().is_some_and(|name| name.len() == 32));
    assert_eq!(first.machine(), second.machine());
}

fn a_shim_that_does_not_work_is_a_failure(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        for (program, args, cause) in [
            ("/no/such/program", vec![], "/no/such/program"),
            ("true", vec![], "without a report"),
            ("sh", vec!["-c", "echo nonsense; echo cannot load >&2"], "cannot load"),
        ] {
            let shim = ShimProgram { program: program.into(), args: args.iter().map(Into::into).collect() };
            let root = local.root.path().join("sandboxes");
            let provider =
                LocalProvider::new(LocalConfig { root, shim, ports: local.ports() }).expect("provider");
            match provider.launch(scene.order("true")).await {
                Err(LaunchError::Failed(message)) => assert!(message.contains(cause), "{message}"),
                other => panic!("{program}: {other:?}"),
            }
        }
    });
}

fn a_dead_shim_is_noticed_and_its_tree_killed(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        let script = format!(
            "setsid sh -c ': {}; trap \"\" TERM; while :; do sleep 1; done' & touch up; while :; do sleep 1; done",
            scene.marker
        );
        let launch = scene.launch(&script).await;
        let mut journal =
            scene.provider.journal(&scene.instance, &scene.run, &scene.secret, 0).await.expect("journal");
        // The reader waits for the death, which changes no journal.
        let clock = scene.local.ports().clock;
        let before = clock.boot_ms();
        let (facts, ()) = tokio::join!(
            async {
                loop {
                    let read = journal.read(4096, Duration::from_secs(600)).await.expect("read");
                    assert_eq!(read, outlast_sandbox::JournalRead::default());
                    let facts = scene.provider.facts(&scene.instance, &scene.run, &scene.secret).await;
                    let facts = facts.expect("facts");
                    if !facts.shim_alive {
                        break facts;
                    }
                }
            },
            async {
                clock.sleep(Duration::from_millis(50)).await;
                assert!(process::signal(launch.shim, Signal::KILL).expect("signal"));
            }
        );
        assert_eq!(facts.exit, None);
        assert!(clock.boot_ms() - before < 20_000, "a reader must not sleep through the shim's death");
        let outcome = scene.kill().await;
        if let Fence::Subreaper { .. } = launch.fence {
            // The agent itself is gone; nobody can find the other one, and that is what is said.
            assert!(matches!(outcome, KillOutcome::Unverified { .. }), "{outcome:?}");
            let left = || census(&scene.marker);
            scene.until("the agent's own death", || left().len() == 1).await;
            let left = process::identify(left()[0]).expect("alive");
            process::signal(left, Signal::KILL).expect("kill");
        } else {
            assert_eq!(outcome, KillOutcome::Dead);
            let living = census(&scene.marker);
            assert!(living.is_empty(), "{living:?}");
        }
        if let Fence::Cgroup { path, .. } = launch.fence {
            assert!(!std::path::Path::new(&path).exists(), "nobody else removes it");
        }
        // A dead shim's sandbox can be destroyed.
        scene.provider.destroy(&scene.instance).await.expect("destroy");
    });
}

fn a_shim_that_is_stopped_again_and_again(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        let script = format!(
            "setsid sh -c ': {}; while :; do sleep 1; done' & touch up; while :; do sleep 1; done",
            scene.marker
        );
        let launch = scene.launch(&script).await;
        let shim = launch.shim;
        let over = Arc::new(AtomicBool::new(false));
        process::signal(shim, Signal::STOP).expect("stop");
        let stopper = {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) && process::signal(shim, Signal::STOP).unwrap_or(false) {}
            })
        };
        let outcome = scene.kill().await;
        over.store(true, Ordering::Relaxed);
        stopper.join().expect("stopper");
        assert_eq!(outcome, KillOutcome::Dead);
        assert!(census(&scene.marker).is_empty());
        assert!(!process::alive(shim), "a stuck shim must not keep its lock");
    });
}

fn a_shim_that_is_stopped_is_woken(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        let launch = scene.launch("touch up; while :; do sleep 1; done").await;
        process::signal(launch.shim, Signal::STOP).expect("stop");
        let (clock, before) = (local.ports().clock, local.ports().clock.boot_ms());
        assert_eq!(scene.kill().await, KillOutcome::Dead);
        assert!(clock.boot_ms() - before < 4_000);
        let facts = scene.provider.facts(&scene.instance, &scene.run, &scene.secret).await.expect("facts");
        assert_eq!(facts.exit.map(|exit| exit.exit), Some(143), "the shim itself has ended the run");
    });
}

fn another_boot_is_dead(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        scene.launch("touch up; while :; do sleep 1; done").await;
        let ports = Ports { clock: Arc::new(SystemClock::with_boot_id("another-boot")), ..local.ports() };
        let later = local.with_ports(ports);
        let facts = later.facts(&scene.instance, &scene.run, &scene.secret).await.expect("facts");
        assert!(!facts.shim_alive, "what another boot has started does not live");
        let killed = later.kill(&scene.instance, &scene.run, Duration::from_secs(5)).await.expect("kill");
        assert_eq!(killed, KillOutcome::Dead);
        assert!(!census(&scene.marker).is_empty(), "pids of another boot are never signalled");
        assert_eq!(scene.kill().await, KillOutcome::Dead);
    });
}

/// A latch that names a bystander's pid with another start time.
fn recycled_pids_are_left_alone(local: Arc<Local>) {
    block_on(async {
        let mut bystander = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let real = process::identify(bystander.id() as i32).expect("bystander");
        let recycled = ProcessId { start: real.start - 1, ..real };
        let nowhere = local.root.path().join("no-cgroup").to_str().expect("text").to_owned();
        for fence in [
            Fence::PidNamespace { init: recycled },
            Fence::Cgroup { path: nowhere, keeper: recycled },
            Fence::Subreaper { keeper: recycled },
        ] {
            let scene = Scene::new(&local).await;
            let launch = LaunchLatch {
                boot_id: local.ports().clock.boot_id(),
                pid_ns: process::pid_ns().expect("namespace"),
                shim: recycled,
                fence,
            };
            scene.write_latch(&serde_json::to_vec(&Latch::Launch(launch)).expect("json"));
            scene.kill().await;
            assert!(process::alive(real), "a recycled pid was killed");
        }
        bystander.kill().and_then(|()| bystander.wait()).expect("clean up");
    });
}

fn another_pid_namespace_is_unverified(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        let mut launch = scene.launch("touch up; while :; do sleep 1; done").await;
        let original = serde_json::to_vec(&Latch::Launch(launch.clone())).expect("json");
        launch.pid_ns += 1;
        scene.write_latch(&serde_json::to_vec(&Latch::Launch(launch)).expect("json"));
        assert!(matches!(scene.kill().await, KillOutcome::Unverified { .. }));
        assert!(!census(&scene.marker).is_empty(), "pids of another namespace are never signalled");
        scene.write_latch(&original);
        assert_eq!(scene.kill().await, KillOutcome::Dead);
    });
}

fn a_torn_latch_started_nothing(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        scene.write_latch(b"{\"latch\":\"lau");
        assert_eq!(scene.kill().await, KillOutcome::NeverStarted);
        let launched = scene.provider.launch(scene.order("touch up")).await.expect("launch");
        assert_eq!(launched, LaunchOutcome::TakenBefore);
    });
}

fn destroying_and_launching_race(local: Arc<Local>) {
    block_on(async {
        for round in 0..20_u64 {
            let scene = Scene::new(&local).await;
            let (provider, order) = (local.provider(), scene.order("touch up; while :; do sleep 1; done"));
            let launch = tokio::spawn(async move { provider.launch(order).await });
            local.ports().clock.sleep(Duration::from_micros(400 * round)).await;
            let destroyed = scene.provider.destroy(&scene.instance).await;
            let launched = launch.await.expect("task");
            let exists = scene.provider.exists(&scene.instance).await.expect("exists");
            assert_eq!(exists, destroyed.is_err(), "{destroyed:?}");
            if destroyed.is_ok() {
                assert!(matches!(launched, Err(LaunchError::SandboxGone(_))), "round {round}: {launched:?}");
                assert!(census(&scene.marker).is_empty(), "an agent without a sandbox");
            } else if let Ok(launched) = launched {
                assert_eq!(launched, LaunchOutcome::Taken);
                assert_eq!(scene.kill().await, KillOutcome::Dead);
            }
        }
    });
}

fn an_interrupted_destroy_is_finished(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        let dir = scene.instance_dir();
        let name = dir.file_name().and_then(|name| name.to_str()).expect("name");
        let trash = dir.with_file_name(format!(".trash-{name}"));
        std::fs::rename(&dir, &trash).expect("as far as that");
        assert!(!scene.provider.exists(&scene.instance).await.expect("exists"));
        scene.provider.destroy(&scene.instance).await.expect("destroy");
        assert!(!trash.exists());
    });
}

fn a_dropped_launch_is_whole_or_nothing(local: Arc<Local>) {
    block_on(async {
        for round in 0..10_u64 {
            let scene = Scene::new(&local).await;
            let clock = local.ports().clock;
            tokio::select! {
                biased;
                launched = scene.provider.launch(scene.order("echo x >> up")) => { launched.expect("launch"); }
                () = clock.sleep(Duration::from_millis(round)) => {}
            }
            // Whatever became of it, the next one knows.
            scene.provider.launch(scene.order("echo x >> up")).await.expect("launch");
            let up = scene.provider.paths(&scene.instance, None).workspace.join("up");
            let mut journal =
                scene.provider.journal(&scene.instance, &scene.run, &scene.secret, 0).await.expect("journal");
            while journal.read(4096, Duration::from_secs(30)).await.expect("read").exit.is_none() {}
            assert_eq!(std::fs::read_to_string(up).expect("started"), "x\n", "exactly one agent");
        }
    });
}

/// What an agent finds out about its shim without breaking out: a guard against accidents, so only where the fence has
/// namespaces and the agent is not root.
fn the_secret_is_out_of_reach(local: Arc<Local>) {
    block_on(async {
        let scene = Scene::new(&local).await;
        let runs = scene.instance_dir().join("runs");
        let script = format!(
            "ls {} | wc -l; cat /proc/$PPID/environ /proc/$PPID/mem /proc/$PPID/maps 2>/dev/null | wc -c; touch up",
            runs.display()
        );
        let launch = scene.launch(&script).await;
        let mut journal =
            scene.provider.journal(&scene.instance, &scene.run, &scene.secret, 0).await.expect("journal");
        let mut printed = Vec::new();
        loop {
            let read = journal.read(4096, Duration::from_secs(30)).await.expect("read");
            printed.extend(read.bytes);
            if read.exit.is_some() {
                break;
            }
        }
        let printed = String::from_utf8(printed).expect("text");
        let mut lines = printed.lines();
        let (files, bytes) = (lines.next().expect("files"), lines.next().expect("bytes"));
        if let Fence::PidNamespace { .. } = launch.fence {
            assert_eq!(files, "0", "the runs directory is hidden");
        }
        if !rustix::process::geteuid().is_root() {
            assert_eq!(bytes, "0", "the keeper's memory is closed");
        }
    });
}

/// The script is what providers use that reach their sandboxes through a shell; here both can be had.
fn the_listing_is_what_a_shell_lists(local: Arc<Local>) {
    use std::os::unix::ffi::OsStrExt;
    block_on(async {
        let scene = Scene::new(&local).await;
        scene.launch("touch up").await;
        let runs = scene.instance_dir().join("runs");
        for name in [&b"strange\nname"[..], b"\xff\xfe.ndjson", b"it's $(this)", b"-n", b".hidden"] {
            std::fs::write(runs.join(std::ffi::OsStr::from_bytes(name)), "x").expect("file");
        }
        for (name, at) in [("past.err", "@1"), ("future.err", "2040-01-01")] {
            std::fs::write(runs.join(name), "x").expect("file");
            let touched = std::process::Command::new("touch").args(["-d", at]).arg(runs.join(name)).status();
            assert!(touched.expect("touch").success());
        }
        let facts = || scene.provider.facts(&scene.instance, &scene.run, &scene.secret);
        while facts().await.expect("facts").shim_alive {
            local.ports().clock.sleep(Duration::from_millis(5)).await;
        }
        let listing = scene.provider.run_files(&scene.instance).await.expect("listing");
        for shell in [&["sh"][..], &["busybox", "sh"]] {
            let mut command = std::process::Command::new(shell[0]);
            command.args(&shell[1..]).args(["-c", remote_listing::SCRIPT, "sh"]).arg(&runs);
            let told = remote_listing::parse(&command.output().expect("a shell").stdout);
            // A shell knows seconds only.
            let seconds = |listing: &outlast_sandbox::RunListing| -> Vec<(Vec<u8>, u64)> {
                let second = |at: Option<u64>| at.expect("an age") / 1000;
                listing.files.iter().map(|file| (file.name.clone(), second(file.mtime))).collect()
            };
            assert_eq!(seconds(&told), seconds(&listing), "{shell:?}");
            assert_eq!((told.age_gate, &told.trouble), (listing.age_gate, &listing.trouble));
            let (told, own) = (told.now.expect("a clock"), listing.now.expect("a clock"));
            assert!(told + 2_000 > own && told < own + 60_000, "{told} {own}");
            assert!(listing.files.len() >= 12, "{listing:?}");
        }
    });
}

/// Whatever an interrupted call has left, the next one finishes, and nobody reads a part of it meanwhile.
fn an_interrupted_removal_is_finished(local: Arc<Local>) {
    block_on(async {
        // The order in which they go.
        for gone in 1..=4 {
            let scene = Scene::new(&local).await;
            scene.launch("echo hi; touch up").await;
            let facts = || scene.provider.facts(&scene.instance, &scene.run, &scene.secret);
            while facts().await.expect("facts").shim_alive {
                local.ports().clock.sleep(Duration::from_millis(5)).await;
            }
            let dir = scene.instance_dir();
            let enc = scene.run.encoded();
            let order = ["runs/{}.ndjson", "runs/{}.exit", "runs/{}.err", "prompts/{}.prompt"];
            for name in &order[..gone] {
                std::fs::remove_file(dir.join(name.replace("{}", &enc))).expect("it was there");
            }
            let listed = || scene.provider.run_files(&scene.instance);
            assert_eq!(listed().await.expect("listing").groups().len(), 1, "the rest is found: {gone}");
            let mut journal =
                scene.provider.journal(&scene.instance, &scene.run, &scene.secret, 0).await.expect("journal");
            assert!(journal.read(100, Duration::ZERO).await.expect("read").missing);
            let removed = scene.provider.remove_run(&scene.instance, &scene.run).await;
            assert_eq!(removed.expect("remove"), outlast_core::decide::RunUse::Free);
            assert_eq!(listed().await.expect("listing").groups(), []);
            let prompts = std::fs::read_dir(dir.join("prompts")).expect("prompts");
            assert_eq!(prompts.count(), 0);
            assert_ne!(scene.kill().await, KillOutcome::NeverStarted, "the latch stays");
        }
    });
}
