//! From journals to events, without any I/O.

use outlast::agents::{JournalEnd, RunContext, Translation, agent};
use outlast::core::ExitSecret;

use crate::machine::timed;
use crate::report::figure;

const BYTES: usize = 100_000_000;
/// What a driver takes at once.
const PIECE: usize = 128 * 1024;

pub fn translation() {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../outlast-agents/tests/captures");
    for (kind, file) in [
        ("claude-code", "claude-2.1.332-partial-messages.ndjson"),
        ("codex", "codex-0.171.0-exec-json.ndjson"),
    ] {
        let capture = std::fs::read(format!("{captures}/{file}")).expect("capture");
        measure(kind, &capture, ">= 60 MB/s");
    }
    measure(
        "command",
        b"a line of text as programs print it while they work on something, eighty bytes\n",
        "",
    );
}

fn measure(kind: &str, capture: &[u8], aim: &str) {
    let agent = agent(kind).expect("kind");
    let context = RunContext { run_id: "run".to_owned(), thread_id: "thread".to_owned(), model: None };
    let mut translation = Translation::new(agent, context, ExitSecret::from_bytes([1; 16]));
    let journal: Vec<u8> = capture.iter().copied().cycle().take(BYTES).collect();
    let (events, took) = timed(|| {
        let mut events = Vec::new();
        let mut count = 0;
        for piece in journal.chunks(PIECE) {
            translation.feed(piece, JournalEnd::default(), &mut events);
            count += events.len();
            // What an append takes besides the events.
            std::hint::black_box(serde_json::to_string(&translation.cursor(0)).expect("json"));
            events.clear();
        }
        count
    });
    let rate = BYTES as f64 / 1e6 / took.as_secs_f64();
    figure(
        &format!("translation of {kind} ({:.1} M events of 100 MB)", events as f64 / 1e6),
        rate,
        "MB/s",
        aim,
    );
}
