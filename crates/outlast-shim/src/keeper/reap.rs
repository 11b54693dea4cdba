//! The keeper's loop: start what the shim says, reap everything, tell the shim.

use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions};

use super::channel::{Channel, Command, Report};
use super::exec::Stage;
use super::setup::{Enclosure, Orders};
use crate::fence::tree;
use crate::sys::{self, Forked};

/// Between two rounds of killing: what forked while a round looked at the tree is found by the next one.
const KILL_ROUND_MS: u64 = 10;

struct Watch<'a> {
    orders: &'a Orders<'a>,
    channel: &'a Channel,
    agent: Option<Pid>,
    /// Whether a plan was started and the shim was not told yet that nothing of it is left.
    busy: bool,
    killing: bool,
}

/// Runs until the shim is gone. The shim ends the keeper by killing it, when there is nothing left to keep.
pub(super) fn watch(orders: &Orders<'_>, channel: &Channel, signals: &OwnedFd) -> i32 {
    let mut watch = Watch { orders, channel, agent: None, busy: false, killing: false };
    if channel.send_report(Report::Ready).is_err() {
        return 1;
    }
    loop {
        let timeout = (watch.busy && watch.killing).then_some(KILL_ROUND_MS);
        let Ok([child, command]) = sys::wait_readable([Some(signals), Some(&channel.0)], timeout) else {
            return 1;
        };
        if child {
            sys::take_signals(signals);
        }
        if command {
            match channel.receive_command() {
                Ok(Some(Command::Start(plan))) => watch.start(plan),
                Ok(Some(Command::Terminate)) => watch.signal_tree(Signal::TERM),
                Ok(Some(Command::Kill)) => watch.killing = true,
                Ok(None) | Err(_) => return 1,
            }
        }
        if watch.busy && watch.killing {
            watch.signal_tree(Signal::KILL);
        }
        if watch.reap().is_err() {
            return 1;
        }
    }
}

impl Watch<'_> {
    fn start(&mut self, plan: i32) {
        self.busy = true;
        let failure = match self.try_start(plan) {
            Ok(failure) => failure,
            Err(errno) => Some((Stage::Process as i32, errno.raw_os_error())),
        };
        if let Some((stage, errno)) = failure {
            let report = Report::NotStarted { stage: Stage::from_wire(stage), errno };
            let _ = self.channel.send_report(report);
        }
    }

    /// Forks the agent and waits until it runs its program or has said why it does not.
    fn try_start(&mut self, plan: i32) -> rustix::io::Result<Option<(i32, i32)>> {
        let plan = usize::try_from(plan).ok().and_then(|plan| self.orders.plans.get(plan));
        let plan = plan.ok_or(rustix::io::Errno::INVAL)?;
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let keeper = rustix::process::getpid();
        let io_errno =
            |error: std::io::Error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        match sys::fork(0).map_err(io_errno)? {
            Forked::Child => {
                let (stage, errno) = plan.exec(keeper, self.orders.stdout, self.orders.stderr, &writer);
                let mut message = [0; 8];
                message[..4].copy_from_slice(&(stage as i32).to_ne_bytes());
                message[4..].copy_from_slice(&errno.raw_os_error().to_ne_bytes());
                let _ = rustix::io::write(&writer, &message);
                sys::exit_now(127);
            }
            Forked::Parent(pid) => self.agent = Some(pid),
        }
        drop(writer);
        let mut message = [0; 8];
        // The pipe closes itself when the program is replaced: the end of input means success.
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&reader, &mut message))?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, i32::from_ne_bytes);
        Ok((read == message.len()).then(|| (number(&message[..4]), number(&message[4..]))))
    }

    /// Reaps whatever has died. The agent's end is told as soon as it is known; that nothing is left, after it.
    fn reap(&mut self) -> std::io::Result<()> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.agent => {
                    self.agent = None;
                    self.channel.send_report(Report::Exited(status.as_raw()))?;
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Ok(()),
                // No child is left. Orphans of the tree become children of this process, so the tree is empty.
                Err(_) => {
                    if std::mem::take(&mut self.busy) {
                        self.killing = false;
                        self.channel.send_report(Report::Empty)?;
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Signals every process of the tree. One that is stopped gets a chance to obey.
    fn signal_tree(&self, signal: Signal) {
        match self.orders.enclosure {
            // As the init of its namespace this reaches every process in it and nothing else.
            Enclosure::Namespaces { .. } => {
                let everyone = Pid::INIT;
                let _ = rustix::process::kill_process_group(everyone, signal);
                if signal != Signal::KILL {
                    let _ = rustix::process::kill_process_group(everyone, Signal::CONT);
                }
            }
            Enclosure::Adoption => {
                let _ = tree::signal_below_self(signal);
            }
        }
    }
}
