//! The reading end of one of the agent's pipes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;

/// A pipe from the agent.
pub(super) struct Source {
    fd: Option<OwnedFd>,
    /// Nothing was left in the pipe when it was read last.
    pub(super) drained: bool,
}

impl Source {
    /// Takes over the reading end.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Source { fd: Some(fd), drained: false }
    }

    /// What to wait for; none once every writer is gone.
    pub(super) fn fd(&self) -> Option<&OwnedFd> {
        self.fd.as_ref()
    }

    /// Reads what is there, without waiting.
    pub(super) fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        let Some(fd) = &self.fd else {
            self.drained = true;
            return Ok(None);
        };
        match rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut *buffer)) {
            Ok(0) => self.fd = None,
            Ok(read) => return Ok(Some(&buffer[..read])),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        self.drained = true;
        Ok(None)
    }
}

/// A pipe for the agent to write to: the reading end never waits, the writing end does as any pipe.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK)?;
    Ok((reader, writer))
}
