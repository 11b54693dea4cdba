//! Signals that end the viewing, not the run.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why the viewing ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Ctrl-C.
    Interrupt,
    /// The terminal was closed.
    HangUp,
    /// Somebody asked the process to end.
    Terminate,
}

impl Leave {
    /// 128 + the signal's number, as a shell says it.
    pub fn status(self) -> u8 {
        match self {
            Leave::HangUp => 129,
            Leave::Interrupt => 130,
            Leave::Terminate => 143,
        }
    }
}

/// Catches the signals from now on.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    hang_up: Signal,
    terminate: Signal,
}

impl Signals {
    pub fn catch() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Leave {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Leave::Interrupt,
            _ = self.hang_up.recv() => Leave::HangUp,
            _ = self.terminate.recv() => Leave::Terminate,
        }
    }
}

/// What a future yields, unless a signal comes first.
pub async fn unless_left<T>(signals: &mut Signals, future: impl Future<Output = T>) -> Result<T, Leave> {
    tokio::select! {
        biased;
        leave = signals.next() => Err(leave),
        value = future => Ok(value),
    }
}
