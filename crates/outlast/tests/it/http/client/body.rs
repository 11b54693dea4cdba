//! The body of an answer, as its framing delimits it.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

/// A client that hears nothing for so long has hung.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As the framing says that it ends: everything was sent.
    Clean,
    /// The connection ended first.
    Cut,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    /// What is left of the chunk; none between two.
    Chunks(Option<u64>),
    Over,
}

/// Reads a body: `Ok(0)` is its clean end, `UnexpectedEof` a cut. Where nothing comes for longer than the socket's
/// patience, `WouldBlock`, and reading may go on.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) wire: BufReader<TcpStream>,
    framing: Framing,
    /// A line of the framing that has not come whole.
    line: Vec<u8>,
}

impl Body {
    pub(super) fn new(wire: BufReader<TcpStream>, chunked: bool, length: u64) -> Body {
        let framing = match (chunked, length) {
            (true, _) => Framing::Chunks(None),
            (false, 0) => Framing::Over,
            (false, length) => Framing::Length(length),
        };
        Body { wire, framing, line: Vec::new() }
    }

    fn line(&mut self) -> io::Result<String> {
        cut(self.wire.read_until(b'\n', &mut self.line).and_then(|_| {
            if self.line.ends_with(b"\r\n") { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
        }))?;
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        Ok(line)
    }

    fn some(&mut self, buffer: &mut [u8], left: u64) -> io::Result<usize> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match cut(self.wire.read(&mut buffer[..most]))? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            n => Ok(n),
        }
    }
}

/// However a connection ends too early, it is a cut.
fn cut<T>(read: io::Result<T>) -> io::Result<T> {
    read.map_err(|error| match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => ErrorKind::UnexpectedEof.into(),
        ErrorKind::TimedOut => ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.framing {
                Framing::Over => return Ok(0),
                Framing::Length(left) => {
                    let n = self.some(buffer, left)?;
                    let left = left - n as u64;
                    self.framing = if left == 0 { Framing::Over } else { Framing::Length(left) };
                    return Ok(n);
                }
                Framing::Chunks(None) => {
                    let line = self.line()?;
                    let size = u64::from_str_radix(&line, 16).expect("the size of a chunk");
                    self.framing = Framing::Chunks(Some(size));
                    if size == 0 {
                        assert_eq!(self.line()?, "", "nothing follows the last chunk");
                        self.framing = Framing::Over;
                    }
                }
                Framing::Chunks(Some(0)) => {
                    assert_eq!(self.line()?, "", "the end of a chunk");
                    self.framing = Framing::Chunks(None);
                }
                Framing::Chunks(Some(left)) => {
                    let n = self.some(buffer, left)?;
                    self.framing = Framing::Chunks(Some(left - n as u64));
                    return Ok(n);
                }
            }
        }
    }
}
