//! Where a stream goes.

use std::io::{BufWriter, IsTerminal, Stdout, Write};

use outlast_core::run::RunRecord;
use outlast_store::StoredEvent;

use super::human::Human;

/// Prints a stream's events to standard output.
#[derive(Debug)]
pub struct Output {
    out: BufWriter<Stdout>,
    human: Option<Human>,
}

impl Output {
    pub fn stream(json: bool) -> Self {
        let stdout = std::io::stdout();
        let human = (!json).then(|| {
            Human::new(stdout.is_terminal(), std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()))
        });
        Output { out: BufWriter::with_capacity(64 * 1024, stdout), human }
    }

    /// Prints one event. An error means that nobody reads any more, or that the disk is full.
    pub fn event(&mut self, event: &StoredEvent) -> std::io::Result<()> {
        match &mut self.human {
            Some(human) => human.event(&mut self.out, event),
            // The stored JSON is what goes over the wire; offsets need no escaping.
            None => {
                self.out.write_all(b"{\"id\":\"")?;
                self.out.write_all(event.seq.offset().as_bytes())?;
                self.out.write_all(b"\",\"chunk\":")?;
                self.out.write_all(event.json.as_bytes())?;
                self.out.write_all(b"}\n")
            }
        }
    }

    pub fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }

    /// The stream stops before its end: the line that is being written is ended.
    pub fn interrupted(&mut self) {
        if let Some(human) = &mut self.human {
            // Whoever reads may be gone.
            let _ = human.end_line(&mut self.out);
        }
        let _ = self.out.flush();
    }

    /// How the run ended, for people, on standard error.
    pub fn summary(&mut self, run: &RunRecord) {
        self.interrupted();
        if let Some(human) = &self.human {
            eprintln!("{}", human.summary(run));
        }
    }
}
