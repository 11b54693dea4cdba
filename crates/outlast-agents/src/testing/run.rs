//! Running a translator over an output.

use outlast_core::ExitSecret;
use outlast_core::event::{Chunk, Origin};
use outlast_core::journal::sentinel;

use crate::{Agent, AgentExit, Ended, JournalEnd, Progress, RunContext, Translation};

/// What came of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// The events, in order, with their origins.
    pub events: Vec<(Origin, Chunk)>,
    /// What the translator made of the end.
    pub ended: Ended,
    /// The session in the agent's own words.
    pub session: Option<String>,
}

/// The exit secret of the journals here. With it a test can put a restart note
/// ([`sentinel::restart_note`](outlast_core::journal::sentinel::restart_note)) into an output.
pub fn secret() -> ExitSecret {
    ExitSecret::from_bytes(*b"outlast testing!")
}

/// What the agent's kind makes of an output that ended like this, in one piece. An exit without status stands for a
/// journal without sentinel.
pub fn translate(agent: &dyn Agent, context: &RunContext, output: &[u8], exit: &AgentExit) -> Translated {
    let journal = Journal::new(output, exit);
    let mut run = Run::new(agent, context);
    run.feed(&journal, &journal.bytes);
    run.finish(&journal)
}

/// An output with what a shim adds to it.
pub(super) struct Journal {
    pub(super) bytes: Vec<u8>,
    end: JournalEnd,
    exit: AgentExit,
}

impl Journal {
    pub(super) fn new(output: &[u8], exit: &AgentExit) -> Self {
        let mut bytes = output.to_vec();
        let mut end = JournalEnd::default();
        if let Some(status) = exit.status {
            bytes.extend_from_slice(sentinel::block(status, &secret()).as_bytes());
            end.stdout_bytes = Some(output.len() as u64);
        }
        Journal { bytes, end, exit: exit.clone() }
    }
}

/// One translation on its way.
pub(super) struct Run {
    translation: Translation,
    events: Vec<(Origin, Chunk)>,
    over: bool,
}

impl Run {
    pub(super) fn new(agent: &dyn Agent, context: &RunContext) -> Self {
        let translation = Translation::new(agent, context.clone(), secret());
        Run { translation, events: Vec::new(), over: false }
    }

    pub(super) fn feed(&mut self, journal: &Journal, piece: &[u8]) {
        if self.over {
            return;
        }
        let progress = self.translation.feed(piece, journal.end, &mut self.events);
        self.over = matches!(progress, Progress::Sentinel { .. });
    }

    /// Replaces the translation by one that a successor would have: from the stored cursor, as text.
    pub(super) fn restore(&mut self, agent: &dyn Agent, context: &RunContext) -> Result<(), String> {
        let cursor = self.translation.cursor(0);
        let stored =
            serde_json::to_string(&cursor).map_err(|error| format!("the state is no JSON: {error}"))?;
        let cursor =
            serde_json::from_str(&stored).map_err(|error| format!("the state is no JSON: {error}"))?;
        // A resumption that cannot read the state starts over without saying so; here that is a defect.
        let read: &outlast_core::run::Cursor = &cursor;
        agent.resume(context, &read.state).map_err(|error| format!("{error} (state: {})", read.state))?;
        self.translation = Translation::resume(agent, context.clone(), secret(), &cursor);
        Ok(())
    }

    pub(super) fn finish(mut self, journal: &Journal) -> Translated {
        if !self.over {
            self.translation.feed_rest(&mut self.events);
        }
        let session = self.translation.session().map(ToOwned::to_owned);
        let ended = self.translation.finish(&journal.exit, &mut self.events);
        Translated { events: self.events, ended, session }
    }
}
