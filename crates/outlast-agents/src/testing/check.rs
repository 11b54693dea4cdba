//! Is a translator deterministic, independent of how its input is split, and restorable?

use super::run::{Journal, Run, Translated};
use super::{Violation, check_sequence, translate};
use crate::{Agent, AgentExit, RunContext};

/// Journals up to this size are cut at every byte.
const SMALL_BYTES: usize = 1024;
/// Journals up to this size are fed byte by byte.
const BYTEWISE_BYTES: usize = 1024 * 1024;
/// Journals with at most so many lines are resumed once at each line, with all that follows.
const FEW_LINES: usize = 100;
/// How many random ways of cutting are tried.
const RANDOM_WAYS: u64 = 12;

/// Checks what Outlast relies on, for an output of an agent of this kind (without the sentinel, which is added):
///
/// - the same output yields the same events, at the same places, and the same end: again, beside another translation that
///   runs at the same time, and on another thread;
/// - so it does however the bytes are cut into reads: byte by byte, at every place (or, where the output is large, around
///   line breaks and at random places);
/// - so it does when at any line break the state is stored as JSON text and a successor goes on from there;
/// - the events are a sequence that readers accept ([`check_sequence`]), with a good exit, a bad one, a signal, and a
///   journal that breaks off.
///
/// The violation says which of these failed and where the events begin to differ.
pub fn check_translator(agent: &dyn Agent, context: &RunContext, output: &[u8]) -> Result<(), Violation> {
    let exits = [
        AgentExit { status: Some(0), ..AgentExit::default() },
        AgentExit { status: Some(3), stderr_tail: "it went wrong\n".to_owned(), ..AgentExit::default() },
        AgentExit { status: Some(137), signal: Some(9), ..AgentExit::default() },
        AgentExit::default(),
    ];
    for exit in &exits {
        let whole = translate(agent, context, output, exit);
        let chunks: Vec<_> = whole.events.iter().map(|(_, chunk)| chunk.clone()).collect();
        check_sequence(&chunks).map_err(|violation| Violation(format!("with {exit:?}: {violation}")))?;
    }
    let checked = Check { agent, context, exit: &exits[0], output };
    for check in [Check::repetition, Check::cuts, Check::restores] {
        check(&checked)?;
    }
    // A journal that breaks off takes another way to its last line.
    Check { exit: &exits[3], ..checked }.restores()
}

#[derive(Clone, Copy)]
struct Check<'a> {
    agent: &'a dyn Agent,
    context: &'a RunContext,
    exit: &'a AgentExit,
    output: &'a [u8],
}

impl Check<'_> {
    fn repetition(&self) -> Result<(), Violation> {
        let journal = Journal::new(self.output, self.exit);
        let whole = self.in_pieces(&journal, &[]);
        same("translating once more", &whole, &self.in_pieces(&journal, &[]))?;

        let mut pair = [Run::new(self.agent, self.context), Run::new(self.agent, self.context)];
        for line in journal.bytes.split_inclusive(|byte| *byte == b'\n') {
            for run in &mut pair {
                run.feed(&journal, line);
            }
        }
        for run in pair {
            same("translating beside another translation", &whole, &run.finish(&journal))?;
        }
        let elsewhere = std::thread::scope(|scope| {
            scope.spawn(|| translate(self.agent, self.context, self.output, self.exit)).join()
        });
        let elsewhere =
            elsewhere.map_err(|_| Violation("the translator panicked on another thread".into()))?;
        same("translating on another thread", &whole, &elsewhere)
    }

    fn cuts(&self) -> Result<(), Violation> {
        let journal = Journal::new(self.output, self.exit);
        let (whole, len) = (self.in_pieces(&journal, &[]), journal.bytes.len());
        if len <= BYTEWISE_BYTES {
            let all: Vec<usize> = (1..len).collect();
            same("feeding byte by byte", &whole, &self.in_pieces(&journal, &all))?;
        }
        if len <= SMALL_BYTES {
            for cut in 1..len {
                let what = format!("cutting at byte {cut}");
                same(&what, &whole, &self.in_pieces(&journal, &[cut]))?;
            }
        }
        // Around every line break at once: before, after, and one byte further on.
        let breaks = journal.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let mut around: Vec<usize> =
            breaks.flat_map(|at| [at, at + 1, at + 2]).filter(|at| *at < len).collect();
        around.sort_unstable();
        around.dedup();
        same("cutting around line breaks", &whole, &self.in_pieces(&journal, &around))?;
        for way in 1..=RANDOM_WAYS {
            let mut cuts = Vec::new();
            let (mut at, mut random) = (0, way);
            while at < len {
                // A fixed generator (Knuth's MMIX), so that a failure comes again.
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                at += 1 + (random >> 33) as usize % (len / way as usize + 1).max(2);
                cuts.push(at.min(len));
            }
            let what = format!("cutting at random places (way {way})");
            same(&what, &whole, &self.in_pieces(&journal, &cuts))?;
        }
        Ok(())
    }

    fn restores(&self) -> Result<(), Violation> {
        let journal = Journal::new(self.output, self.exit);
        let whole = self.in_pieces(&journal, &[]);
        let lines: Vec<&[u8]> = journal.bytes.split_inclusive(|byte| *byte == b'\n').collect();

        let mut chain = Run::new(self.agent, self.context);
        for (n, line) in lines.iter().enumerate() {
            chain.feed(&journal, line);
            // Half a line is not in the state: a successor reads it again.
            if line.ends_with(b"\n") {
                let restored = chain.restore(self.agent, self.context);
                restored.map_err(|what| Violation(format!("restoring after line {}: {what}", n + 1)))?;
            }
        }
        same("restoring after every line", &whole, &chain.finish(&journal))?;

        for n in 0..if lines.len() <= FEW_LINES { lines.len() } else { 0 } {
            let mut once = Run::new(self.agent, self.context);
            for (at, line) in lines.iter().enumerate() {
                if at == n {
                    let restored = once.restore(self.agent, self.context);
                    restored.map_err(|what| Violation(format!("restoring before line {}: {what}", n + 1)))?;
                }
                once.feed(&journal, line);
            }
            same(&format!("restoring once, before line {}", n + 1), &whole, &once.finish(&journal))?;
        }
        Ok(())
    }

    /// The translation with the journal cut at these places, in rising order.
    fn in_pieces(&self, journal: &Journal, cuts: &[usize]) -> Translated {
        let mut run = Run::new(self.agent, self.context);
        let mut from = 0;
        for cut in cuts {
            run.feed(journal, &journal.bytes[from..*cut]);
            from = *cut;
        }
        run.feed(journal, &journal.bytes[from..]);
        run.finish(journal)
    }
}

fn same(what: &str, expected: &Translated, got: &Translated) -> Result<(), Violation> {
    let short = |text: &str| text.chars().take(400).collect::<String>();
    let pairs = expected.events.iter().zip(&got.events);
    if let Some((index, (left, right))) = pairs.enumerate().find(|(_, (left, right))| left != right) {
        return Err(Violation(format!(
            "{what} changes event {index}:\n  in one piece: {:?} {}\n  then:         {:?} {}",
            left.0,
            short(&left.1.json),
            right.0,
            short(&right.1.json)
        )));
    }
    if expected.events.len() != got.events.len() {
        let (more, fewer, which) = match expected.events.len() > got.events.len() {
            true => (&expected.events, got.events.len(), "missing"),
            false => (&got.events, expected.events.len(), "added"),
        };
        return Err(Violation(format!("{what}: event {fewer} is {which}: {}", short(&more[fewer].1.json))));
    }
    if expected.ended != got.ended {
        let (left, right) = (&expected.ended, &got.ended);
        return Err(Violation(format!(
            "{what} changes the end:\n  in one piece: {left:?}\n  then:         {right:?}"
        )));
    }
    if expected.session != got.session {
        let (left, right) = (&expected.session, &got.session);
        return Err(Violation(format!("{what} changes the session: {left:?} became {right:?}")));
    }
    Ok(())
}
