//! The database restarts, or is away for longer than a lease, while agents work.

use std::fs;
use std::time::Duration;

use super::cluster::Cluster;
use super::http::{Served, Stream};
use super::place::bench;
use crate::support::{Bench, eventually_within, numbered_text};

const RUNS: [&str; 3] = ["r1", "r2", "r3"];

/// An agent that says in a file of its own what it prints.
fn agent(bench: &Bench) -> [String; 3] {
    let dir = bench.path().to_str().expect("utf-8");
    let script = format!(
        "i=0; while [ ! -e {dir}/go ]; do [ -e {dir}/data ] || exit 99; echo \"line $i\"; \
         echo $i >> {dir}/own-$OUTLAST_RUN_ID; i=$((i+1)); sleep 0.05; done"
    );
    ["sh".to_owned(), "-c".to_owned(), script]
}

/// How many lines the agent of the run has printed by its own account.
fn own_lines(bench: &Bench, run: &str) -> usize {
    fs::read_to_string(bench.path().join(format!("own-{run}"))).map_or(0, |text| text.lines().count())
}

/// Waits until every stream shows what its agent prints from now on.
#[track_caller]
fn until_shown(bench: &Bench, streams: &[(&str, Stream)]) {
    for (run, stream) in streams {
        stream.wait_for(&format!("line {}\\n", own_lines(bench, run)));
    }
}

#[test]
fn no_run_fails_no_agent_notices_and_every_stream_goes_on() {
    let cluster = Cluster::start();
    let bench = bench(&cluster.url(), true);
    let first = Served::start(&bench);
    for run in RUNS {
        let mut args = vec!["run", "-d", "--run-id", run, "--thread", run, "--"];
        let agent = agent(&bench);
        args.extend(agent.iter().map(String::as_str));
        bench.outlast(args).ok();
    }
    let second = Served::start(&bench);
    let streams: Vec<_> = RUNS.into_iter().map(|run| (run, second.follow(run))).collect();
    let mut attached = bench.spawn(["attach", "--json", "r1"]);
    attached.wait_for("line 3");
    until_shown(&bench, &streams);

    cluster.restart();
    until_shown(&bench, &streams);

    // For longer than every lease, none of which can be renewed. A minute takes a minute, so it is for whoever asks for it.
    let seconds =
        std::env::var("OUTLAST_TEST_OUTAGE_SECONDS").map_or(4, |text| text.parse().expect("a number"));
    cluster.stop();
    let before: Vec<_> = RUNS.iter().map(|run| own_lines(&bench, run) + 18 * seconds).collect();
    eventually_within(Duration::from_secs(60 + 2 * seconds as u64), "the agents work on", || {
        RUNS.iter().zip(&before).all(|(run, before)| own_lines(&bench, run) > *before).then_some(())
    });
    assert!(first.get("/ready").is_none_or(|ready| ready["ready"] != true), "it says that it is not ready");
    cluster.go_on();
    until_shown(&bench, &streams);

    fs::write(bench.path().join("go"), "").expect("written");
    for (run, stream) in streams {
        let events = stream.events();
        let log = bench.check_ended(run);
        assert_eq!(bench.record(run)["status"], "completed", "{run}");
        let lines = u32::try_from(own_lines(&bench, run)).expect("few");
        assert_eq!(Bench::text(&log), numbered_text(lines), "{run}: every line once, in order");
        assert_eq!(events.len(), log.len(), "{run}: each event came once");
        for (event, stored) in events.iter().zip(&log) {
            assert_eq!(event["chunk"], stored.json, "{run}");
        }
        bench.outlast(["verify", run]).ok();
    }
    let attached = attached.finish();
    assert_eq!(attached.code(), 0, "{}", attached.stderr);
    assert_eq!(attached.stdout, bench.outlast(["logs", "--json", "r1"]).ok());
}
