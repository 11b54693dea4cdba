//! A successor yields the same rest of the log, whether it can read its predecessor's state or has to translate the
//! journal again.

use outlast_agents::{AgentExit, JournalEnd, Progress, RunContext, Translation, agent};
use outlast_core::ExitSecret;
use outlast_core::event::{Chunk, Origin};
use outlast_core::journal::sentinel;

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

#[test]
fn from_every_cut_by_cursor_and_by_retranslation() {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures");
    for (kind, file) in [
        ("claude-code", "claude-2.1.332-acceptEdits.ndjson"),
        ("claude-code", "claude-2.1.332-partial-messages.ndjson"),
        ("codex", "codex-0.171.0-exec-json.ndjson"),
        ("command", "codex-0.171.0-500.ndjson"),
    ] {
        let agent = agent(kind).expect("kind");
        let mut journal = std::fs::read(format!("{captures}/{file}")).expect("capture");
        journal.extend_from_slice(sentinel::block(0, &secret()).as_bytes());
        let mut whole = Events::new();
        to_the_end(&mut Translation::new(agent, context(), secret()), &journal, &mut whole);
        // Every end of a line, and a place within each line.
        let ends = journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let cuts: Vec<usize> = ends.flat_map(|end| [end.saturating_sub(7), end]).collect();
        for cut in cuts.into_iter().filter(|cut| *cut < journal.len() - 60) {
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
                assert_eq!(events, whole, "{file} cut at {cut}, version {}", cursor.version);
            }
        }
    }
}
