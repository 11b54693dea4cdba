//! What happened, in order.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::Time;

/// Lines with the simulated time in front.
#[derive(Debug, Clone)]
pub(super) struct History {
    time: Time,
    lines: Arc<Mutex<Vec<String>>>,
}

impl History {
    pub fn new(time: Time) -> History {
        History { time, lines: Arc::default() }
    }

    pub fn note(&self, what: impl Display) {
        let line = format!("{:>9} {what}", self.time.now());
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
