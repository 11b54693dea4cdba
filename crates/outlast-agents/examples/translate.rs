//! How fast a journal is translated: `translate KIND FILE [MEGABYTES]` repeats the file to that size and prints MB/s.

use std::process::ExitCode;

use outlast_agents::{JournalEnd, RunContext, Translation, agent, testing};

/// The size of the reads of a driver that catches up.
const READ_BYTES: usize = 256 * 1024;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(kind), Some(Ok(file))) =
        (args.first().and_then(|kind| agent(kind)), args.get(1).map(std::fs::read))
    else {
        eprintln!("usage: translate KIND FILE [MEGABYTES]");
        return ExitCode::FAILURE;
    };
    let megabytes = args.get(2).and_then(|text| text.parse().ok()).unwrap_or(100);
    let context = RunContext { run_id: "run".into(), thread_id: "thread".into(), model: None };
    let journal = file.repeat(READ_BYTES / file.len().max(1) + 1);
    let mut translation = Translation::new(kind, context, testing::secret());
    let mut events = Vec::new();
    let (mut fed, mut count, mut bytes) = (0usize, 0usize, 0usize);
    #[allow(clippy::disallowed_methods, reason = "measures this process, decides nothing")]
    let start = std::time::Instant::now();
    while fed < megabytes * 1_000_000 {
        for piece in journal.chunks(READ_BYTES) {
            translation.feed(piece, JournalEnd::default(), &mut events);
            // As often as a driver appends.
            std::hint::black_box(translation.cursor(0));
            count += events.len();
            bytes += events.drain(..).map(|(_, chunk)| chunk.json.len()).sum::<usize>();
        }
        fed += journal.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}: {:.0} MB in {seconds:.2} s = {:.0} MB/s; {count} events, {:.0} MB of them",
        kind.kind(),
        fed as f64 / 1e6,
        fed as f64 / 1e6 / seconds,
        bytes as f64 / 1e6
    );
    ExitCode::SUCCESS
}
