//! A successor yields the same rest of the log, whether it can read its predecessor's state or has to translate the
//! journal again.

use outlast_agents::{AgentExit, JournalEnd, Progress, RunContext, Translation, agent};
use outlast_core::align::{Alignment, Diverged, Step};
use outlast_core::event::{Chunk, Event, Origin};
use outlast_core::journal::sentinel;
use outlast_core::{ExitSecret, Seq};

use crate::support::{capture, captures};

type Events = Vec<(Origin, Chunk)>;

fn context() -> RunContext {
    RunContext { run_id: "run".to_owned(), thread_id: "thread".to_owned(), model: None }
}

fn secret() -> ExitSecret {
    ExitSecret::from_bytes([3; 16])
}

fn to_the_end(translation: &mut Translation, journal: &[u8], events: &mut Events) {
    let from = usize::try_from(translation.position()).expect("small");
    let progress = translation.feed(&journal[from..], JournalEnd::default(), events);
    assert_eq!(progress, Progress::Sentinel { exit: 0 });
    translation.finish(&AgentExit { status: Some(0), ..AgentExit::default() }, events);
}

/// The captures that a kind of agent printed. Every one of them is also what a plain command may print.
fn journals() -> Vec<(&'static str, String, Vec<u8>)> {
    let kinds = [("claude-", "claude-code"), ("codex-", "codex"), ("codex-0.171.0-500", "command")];
    let of = |(prefix, kind): (&'static str, &'static str)| {
        captures(prefix).into_iter().map(move |name| {
            let mut journal = capture(&name);
            journal.extend_from_slice(sentinel::block(0, &secret()).as_bytes());
            (kind, name, journal)
        })
    };
    kinds.into_iter().flat_map(of).collect()
}

/// Every end of a line, and a place within each line.
fn cuts(journal: &[u8]) -> Vec<usize> {
    let ends = journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    ends.flat_map(|end| [end.saturating_sub(7), end.saturating_sub(1), end, end + 13])
        .filter(|cut| *cut < journal.len() - 60)
        .collect()
}

#[test]
fn cursor_and_retranslation_yield_the_same_log_from_every_cut() {
    for (kind, name, journal) in journals() {
        let agent = agent(kind).expect("kind");
        let mut whole = Events::new();
        to_the_end(&mut Translation::new(agent, context(), secret()), &journal, &mut whole);
        for cut in cuts(&journal) {
            let mut before = Events::new();
            let mut first = Translation::new(agent, context(), secret());
            first.feed(&journal[..cut], JournalEnd::default(), &mut before);
            let cursor = first.cursor(0);
            let mut unreadable = cursor.clone();
            unreadable.version += 1;
            for cursor in [cursor, unreadable] {
                let mut events = before.clone();
                let mut second = Translation::resume(agent, context(), secret(), &cursor);
                to_the_end(&mut second, &journal, &mut events);
                assert_eq!(events, whole, "{name} cut at {cut}, version {}", cursor.version);
            }
        }
    }
}

/// The log of a run that was taken over at every cut, with what hosts wrote in between, against a replay of the journal.
fn walk(stored: &[(Origin, Chunk)], replayed: &[(Origin, Chunk)]) -> Result<u64, Diverged> {
    let mut alignment = Alignment::default();
    let mut replayed = replayed.iter();
    let stored = (1..).map(Seq).zip(stored).filter(|(_, (origin, _))| Alignment::takes(*origin));
    for (seq, (origin, chunk)) in stored {
        let next = replayed.next().map(|(origin, chunk)| Step { origin: *origin, json: &chunk.json });
        alignment.step(Some((seq, Step { origin: *origin, json: &chunk.json })), next)?;
    }
    if let Some((origin, chunk)) = replayed.next() {
        alignment.step(None, Some(Step { origin: *origin, json: &chunk.json }))?;
    }
    Ok(alignment.compared())
}

#[test]
fn aligned_replay_finds_the_same_log_among_ten_thousand_host_events() {
    let host = || {
        let event = Event::Custom { name: "sandbox.file".into(), value: serde_json::json!({"path": "a"}) };
        (Origin::Host, event.chunk())
    };
    for (kind, name, journal) in journals() {
        let agent = agent(kind).expect("kind");
        let mut replayed = Events::new();
        to_the_end(&mut Translation::new(agent, context(), secret()), &journal, &mut replayed);
        let between = 10_000 / (replayed.len() + 1) + 1;
        let mut log: Events = std::iter::repeat_with(host).take(between).collect();
        for event in &replayed {
            log.push(event.clone());
            log.extend(std::iter::repeat_with(host).take(between));
        }
        assert!(log.len() > 10_000);
        assert_eq!(walk(&log, &replayed), Ok(replayed.len() as u64), "{name}");
        if replayed.is_empty() {
            // A session that could not be resumed printed nothing.
            continue;
        }
        // And it would notice.
        let n = replayed.len() / 2;
        let mut less = replayed.clone();
        less.remove(n);
        assert!(walk(&log, &less).is_err(), "{name}: one event less");
        let mut other = replayed.clone();
        other[n].1.json = other[n].1.json.replacen("\"type\"", "\"x\":1,\"type\"", 1);
        assert!(walk(&log, &other).is_err(), "{name}: another event");
    }
}
