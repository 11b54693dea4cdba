//! Starting agents: at most one, and exactly as ordered.

use std::sync::Arc;

use outlast_core::ErrorCode;
use outlast_core::journal::latch::{Latch, LatchState};
use outlast_core::journal::sentinel;
use outlast_core::shim::Fallback;

use super::Subject;
use super::bench::Bench;
use crate::{KillOutcome, LaunchError, LaunchOutcome};

pub(super) async fn one_of_many_takes_the_latch(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let mut launches = Vec::new();
    for _ in 0..16 {
        let (provider, order) = (bench.subject.provider(), bench.order("echo started >> count; echo hi"));
        launches.push(tokio::spawn(async move { provider.launch(order).await }));
    }
    let mut taken = 0;
    for launch in launches {
        match launch.await.expect("task").expect("launch") {
            LaunchOutcome::Taken => taken += 1,
            LaunchOutcome::TakenBefore => {}
        }
    }
    assert_eq!(taken, 1);
    assert_eq!(bench.read_to_end(0, 4096).await.0, b"hi\n");
    assert_eq!(std::fs::read_to_string(bench.workspace().join("count")).expect("count"), "started\n");
}

pub(super) async fn a_cancel_comes_first_or_not_at_all(subject: Arc<dyn Subject>) {
    let first = Bench::new(subject).await;
    for round in 0..12 {
        let bench = first.another_run();
        let name = format!("round-{round}");
        let (provider, order) = (bench.subject.provider(), bench.order(&format!("echo x > {name}")));
        let launch = tokio::spawn(async move { provider.launch(order).await });
        // Different rounds cancel at different moments of the launch.
        for _ in 0..round {
            bench.subject.ports().clock.sleep(std::time::Duration::from_millis(1)).await;
        }
        let cancel = bench.provider.latch_cancelled(&bench.instance, &bench.run).await.expect("cancel");
        let launch = launch.await.expect("task").expect("launch");
        assert_ne!(cancel, launch, "exactly one of them takes the latch");
        if launch == LaunchOutcome::Taken {
            assert_eq!(bench.read_to_end(0, 4096).await.1.exit, 0);
            assert!(bench.workspace().join(name).exists());
        } else {
            assert_eq!(bench.facts().await.latch, LatchState::Taken(Latch::Cancelled));
            bench.until_shim_is_gone().await;
            bench.assert_nothing_lives();
            assert!(!bench.workspace().join(name).exists());
        }
    }
}

pub(super) async fn a_cancelled_run_is_never_launched(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let cancel = || bench.provider.latch_cancelled(&bench.instance, &bench.run);
    assert_eq!(cancel().await.expect("cancel"), LaunchOutcome::Taken);
    assert_eq!(cancel().await.expect("cancel"), LaunchOutcome::TakenBefore);
    let outcome = bench.provider.launch(bench.order("echo x > file")).await.expect("launch");
    assert_eq!(outcome, LaunchOutcome::TakenBefore);
    assert_eq!(bench.kill().await, KillOutcome::NeverStarted);
    assert!(!bench.workspace().join("file").exists());
}

pub(super) async fn no_sandbox_no_launch(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.provider.destroy(&bench.instance).await.expect("destroy");
    let launched = bench.provider.launch(bench.order("true")).await;
    assert!(matches!(launched, Err(LaunchError::SandboxGone(_))), "{launched:?}");
    assert!(!bench.provider.exists(&bench.instance).await.expect("exists"), "a launch makes no sandbox");
    assert!(!bench.facts().await.exists);
}

pub(super) async fn environment_and_prompt_are_exact(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let prompt = "say 'hi'; $(reboot)\n\u{1f980}";
    let mut order = bench.order("");
    // `env` prints what it was given and adds nothing, unlike a shell.
    order.argv = vec!["env".into(), "-0".into()];
    order.env.push(("NAME".into(), "two\nlines".into()));
    order.prompt = Some(prompt.into());
    bench.provider.launch(order.clone()).await.expect("launch");
    let (printed, _) = bench.read_to_end(0, 4096).await;
    let printed = String::from_utf8(printed).expect("text");
    let mut found: Vec<&str> = printed.split_terminator('\0').collect();
    let prompt_file = found.iter().find_map(|line| line.strip_prefix("OUTLAST_PROMPT_FILE="));
    let prompt_file = prompt_file.expect("the prompt's file").to_owned();
    let mut expected: Vec<String> = order.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    expected.push(format!("OUTLAST_PROMPT_FILE={prompt_file}"));
    expected.sort();
    found.sort_unstable();
    assert_eq!(found, expected);

    for (on_stdin, expected) in [(true, format!("{prompt}|{prompt}")), (false, format!("|{prompt}"))] {
        let bench = bench.another_run();
        let mut order = bench.order("cat; printf '|'; cat \"$OUTLAST_PROMPT_FILE\"");
        order.prompt = Some(prompt.into());
        order.prompt_on_stdin = on_stdin;
        bench.provider.launch(order).await.expect("launch");
        assert_eq!(String::from_utf8_lossy(&bench.read_to_end(0, 4096).await.0), expected);
    }
}

pub(super) async fn the_second_attempt_is_one_launch(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let mut order = bench.order("echo 'No conversation found' >&2; exit 1");
    let second = bench.order("cat; exit 4").argv;
    order.fallback = Some((vec!["conversation found".into()], second, Some("the whole story".into())));
    bench.provider.launch(order.clone()).await.expect("launch");
    let (printed, exit) = bench.read_to_end(0, 4096).await;
    let expected = format!("{}\nthe whole story", sentinel::restart_note(&bench.secret));
    assert_eq!((String::from_utf8_lossy(&printed).into_owned(), exit.exit), (expected, 4));

    // A few words are no work; the note still gets a line of its own.
    let words = bench.another_run();
    let fallback = order.fallback.clone();
    let script = "printf sorry; echo 'No conversation found' >&2; exit 1";
    words.provider.launch(crate::LaunchOrder { fallback, ..words.order(script) }).await.expect("launch");
    let (printed, exit) = words.read_to_end(0, 4096).await;
    let expected = format!("sorry\n{}\nthe whole story", sentinel::restart_note(&words.secret));
    assert_eq!((String::from_utf8_lossy(&printed).into_owned(), exit.exit), (expected, 4));

    // Whoever has printed more, ends well, or fails for another reason is not tried again.
    let much = Fallback::MAX_PRINTED + 1;
    for (script, status) in [
        (format!("head -c {much} /dev/zero; echo 'No conversation found' >&2; exit 1"), 1),
        ("echo 'No conversation found' >&2; exit 0".to_owned(), 0),
        ("echo other >&2; exit 1".to_owned(), 1),
    ] {
        let bench = bench.another_run();
        let fallback = order.fallback.clone();
        bench.provider.launch(crate::LaunchOrder { fallback, ..bench.order(&script) }).await.expect("launch");
        let (printed, exit) = bench.read_to_end(0, 4096).await;
        assert_eq!(exit.exit, status, "{script}");
        assert!(!String::from_utf8_lossy(&printed).contains("__restart"), "{script}");
    }
}

pub(super) async fn what_cannot_be_started_is_an_exit(subject: Arc<dyn Subject>) {
    let first = Bench::new(subject).await;
    let missing = first.workspace().join("missing");
    let plain = first.workspace().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").expect("file");
    let text = |path: &std::path::Path| path.to_str().expect("text").to_owned();
    for (argv, cwd, exit, cause) in [
        (vec!["no-such-command".to_owned()], first.workspace(), 127, "no such command in PATH"),
        (vec![text(&missing)], first.workspace(), 127, "no such file"),
        (vec![text(&plain)], first.workspace(), 126, "permission denied"),
        (vec!["true".to_owned()], missing.clone(), 127, "working directory"),
        (vec!["a\0b".to_owned()], first.workspace(), 126, "NUL"),
    ] {
        let bench = first.another_run();
        let order = crate::LaunchOrder { argv: argv.clone(), cwd, ..bench.order("") };
        let outcome = bench.provider.launch(order).await.expect("launch");
        assert_eq!(outcome, LaunchOutcome::Taken);
        let (printed, record) = bench.read_to_end(0, 4096).await;
        let found = record.cause.unwrap_or_else(|| panic!("no cause for {argv:?}"));
        assert_eq!((printed.len(), record.exit, found.code), (0, exit, ErrorCode::LaunchFailed), "{argv:?}");
        assert!(found.message.contains(cause), "{}", found.message);
    }
}

pub(super) async fn facts_at_every_stage(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let facts = bench.facts().await;
    assert!(facts.exists && facts.latch == LatchState::Free && !facts.shim_alive && facts.exit.is_none());
    bench.launch("touch up; while ! [ -e go ]; do sleep 0.01; done; exit 7").await;
    bench.until_file("up").await;
    let facts = bench.facts().await;
    assert!(matches!(facts.latch, LatchState::Taken(Latch::Launch(_))) && facts.shim_alive, "{facts:?}");
    assert_eq!(facts.exit, None);
    std::fs::write(bench.workspace().join("go"), "").expect("go");
    let facts = bench.until_shim_is_gone().await;
    assert_eq!(facts.exit.expect("a shim that has left has recorded the exit").exit, 7);
    assert!(matches!(facts.latch, LatchState::Taken(Latch::Launch(_))));
    let foreign = bench.subject.ports().entropy.exit_secret();
    let facts = bench.provider.facts(&bench.instance, &bench.run, &foreign).await.expect("facts");
    assert_eq!(facts.exit, None, "only this run's exit counts");
}
