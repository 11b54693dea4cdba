//! Sessions under simulated time: every seed a world of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_testkit::sim::{SessionsOutcome, SessionsPlan, simulate_sessions};
use proptest::prelude::*;

/// The history of a world that broke a promise goes where `OUTLAST_SIM_HISTORY` says, else its end is printed.
fn told(seed: u64, outcome: &SessionsOutcome) -> String {
    let history = match std::env::var("OUTLAST_SIM_HISTORY") {
        Ok(path) => {
            std::fs::write(&path, outcome.history.join("\n")).expect("written");
            format!("its history is in {path}")
        }
        Err(_) => {
            let lines = &outcome.history;
            let first = lines.iter().position(|line| line.contains("BROKEN")).unwrap_or(lines.len());
            let around = first.saturating_sub(60)..lines.len().min(first + 10);
            format!("its history around that:\n{}", lines[around].join("\n"))
        }
    };
    format!("seed {seed}: {:#?}\n{history}", outcome.broken)
}

#[test]
fn every_promise_holds_in_every_world() {
    let mut deeds: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..50 {
        let outcome = simulate_sessions(seed, &SessionsPlan::default());
        assert!(outcome.broken.is_empty(), "{}", told(seed, &outcome));
        for (deed, times) in outcome.deeds {
            *deeds.entry(deed).or_default() += times;
        }
    }
    // The worlds are hard enough to show something.
    for deed in ["acknowledged", "collected", "deleted", "expired", "runs", "stopped"] {
        assert!(deeds.get(deed).is_some_and(|times| *times > 10), "{deed} is too rare: {deeds:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in [3, 14, 15] {
        let simulate = || simulate_sessions(seed, &SessionsPlan::default());
        let (one, other) = (simulate(), simulate());
        assert!(one.history.len() > 100, "something happened: {}", one.history.len());
        let differs = one.history.iter().zip(&other.history).position(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}: {:?}", differs.map(|n| (&one.history[n], &other.history[n])));
        assert_eq!(one, other);
    }
}

fn plans() -> impl Strategy<Value = SessionsPlan> {
    let sizes = (1..5usize, 1..4usize, 1..6usize, 0..4usize);
    let rates = (0..120u32, 0..120u32, 0..200u32, 0..60u32, 0..250u32);
    let times = (10..300u64, 0..20_000u64);
    (sizes, rates, times).prop_map(|(sizes, rates, (trouble, grace))| {
        let (hosts, threads, writers, runs) = sizes;
        let (fail, lose, delay, late, delete) = rates;
        SessionsPlan {
            hosts,
            threads,
            writers,
            appends: 6,
            runs,
            trouble: Duration::from_secs(trouble),
            fail,
            lose,
            delay,
            late,
            delete,
            grace: Duration::from_millis(grace),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_holds_however_hard_the_world_is(seed in any::<u64>(), plan in plans()) {
        let outcome = simulate_sessions(seed, &plan);
        prop_assert!(outcome.broken.is_empty(), "{plan:?}\n{}", told(seed, &outcome));
    }
}
