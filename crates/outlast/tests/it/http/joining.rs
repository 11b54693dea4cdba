//! Coming back to a run by its offset.

use serde_json::json;

use super::client::{Ask, Event, Stream, lines};
use super::site::{Site, gated, input};

#[test]
fn from_the_start_from_now_and_from_an_offset() {
    let site = Site::new();
    let mut first = site.start("r", &gated(12));
    let seen = first.wait_for("line 2");
    let mut from_start = site.join("r", "-1");
    from_start.wait_for("line 2");
    assert_eq!(from_start.events(), first.events());
    let mut from_seen = site.join("r", &seen.id);
    let mut from_now = site.join("r", "now");
    from_seen.wait_until_caught_up();
    from_now.wait_until_caught_up();
    assert_eq!((from_seen.events(), from_now.events()), (vec![], vec![]), "nothing of what was before");
    site.bench.open_gate();
    let all = first.whole();
    let at = all.iter().position(|event| *event == seen).expect("seen");
    assert_eq!(from_start.whole(), all);
    assert_eq!(from_seen.whole(), all[at + 1..]);
    assert_eq!(from_now.whole(), all[at + 1..]);
    site.check_all("r", &all);
    for (n, event) in all.iter().enumerate() {
        assert_eq!(site.join("r", &event.id).whole(), all[n + 1..], "of an ended run");
    }
    assert_eq!(site.join("r", "-1").whole(), all);
    assert_eq!(site.join("r", "now").whole(), []);
    assert_eq!(site.bench.starts(), 1);
}

#[test]
fn the_last_event_id_wins_over_the_offset() {
    let site = Site::new();
    let all = site.start("r", "echo one; echo two").whole();
    let resumed = |offset: &str, id: &str| -> Vec<Event> {
        let ask = Ask::get(&format!("/api/chat?runId=r{offset}")).header("Last-Event-ID", id);
        Stream::of(site.ask(&ask)).whole()
    };
    assert_eq!(resumed("&offset=-1", &all[1].id), all[2..]);
    assert_eq!(resumed("&offset=bad", &all[1].id), all[2..]);
    assert_eq!(resumed("", &all[0].id), all[1..]);
    assert_eq!(resumed("&offset=now", "-1"), all);
    assert_eq!(resumed("&offset=-1", ""), all, "an empty one is none");
    let lines_of_json = Ask::get("/api/chat?runId=r").header("Last-Event-ID", &all[2].id);
    let lines_of_json = lines_of_json.header("Accept", "application/x-ndjson");
    assert_eq!(site.ask(&lines_of_json).text(), lines(&all[3..]));
}

#[test]
fn offsets_that_are_none() {
    let site = Site::new();
    let mut live = site.start("r", &gated(5));
    live.wait_for("line 2");
    let check = |when: &str| {
        let (code, message) = site.get("/api/chat?runId=r").refused(400);
        assert_eq!(code, "invalid_request", "{when}");
        assert!(message.contains("Last-Event-ID") && message.contains("?offset"), "{message}");
        for bad in
            ["42", "bad", "-2", "0", "000000000000001", "00000000000000001", "Now", "1e3", "%C3%A9", ""]
        {
            let refused = site.get(&format!("/api/chat?runId=r&offset={bad}"));
            assert_eq!(refused.refused(400).0, "offset_malformed", "{when}: {bad:?}");
            let refused = site.get(&format!("/v1/runs/r/events?offset={bad}"));
            assert_eq!(refused.refused(400).0, "offset_malformed", "{when}: {bad:?}");
        }
        for ahead in ["0000000000000900", "9999999999999999"] {
            let refused = site.get(&format!("/api/chat?runId=r&offset={ahead}"));
            assert_eq!(refused.refused(416).0, "offset_ahead", "{when}: {ahead}");
            let refused = Ask::get("/api/chat?runId=r&offset=-1").header("Last-Event-ID", ahead);
            assert_eq!(site.ask(&refused).refused(416).0, "offset_ahead", "{when}: {ahead}");
            let refused = site.get(&format!("/v1/runs/r/events?offset={ahead}"));
            assert_eq!(refused.refused(416).0, "offset_ahead", "{when}: {ahead}");
        }
        let unknown = site.get("/api/chat?runId=nobody&offset=-1").refused(404);
        assert_eq!(unknown.0, "run_not_found", "{when}");
    };
    check("live");
    site.bench.open_gate();
    live.whole();
    check("ended");
}

#[test]
fn a_run_wins_over_a_thread() {
    let site = Site::new();
    let all = Stream::of(site.post("/api/chat", &input("r", "t", "echo hi"))).whole();
    let joined = site.get("/api/chat?runId=r&threadId=t&offset=-1");
    assert_eq!(Stream::of(joined).whole(), all);
    let opened = site.ask(&Ask::get("/api/chat?threadId=t").header("Accept", "application/json")).ok();
    assert_eq!(opened["activeRun"], json!(null));
}
