//! Scripted agents: what they have printed is a function of the time.

/// What an agent does from its start on, in simulated milliseconds.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// How many lines it prints.
    pub lines: u64,
    /// Between two of them.
    pub every: u64,
    /// Its exit status.
    pub exit: i32,
    /// Whether it ends only when it is killed for good.
    pub stubborn: bool,
}

/// What was done to it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    /// When it was asked to end, and killed after this grace.
    pub killed: Option<(u64, u64)>,
    /// When its shim was killed: it dies with it, and no exit is recorded.
    pub lost: Option<u64>,
}

/// An agent as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Now {
    /// How many lines it has printed.
    pub lines: u64,
    /// Its exit status, once it has ended and its shim has recorded it.
    pub exit: Option<i32>,
    /// Whether the shim lives.
    pub alive: bool,
}

impl Script {
    /// The text of its lines.
    pub fn text(lines: u64) -> String {
        (0..lines).map(|n| format!("line {n}\n")).collect()
    }

    /// How it is, so long after its start.
    pub fn at(&self, started: u64, now: u64, done: Done) -> Now {
        let printed = |at: u64| (at.saturating_sub(started) / self.every.max(1)).min(self.lines);
        let own_end = started + self.lines * self.every.max(1);
        let kill = done.killed.map(|(at, grace)| if self.stubborn { (at + grace, 137) } else { (at, 143) });
        let (end, exit) = match kill {
            Some((at, exit)) if at < own_end => (at, exit),
            _ => (own_end, self.exit),
        };
        match done.lost {
            Some(lost) if lost <= end && lost <= now => {
                Now { lines: printed(lost), exit: None, alive: false }
            }
            _ if now >= end => Now { lines: printed(end), exit: Some(exit), alive: false },
            _ => Now { lines: printed(now), exit: None, alive: true },
        }
    }

    /// When it may have changed next.
    pub fn next(&self, started: u64, now: u64) -> u64 {
        let every = self.every.max(1);
        started + (now.saturating_sub(started) / every + 1) * every
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life() {
        let script = Script { lines: 3, every: 10, exit: 7, stubborn: true };
        let at = |now, done| script.at(100, now, done);
        let fine = Done::default();
        assert_eq!(at(100, fine), Now { lines: 0, exit: None, alive: true });
        assert_eq!(at(119, fine), Now { lines: 1, exit: None, alive: true });
        assert_eq!(at(130, fine), Now { lines: 3, exit: Some(7), alive: false });
        let killed = Done { killed: Some((111, 5)), lost: None };
        assert_eq!(at(115, killed), Now { lines: 1, exit: None, alive: true });
        assert_eq!(at(999, killed), Now { lines: 1, exit: Some(137), alive: false });
        let late = Done { killed: Some((129, 5)), lost: None };
        assert_eq!(at(999, late).exit, Some(7), "it had ended when its grace was over");
        let lost = Done { killed: None, lost: Some(125) };
        assert_eq!(at(124, lost), Now { lines: 2, exit: None, alive: true });
        assert_eq!(at(999, lost), Now { lines: 2, exit: None, alive: false });
        assert_eq!(at(999, Done { killed: None, lost: Some(131) }).exit, Some(7), "it was over");
    }
}
