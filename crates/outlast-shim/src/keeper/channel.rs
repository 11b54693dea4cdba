//! What shim and keeper say to each other.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::exec::Stage;

/// From the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Start the plan of this number.
    Start(i32),
    /// Ask every process of the tree to end.
    Terminate,
    /// Kill every process of the tree, until none is left. The keeper itself stays.
    Kill,
}

/// From the keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// It is in its place and waits.
    Ready,
    /// This fence cannot be had.
    Unfit {
        /// What failed: an index into [`super::setup::STEPS`].
        step: i32,
        /// Why.
        errno: i32,
    },
    /// The agent's program could not be started.
    NotStarted {
        /// What failed.
        stage: Stage,
        /// Why.
        errno: i32,
    },
    /// The agent's main process has ended, with this wait status.
    Exited(i32),
    /// No process of the tree is left.
    Empty,
}

/// One end. Messages keep their bounds, and the end of one process is the end of input for the other.
pub(crate) struct Channel(pub(crate) OwnedFd);

type Wire = [i32; 3];

impl Channel {
    pub(crate) fn pair() -> io::Result<(Channel, Channel)> {
        let (a, b) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(a), Channel(b)))
    }

    pub(crate) fn send_command(&self, command: Command) -> io::Result<()> {
        self.send(match command {
            Command::Start(plan) => [0, plan, 0],
            Command::Terminate => [1, 0, 0],
            Command::Kill => [2, 0, 0],
        })
    }

    /// None where the shim is gone.
    pub(crate) fn receive_command(&self) -> io::Result<Option<Command>> {
        Ok(match self.receive()? {
            Some([0, plan, _]) => Some(Command::Start(plan)),
            Some([1, ..]) => Some(Command::Terminate),
            Some([2, ..]) => Some(Command::Kill),
            _ => None,
        })
    }

    pub(crate) fn send_report(&self, report: Report) -> io::Result<()> {
        self.send(match report {
            Report::Ready => [0, 0, 0],
            Report::Unfit { step, errno } => [1, step, errno],
            Report::NotStarted { stage, errno } => [2, stage as i32, errno],
            Report::Exited(status) => [3, status, 0],
            Report::Empty => [4, 0, 0],
        })
    }

    /// None where the keeper is gone.
    pub(crate) fn receive_report(&self) -> io::Result<Option<Report>> {
        Ok(match self.receive()? {
            Some([0, ..]) => Some(Report::Ready),
            Some([1, step, errno]) => Some(Report::Unfit { step, errno }),
            Some([2, stage, errno]) => Some(Report::NotStarted { stage: Stage::from_wire(stage), errno }),
            Some([3, status, _]) => Some(Report::Exited(status)),
            Some([4, ..]) => Some(Report::Empty),
            _ => None,
        })
    }

    fn send(&self, message: Wire) -> io::Result<()> {
        let mut bytes = [0; size_of::<Wire>()];
        for (chunk, number) in bytes.chunks_exact_mut(4).zip(message) {
            chunk.copy_from_slice(&number.to_ne_bytes());
        }
        rustix::io::retry_on_intr(|| rustix::net::send(&self.0, &bytes, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Option<Wire>> {
        let mut bytes = [0; size_of::<Wire>()];
        let received =
            rustix::io::retry_on_intr(|| rustix::net::recv(&self.0, &mut bytes, RecvFlags::empty()));
        match received {
            Ok((len, _)) if len == bytes.len() => {}
            Ok(_) | Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let mut message = [0; 3];
        for (chunk, number) in bytes.chunks_exact(4).zip(&mut message) {
            *number = chunk.try_into().map_or(0, i32::from_ne_bytes);
        }
        Ok(Some(message))
    }
}
