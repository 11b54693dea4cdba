//! Stopping a shim.

use outlast_core::journal::latch::Fence;
use rustix::process::Signal;

use crate::bench::{Bench, fences, now_ms};

#[test]
fn whoever_ignores_the_request_is_killed_in_time() {
    for fence in fences() {
        let bench = Bench::new();
        let script = format!(
            "setsid sh -c ': {0}; trap \"\" TERM; touch one; while :; do sleep 1; done' &\n\
             (env -i setsid sh -c ': {0}; trap \"\" TERM HUP; touch two; while :; do sleep 1; done' &)\n\
             trap '' TERM; touch three; while :; do sleep 1; done",
            bench.marker
        );
        let mut request = bench.request(&script, fence);
        request.env.push(("MARKER".into(), bench.marker.clone()));
        let shim = bench.start(&request);
        for name in ["one", "two", "three"] {
            bench.until_file(name);
        }
        assert!(bench.census().len() >= 3);
        let before = now_ms();
        shim.signal(Signal::TERM);
        // Asking again gives no second grace.
        shim.signal(Signal::TERM);
        let (_, record) = bench.ended(shim);
        let took = now_ms() - before;
        assert!((4_900..8_000).contains(&took), "{fence:?}: {took} ms");
        assert_eq!((record.exit, record.signal), (137, Some(9)), "{fence:?}");
        assert!(bench.census().is_empty(), "{fence:?}: {:?}", bench.census());
    }
}

#[test]
fn a_polite_agent_ends_as_it_likes() {
    for fence in fences() {
        let bench = Bench::new();
        let script = "trap 'echo bye; exit 5' TERM; touch up; while :; do sleep 0.05; done";
        let shim = bench.launch(script, fence);
        bench.until_file("up");
        shim.signal(Signal::TERM);
        let (printed, record) = bench.ended(shim);
        assert_eq!((printed.as_slice(), record.exit, record.signal), (&b"bye\n"[..], 5, None), "{fence:?}");
    }
}

#[test]
fn nothing_of_the_fence_stays() {
    for fence in fences() {
        let bench = Bench::new();
        let shim = bench.launch("sleep 0.2 & true", fence);
        let launch = bench.launched();
        let keeper = bench.keeper();
        shim.wait();
        assert!(!outlast_shim::process::alive(keeper));
        if let Fence::Cgroup { path, .. } = launch.fence {
            assert!(!std::path::Path::new(&path).exists(), "{path}");
        }
    }
}
