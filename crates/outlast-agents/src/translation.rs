//! From a journal's bytes to events with origins.

use outlast_core::event::{Chunk, Origin};
use outlast_core::journal::lines::{Content, LineSplitter};
use outlast_core::journal::sentinel;
use outlast_core::run::Cursor;
use outlast_core::{ExitSecret, hex};

use crate::{Agent, AgentExit, Emitter, Ended, PrintedLine, RunContext, Translator};

/// Translates one run's journal, from its start or from a cursor.
pub struct Translation {
    context: RunContext,
    secret: ExitSecret,
    version: u32,
    splitter: LineSplitter,
    translator: Box<dyn Translator>,
    ids: u64,
    /// Events of lines before this byte are in the log already.
    suppress_before: u64,
    scratch: Vec<Chunk>,
}

/// What is known of the journal's end besides its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalEnd {
    /// How many of the journal's bytes are the agent's, once its exit is recorded.
    pub stdout_bytes: Option<u64>,
}

/// Whether the journal goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No sentinel so far.
    More,
    /// The sentinel was found, with this exit status. Bytes after it mean nothing.
    Sentinel {
        /// The exit status.
        exit: i32,
    },
}

impl std::fmt::Debug for Translation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translation")
            .field("context", &self.context)
            .field("splitter", &self.splitter)
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}

impl Translation {
    /// At the journal's start.
    pub fn new(agent: &dyn Agent, context: RunContext, secret: ExitSecret) -> Self {
        let translator = agent.translator(&context);
        Translation {
            context,
            secret,
            version: agent.state_version(),
            splitter: LineSplitter::new(0),
            translator,
            ids: 0,
            suppress_before: 0,
            scratch: Vec::new(),
        }
    }

    /// Where the last append has left off. A state of another version, or one that cannot be read, is no error: the
    /// journal is translated again from 0 and what the log holds already is suppressed by its origin.
    pub fn resume(agent: &dyn Agent, context: RunContext, secret: ExitSecret, cursor: &Cursor) -> Self {
        let resumed = (cursor.version == agent.state_version())
            .then(|| agent.resume(&context, &cursor.state).ok())
            .flatten();
        match resumed {
            Some(translator) => Translation {
                context,
                secret,
                version: agent.state_version(),
                splitter: LineSplitter::new(cursor.journal),
                translator,
                ids: cursor.ids,
                suppress_before: 0,
                scratch: Vec::new(),
            },
            None => Translation { suppress_before: cursor.journal, ..Self::new(agent, context, secret) },
        }
    }

    /// The journal's byte that comes next.
    pub fn position(&self) -> u64 {
        self.splitter.position()
    }

    /// The cursor after the lines so far.
    pub fn cursor(&self, fold_from: u64) -> Cursor {
        Cursor {
            journal: self.splitter.line_start(),
            state: self.translator.state(),
            version: self.version,
            ids: self.ids,
            fold_from,
        }
    }

    /// The session in the agent's own words.
    pub fn session(&self) -> Option<&str> {
        self.translator.session()
    }

    /// Takes the journal's next bytes, read before `end` was. Events are added to `out` in order. How the bytes are cut
    /// into calls does not matter.
    pub fn feed(&mut self, mut bytes: &[u8], end: JournalEnd, out: &mut Vec<(Origin, Chunk)>) -> Progress {
        while let Some((line, used)) = self.splitter.next_line(bytes) {
            bytes = &bytes[used..];
            let agents = end.stdout_bytes;
            let digest;
            let printed = match line.content {
                Content::Bytes(content) => {
                    if let Some(exit) = sentinel::parse(content, &self.secret) {
                        return Progress::Sentinel { exit };
                    }
                    if sentinel::is_restart(content, &self.secret) {
                        PrintedLine::Restarted
                    } else {
                        // The sentinel's own line break ends the agent's last line, or an empty line that is nobody's.
                        // Where the sentinel is not at hand yet, the exit file tells: it is written before.
                        let terminated =
                            agents != Some(line.end) && !begins_with_sentinel(bytes, &self.secret);
                        if !terminated && content.is_empty() {
                            continue;
                        }
                        PrintedLine::Bytes { bytes: content, terminated }
                    }
                }
                Content::Oversized { sha256 } => {
                    digest = hex::encode(&sha256);
                    PrintedLine::Oversized { bytes: line.end - line.start, sha256: &digest }
                }
            };
            let mut emitter = Emitter::new(&self.context.run_id, &mut self.ids, &mut self.scratch);
            self.translator.line(printed, &mut emitter);
            let start = line.start;
            let known = start < self.suppress_before;
            for (index, chunk) in self.scratch.drain(..).enumerate() {
                if !known {
                    out.push((Origin::Journal { byte: start, index: index as u32 }, chunk));
                }
            }
        }
        Progress::More
    }

    /// A last line without line break, where the journal has ended without a sentinel.
    pub fn feed_rest(&mut self, out: &mut Vec<(Origin, Chunk)>) {
        let Some(line) = self.splitter.finish() else {
            return;
        };
        let start = line.start;
        let digest;
        let printed = match line.content {
            Content::Bytes(bytes) => PrintedLine::Bytes { bytes, terminated: false },
            Content::Oversized { sha256 } => {
                digest = hex::encode(&sha256);
                PrintedLine::Oversized { bytes: line.end - line.start, sha256: &digest }
            }
        };
        let mut emitter = Emitter::new(&self.context.run_id, &mut self.ids, &mut self.scratch);
        self.translator.line(printed, &mut emitter);
        for (index, chunk) in self.scratch.drain(..).enumerate() {
            out.push((Origin::Journal { byte: start, index: index as u32 }, chunk));
        }
    }

    /// The agent has ended: closes what is open and judges.
    pub fn finish(&mut self, exit: &AgentExit, out: &mut Vec<(Origin, Chunk)>) -> Ended {
        let byte = self.splitter.line_start();
        let mut emitter = Emitter::new(&self.context.run_id, &mut self.ids, &mut self.scratch);
        let ended = self.translator.finish(exit, &mut emitter);
        for (index, chunk) in self.scratch.drain(..).enumerate() {
            out.push((Origin::Journal { byte, index: index as u32 }, chunk));
        }
        ended
    }
}

/// Whether the sentinel's line is the first of these bytes.
fn begins_with_sentinel(bytes: &[u8], secret: &ExitSecret) -> bool {
    bytes.starts_with(b"{\"__exit\":")
        && bytes
            .split(|byte| *byte == b'\n')
            .next()
            .is_some_and(|line| sentinel::parse(line, secret).is_some())
}
