//! The runtime under simulated time: every seed a world of its own.

use std::collections::BTreeMap;

use outlast_testkit::sim::{Plan, simulate};

/// Seeds of a short round; `OUTLAST_SIM_SEEDS=FROM..TO` asks for others.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("OUTLAST_SIM_SEEDS").ok();
    let asked = asked.as_deref().and_then(|text| text.split_once(".."));
    match asked {
        Some((from, to)) => from.parse().expect("a number")..to.parse().expect("a number"),
        None => 0..150,
    }
}

#[test]
fn every_promise_holds_in_every_world() {
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for seed in seeds() {
        let outcome = simulate(seed, &Plan::default());
        if !outcome.broken.is_empty() {
            if let Ok(path) = std::env::var("OUTLAST_SIM_HISTORY") {
                std::fs::write(path, outcome.history.join("\n")).expect("written");
            }
            panic!("seed {seed}: {:#?}", outcome.broken);
        }
        for (end, times) in outcome.ends {
            *ends.entry(end).or_insert(0) += times;
        }
    }
    // The worlds are hard enough to show something.
    for end in [
        "completed exited",
        "failed agent_failed",
        "aborted cancelled",
        "aborted expired",
        "failed agent_lost",
    ] {
        assert!(ends.get(end).is_some_and(|times| *times > 0), "no run ended as {end}: {ends:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in [3, 14, 15] {
        let (one, other) = (simulate(seed, &Plan::default()), simulate(seed, &Plan::default()));
        assert!(one.history.len() > 100, "something happened: {}", one.history.len());
        let differs = one.history.iter().zip(&other.history).position(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}: {:?}", differs.map(|n| (&one.history[n], &other.history[n])));
        assert_eq!(one, other);
    }
}
