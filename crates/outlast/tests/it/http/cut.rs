//! A body ends cleanly where its log does, and nowhere else.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::client::{Ask, End, Stream};
use super::site::{Site, gated, input, serve_on};
use crate::store::lock;
use crate::support::{Bench, eventually, gated_agent, numbered_text};

fn all_forms(site: &Site) -> Vec<(&'static str, Stream)> {
    let of = |target: &str| Stream::of(site.get(target));
    vec![
        ("sse", of("/api/chat?runId=r&offset=-1")),
        ("ndjson", of("/api/chat?runId=r&offset=-1&format=ndjson")),
        ("native", of("/v1/runs/r/events")),
        ("thread", of("/v1/threads/thread-r/events")),
    ]
}

#[test]
fn a_server_that_goes_cuts_its_streams() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let mut site = Site::new();
        let mut posted = site.start("r", &gated(12));
        posted.wait_for("line 2");
        let mut streams = all_forms(&site);
        streams.iter_mut().for_each(|(_, stream)| stream.wait_until_caught_up());
        streams.push(("posted", posted));
        site.server.proc.signal(signal);
        for (form, mut stream) in streams {
            assert_eq!(stream.rest(), End::Cut, "{form} after {signal:?}");
        }
        eventually("it has ended", || site.server.proc.has_ended().then_some(()));
        site.server = serve_on(&site.bench);
        site.bench.open_gate();
        let events = site.join("r", "-1").whole();
        site.check_all("r", &events);
        assert_eq!(site.bench.starts(), 1);
    }
}

#[test]
fn a_driver_that_goes_ends_no_stream() {
    let site = Site::with_lease("300s", "", "");
    let mut driver = site.bench.spawn(site.bench.run_args("r", &[], &gated_agent(3, 12, 7)));
    driver.wait_for("line 2");
    let mut streams = all_forms(&site);
    streams.iter_mut().for_each(|(_, stream)| stream.wait_until_caught_up());
    driver.kill9();
    site.wait_until("r", "driven on", |record| record["driverEpoch"] == 2);
    site.bench.open_gate();
    for (form, mut stream) in streams.into_iter().filter(|(form, _)| *form != "thread") {
        assert_eq!(stream.rest(), End::Clean, "{form}");
        site.check_all("r", &stream.events());
    }
}

/// Beyond the lease, which nobody can renew meanwhile.
#[test]
fn a_store_that_is_locked_for_a_while_ends_none_and_loses_nothing() {
    let site = Site::with_lease("400ms", "heartbeat = \"100ms\"", "");
    let tick = "echo start >> starts; i=0; while [ ! -e go ]; do echo \"line $i\"; echo $i >> own; i=$((i+1)); sleep 0.02; done";
    let mut stream = site.start("r", tick);
    stream.wait_for("line 2");
    let locked = lock(&site.bench);
    let own_lines =
        || fs::read_to_string(site.bench.workspace().join("own")).map_or(0, |text| text.lines().count());
    let before = own_lines();
    // What is stored is still shown, and a viewer is told that the connection lives.
    let mut joined = site.join("r", "-1");
    joined.wait_for("line 2");
    for _ in 0..10 {
        joined.find("a heartbeat", |item| {
            matches!(item, super::client::Item::Comment(text) if text == ": heartbeat").then_some(())
        });
    }
    // Requests that write wait.
    let mut asked = site.connect();
    asked.send(&Ask::post("/api/chat", &input("s", "s", "echo hi")));
    let mut stopped = site.connect();
    stopped.send(&Ask::post("/api/chat/cancel", &json!({"runId": "r"})));
    eventually("the agent does not notice", || (own_lines() > before + 60).then_some(()));
    assert_eq!(site.get("/v1/runs/s").status, 404, "nothing is started that is not recorded");
    drop(locked);
    Stream::of(asked.answer()).whole();
    assert_eq!(stopped.answer().status, 204);
    let events = stream.whole();
    assert_eq!(joined.whole(), events);
    site.check_all("r", &events);
    let said = Bench::text(&site.bench.check_ended("r"));
    assert_eq!(
        said,
        numbered_text(u32::try_from(said.lines().count()).expect("lines")),
        "every line once, in order"
    );
    assert!(said.lines().count() > before + 60);
}
