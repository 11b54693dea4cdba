//! Where a stream goes.

use std::io::{self, IsTerminal, Write};

use outlast_core::run::RunRecord;
use outlast_store::StoredEvent;
use tokio::sync::{mpsc, oneshot};

use super::human::Human;
use crate::cli::say::tell;

/// Prints a stream's events to standard output, on a thread of its own: whoever reads it slowly or not at all holds up
/// the printing, and neither a driver in this process nor its leases nor a signal.
#[derive(Debug)]
pub struct Output {
    human: Option<Human>,
    rendered: Vec<u8>,
    pages: Option<mpsc::Sender<Vec<u8>>>,
    printed: Option<oneshot::Receiver<io::Result<()>>>,
}

impl Output {
    pub fn stream(json: bool) -> io::Result<Self> {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let human = (!json).then(|| Human::new(io::stdout().is_terminal(), colour));
        // One page waits while another is printed. The rest stays in the store.
        let (pages, to_print) = mpsc::channel(1);
        let (done, printed) = oneshot::channel();
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            // Whoever waited for it may have left.
            let _ = done.send(print(to_print));
        })?;
        Ok(Output { human, rendered: Vec::new(), pages: Some(pages), printed: Some(printed) })
    }

    /// Takes one event, to be printed with the next [`Output::flush`].
    pub fn event(&mut self, event: &StoredEvent) {
        let out = &mut self.rendered;
        match &mut self.human {
            // Memory takes everything.
            Some(human) => human.event(out, event).unwrap_or_default(),
            // The stored JSON is what goes over the wire; offsets need no escaping.
            None => {
                out.extend_from_slice(b"{\"id\":\"");
                out.extend_from_slice(event.seq.offset().as_bytes());
                out.extend_from_slice(b"\",\"chunk\":");
                out.extend_from_slice(event.json.as_bytes());
                out.extend_from_slice(b"}\n");
            }
        }
    }

    /// Hands over what was taken, once there is room. An error means that nobody reads any more, or that the disk is
    /// full. Dropped halfway, nothing is lost.
    pub async fn flush(&mut self) -> io::Result<()> {
        let (false, Some(pages)) = (self.rendered.is_empty(), &self.pages) else {
            return Ok(());
        };
        if let Ok(room) = pages.reserve().await {
            room.send(std::mem::take(&mut self.rendered));
            return Ok(());
        }
        self.finish_printing().await
    }

    /// Prints everything. What the stream leaves open is ended.
    pub async fn finish(&mut self) -> io::Result<()> {
        if let Some(human) = &mut self.human {
            human.end_line(&mut self.rendered)?;
        }
        self.flush().await?;
        self.finish_printing().await
    }

    async fn finish_printing(&mut self) -> io::Result<()> {
        self.pages = None;
        match self.printed.take() {
            Some(printed) => {
                printed.await.unwrap_or_else(|_| Err(io::Error::other("the printing thread failed")))
            }
            None => Ok(()),
        }
    }

    /// How the run ended, for people, on standard error.
    pub fn summary(&self, run: &RunRecord) {
        if let Some(human) = &self.human {
            tell!("{}", human.summary(run));
        }
    }
}

fn print(mut pages: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Some(page) = pages.blocking_recv() {
        out.write_all(&page)?;
        out.flush()?;
    }
    Ok(())
}
