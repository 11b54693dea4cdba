//! The loop.

use std::os::fd::OwnedFd;

use outlast_core::journal::exit::ExitCause;
use outlast_core::journal::sentinel;
use outlast_core::shim::{Fallback, OutputLimits};
use outlast_core::{ErrorCode, ExitSecret};

use super::sink::{BUFFER_BYTES, DISK_RETRY_MS, Fate, JournalSink, StderrSink};
use super::source::Source;
use crate::exit::Ending;
use crate::fence::active::ActiveFence;
use crate::files::RunFiles;
use crate::keeper::{Command, ExecPlan, Report};
use crate::sys;

/// How long a tree that was asked to end may take.
const STOP_GRACE_MS: u64 = 5_000;
/// How long what the agent's main process leaves behind may go on.
const LEFTOVER_GRACE_MS: u64 = 2_000;
/// How long the keeper may take to kill its tree before it is killed as well.
const KILL_GRACE_MS: u64 = 1_000;
/// Between two blows at a fence that is not empty yet: longer and longer, as what does not die at once waits for a
/// device.
const FIRST_STRIKE_MS: u64 = 10;
const LAST_STRIKE_MS: u64 = 1_000;

/// What the loop works with.
pub(crate) struct Scene<'a> {
    pub(crate) files: &'a RunFiles,
    pub(crate) limits: OutputLimits,
    pub(crate) secret: &'a ExitSecret,
    pub(crate) plans: &'a [ExecPlan],
    pub(crate) fallback: Option<&'a Fallback>,
    /// Readable when the shim is asked to stop.
    pub(crate) stop: &'a OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// How far the tree is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tree {
    /// It may live; from the given time on it is killed.
    Alive { until: Option<u64> },
    /// The keeper is killing it; from the given time on the keeper counts as stuck.
    Dying { until: u64 },
    /// The keeper is stuck or dead: everything inside the fence is struck until nothing is left.
    Struck { next: u64, pause: u64 },
    /// No process is left.
    Gone,
}

struct Pump<'a> {
    scene: Scene<'a>,
    fence: &'a mut ActiveFence,
    out: Source,
    err: Source,
    journal: JournalSink<'a>,
    stderr: StderrSink<'a>,
    tree: Tree,
    plan: usize,
    /// The wait status of the agent's main process.
    status: Option<i32>,
    /// What a shell would say where the agent could not be started.
    not_started: Option<i32>,
    cause: Option<ExitCause>,
    stopping: bool,
}

/// Starts the agent and runs until no process of it is left and everything that it has printed is in its place.
pub(crate) fn run(mut scene: Scene<'_>, fence: &mut ActiveFence) -> std::io::Result<Ending> {
    let placeholder =
        || rustix::fs::open("/dev/null", rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty());
    let out = std::mem::replace(&mut scene.stdout, placeholder()?);
    let err = std::mem::replace(&mut scene.stderr, placeholder()?);
    let mut pump = Pump {
        out: Source::new(out),
        err: Source::new(err),
        journal: JournalSink::new(&scene.files.journal, scene.limits.stdout),
        stderr: StderrSink::new(&scene.files.stderr, scene.limits.stderr),
        scene,
        fence,
        tree: Tree::Alive { until: None },
        plan: 0,
        status: None,
        not_started: None,
        cause: None,
        stopping: false,
    };
    pump.start(0);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        pump.turn(&mut buffer)?;
        if pump.is_over() && !pump.start_fallback() {
            return Ok(pump.ending());
        }
    }
}

impl Pump<'_> {
    fn start(&mut self, plan: usize) {
        self.plan = plan;
        self.tree = Tree::Alive { until: None };
        (self.out.drained, self.err.drained) = (false, false);
        self.command(Command::Start(plan as i32));
    }

    /// Waits for whatever comes first and deals with it.
    fn turn(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let gone = self.tree == Tree::Gone;
        let held = self.journal.is_held();
        let now = sys::now_ms();
        let mut timeout = match self.tree {
            Tree::Alive { until: None } => None,
            Tree::Alive { until: Some(at) } | Tree::Dying { until: at } | Tree::Struck { next: at, .. } => {
                Some(at.saturating_sub(now))
            }
            // Nothing more will come: what the pipes hold is read without waiting.
            Tree::Gone => Some(0),
        };
        if held {
            timeout = Some(timeout.filter(|_| !gone).map_or(DISK_RETRY_MS, |at| at.min(DISK_RETRY_MS)));
        }
        let keeper = self.fence.keeper.is_some() && !matches!(self.tree, Tree::Struck { .. } | Tree::Gone);
        let [stop, report, out, err] = sys::wait_readable(
            [
                Some(self.scene.stop),
                keeper.then_some(&self.fence.channel.0),
                // While bytes wait for the disk nothing is read, so the agent waits too.
                self.out.fd().filter(|_| !held),
                self.err.fd(),
            ],
            timeout,
        )?;
        let now = sys::now_ms();
        if stop && sys::take_signals(self.scene.stop) {
            self.stop(now);
        }
        // Output first: what was printed before the end is in the pipe when the end is told.
        if held {
            // Of a tree that was stopped and is gone, nobody waits for the last words.
            let fate = self.journal.retry(now, !(gone && self.stopping));
            self.settle(fate, now);
        } else if out || gone {
            self.pump_out(buffer, now)?;
        }
        if err || gone {
            self.pump_err(buffer, now)?;
        }
        if report {
            match self.fence.channel.receive_report()? {
                Some(report) => self.hear(report, now),
                // Somebody killed the keeper: a host that found this shim too slow, or the agent.
                None => self.tree = Tree::Struck { next: now, pause: FIRST_STRIKE_MS },
            }
        }
        self.advance(now);
        Ok(())
    }

    fn pump_out(&mut self, buffer: &mut [u8], now: u64) -> std::io::Result<()> {
        if let Some(bytes) = self.out.read(buffer)? {
            let fate = self.journal.take(bytes, now);
            self.settle(fate, now);
        }
        Ok(())
    }

    fn pump_err(&mut self, buffer: &mut [u8], now: u64) -> std::io::Result<()> {
        if let Some(bytes) = self.err.read(buffer)?
            && let Some(cause) = self.stderr.take(bytes)
        {
            self.give_up(cause, now);
        }
        Ok(())
    }

    fn settle(&mut self, fate: Fate, now: u64) {
        if let Fate::Closed(cause) = fate {
            self.give_up(cause, now);
        }
    }

    /// The agent goes beyond what it may: it is killed, and that is the run's cause.
    fn give_up(&mut self, cause: ExitCause, now: u64) {
        if self.cause.is_none() {
            self.cause = Some(cause);
            self.kill(now);
        }
    }

    /// Somebody wants the run to end. Repeating it gives no second grace.
    fn stop(&mut self, now: u64) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        if let Tree::Alive { until } = self.tree {
            self.command(Command::Terminate);
            let deadline = now + STOP_GRACE_MS;
            self.tree = Tree::Alive { until: Some(until.map_or(deadline, |until| until.min(deadline))) };
        }
    }

    fn kill(&mut self, now: u64) {
        if matches!(self.tree, Tree::Alive { .. }) {
            self.command(Command::Kill);
            self.tree = Tree::Dying { until: now + KILL_GRACE_MS };
        }
    }

    /// A keeper that cannot be told anything is dead, which its channel tells as well.
    fn command(&self, command: Command) {
        let _ = self.fence.channel.send_command(command);
    }

    fn hear(&mut self, report: Report, now: u64) {
        match report {
            Report::NotStarted { stage, errno } => {
                let (exit, message) = self.scene.plans[self.plan].explain(stage, errno);
                self.not_started = Some(exit);
                self.cause.get_or_insert(ExitCause { code: ErrorCode::LaunchFailed, message });
            }
            Report::Exited(status) => {
                self.status = Some(status);
                if let Tree::Alive { until } = self.tree {
                    let deadline = now + LEFTOVER_GRACE_MS;
                    self.tree =
                        Tree::Alive { until: Some(until.map_or(deadline, |until| until.min(deadline))) };
                }
            }
            Report::Empty => self.gone(),
            Report::Ready | Report::Unfit { .. } => {}
        }
    }

    /// Deadlines.
    fn advance(&mut self, now: u64) {
        match self.tree {
            Tree::Alive { until: Some(until) } if now >= until => self.kill(now),
            Tree::Dying { until } if now >= until => {
                self.tree = Tree::Struck { next: now, pause: FIRST_STRIKE_MS };
            }
            _ => {}
        }
        if let Tree::Struck { next, pause } = self.tree
            && now >= next
        {
            self.fence.strike();
            if self.fence.is_gone() {
                self.gone();
            } else {
                // Without an end: a sentinel says that the tree is gone, and it is not.
                self.tree = Tree::Struck { next: now + pause, pause: (2 * pause).min(LAST_STRIKE_MS) };
            }
        }
    }

    /// No process is left, so nothing new comes into the pipes; what they hold still has to be read.
    fn gone(&mut self) {
        self.tree = Tree::Gone;
        (self.out.drained, self.err.drained) = (false, false);
    }

    fn is_over(&self) -> bool {
        self.tree == Tree::Gone && self.out.drained && self.err.drained && !self.journal.is_held()
    }

    /// The second attempt of the launch, within the same fence, if it is due.
    fn start_fallback(&mut self) -> bool {
        let Some(fallback) = self.scene.fallback.filter(|_| self.plan == 0 && self.scene.plans.len() > 1)
        else {
            return false;
        };
        let failed = self.status.is_some_and(|status| status != 0) && self.not_started.is_none();
        let due = failed
            && !self.stopping
            && self.cause.is_none()
            && self.fence.keeper.is_some()
            && self.journal.written() <= Fallback::MAX_PRINTED
            && self.stderr.contains_any(&fallback.markers);
        if !due {
            return false;
        }
        let end_of_line = if self.journal.is_mid_line() { "\n" } else { "" };
        let note = format!("{end_of_line}{}\n", sentinel::restart_note(self.scene.secret));
        let now = sys::now_ms();
        let fate = self.journal.take(note.as_bytes(), now);
        if let Fate::Closed(cause) = fate {
            self.cause = Some(cause);
            return false;
        }
        self.status = None;
        self.start(1);
        true
    }

    fn ending(&self) -> Ending {
        let (exit, signal) = match (self.not_started, self.status) {
            (Some(exit), _) => (exit, None),
            (None, Some(status)) if libc::WIFSIGNALED(status) => {
                let signal = libc::WTERMSIG(status);
                (128 + signal, Some(signal))
            }
            (None, Some(status)) => (libc::WEXITSTATUS(status), None),
            // Whoever killed the keeper has killed the agent with it.
            (None, None) => (128 + libc::SIGKILL, Some(libc::SIGKILL)),
        };
        Ending { exit, signal, stdout_bytes: self.journal.written(), cause: self.cause.clone() }
    }
}
