//! Where the agent's output goes.

use std::io;
use std::os::fd::OwnedFd;

use outlast_core::ErrorCode;
use outlast_core::journal::exit::ExitCause;

/// For how long a full disk is waited for. Meanwhile nothing is read, so the agent stands still at its next line.
pub(super) const DISK_PATIENCE_MS: u64 = 10_000;
/// How often the disk is tried meanwhile.
pub(super) const DISK_RETRY_MS: u64 = 50;

/// How much is read at once: what a pipe holds.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// What happened to the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are written, or dropped where nothing is taken any more.
    Done,
    /// Some wait for the disk.
    Held,
    /// Nothing is taken from now on, for this reason.
    Closed(ExitCause),
}

/// The journal's end.
pub(super) struct JournalSink<'a> {
    file: &'a OwnedFd,
    limit: u64,
    written: u64,
    /// The last byte that is in the journal.
    last: Option<u8>,
    /// Bytes that the disk has not taken yet, and when the first attempt failed.
    held: Option<(Vec<u8>, u64)>,
    closed: bool,
}

impl<'a> JournalSink<'a> {
    pub(super) fn new(file: &'a OwnedFd, limit: u64) -> Self {
        JournalSink { file, limit, written: 0, last: None, held: None, closed: false }
    }

    /// Bytes that are in the journal.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Whether its last line has no line break yet.
    pub(super) fn is_mid_line(&self) -> bool {
        self.last.is_some_and(|byte| byte != b'\n')
    }

    /// Whether bytes wait for the disk.
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the agent's next bytes. Not called while some are held.
    pub(super) fn take(&mut self, bytes: &[u8], now: u64) -> Fate {
        if self.closed {
            return Fate::Done;
        }
        let room = usize::try_from(self.limit.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let (kept, over) = (&bytes[..bytes.len().min(room)], bytes.len() > room);
        match self.write(kept, Some(now), now) {
            Fate::Done if over => {
                self.closed = true;
                Fate::Closed(ExitCause {
                    code: ErrorCode::OutputLimit,
                    message: format!("the agent printed more than the {} bytes that it may", self.limit),
                })
            }
            // What is over the limit is dropped with the rest if the disk stays full, and found again if it does not:
            // the limit is reached then, and the next byte is over it.
            fate => fate,
        }
    }

    /// Tries held bytes again; for the last time, where nobody has patience any more.
    pub(super) fn retry(&mut self, now: u64, patient: bool) -> Fate {
        match self.held.take() {
            Some((bytes, since)) => self.write(&bytes, patient.then_some(since), now),
            None => Fate::Done,
        }
    }

    /// Writes bytes for which the disk is waited for since the given time; none: not at all.
    fn write(&mut self, mut bytes: &[u8], mut since: Option<u64>, now: u64) -> Fate {
        while !bytes.is_empty() {
            match rustix::io::retry_on_intr(|| rustix::io::write(self.file, bytes)) {
                Ok(0) => {}
                Ok(written) => {
                    self.written += written as u64;
                    self.last = bytes.get(written - 1).copied();
                    bytes = &bytes[written..];
                    // Progress earns new patience.
                    since = since.map(|_| now);
                }
                Err(error) => {
                    if let Some(since) = since.filter(|since| now.saturating_sub(*since) < DISK_PATIENCE_MS) {
                        self.held = Some((bytes.to_vec(), since));
                        return Fate::Held;
                    }
                    self.closed = true;
                    let error = io::Error::from(error);
                    let what = if error.kind() == io::ErrorKind::StorageFull {
                        "the disk that holds the journal is full"
                    } else {
                        "the journal cannot be written"
                    };
                    let message = format!("{what}: {} bytes written, then: {error}", self.written);
                    return Fate::Closed(ExitCause { code: ErrorCode::OutputLimit, message });
                }
            }
        }
        Fate::Done
    }
}

/// The standard error's end. A full disk must not stop an agent for the sake of what it complains about: such bytes
/// are dropped.
pub(super) struct StderrSink<'a> {
    file: &'a OwnedFd,
    limit: u64,
    taken: u64,
}

impl<'a> StderrSink<'a> {
    pub(super) fn new(file: &'a OwnedFd, limit: u64) -> Self {
        StderrSink { file, limit, taken: 0 }
    }

    /// Takes bytes; a cause where they are more than allowed.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<ExitCause> {
        let room = usize::try_from(self.limit.saturating_sub(self.taken)).unwrap_or(usize::MAX);
        let mut kept = &bytes[..bytes.len().min(room)];
        self.taken += kept.len() as u64;
        while !kept.is_empty() {
            match rustix::io::retry_on_intr(|| rustix::io::write(self.file, kept)) {
                Ok(written) if written > 0 => kept = &kept[written..],
                _ => break,
            }
        }
        (bytes.len() > room).then(|| ExitCause {
            code: ErrorCode::OutputLimit,
            message: format!(
                "the agent printed more than the {} bytes that it may on its standard error",
                self.limit
            ),
        })
    }

    /// Whether one of the texts occurs in what was written.
    pub(super) fn contains_any(&self, texts: &[String]) -> bool {
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        let mut window = Vec::with_capacity(2 * BUFFER_BYTES);
        let mut at = 0;
        loop {
            // The end of the last piece stays, so that a text across two pieces is found.
            window.drain(..window.len().saturating_sub(longest));
            let kept = window.len();
            window.resize(kept + BUFFER_BYTES, 0);
            let read = rustix::io::retry_on_intr(|| rustix::io::pread(self.file, &mut window[kept..], at))
                .unwrap_or(0);
            window.truncate(kept + read);
            at += read as u64;
            let occurs = |text: &String| {
                !text.is_empty() && window.windows(text.len()).any(|piece| piece == text.as_bytes())
            };
            if texts.iter().any(occurs) {
                return true;
            }
            if read == 0 {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn file() -> OwnedFd {
        tempfile::tempfile().expect("file").into()
    }

    #[test]
    fn the_limit_is_exact() {
        let file = file();
        let mut sink = JournalSink::new(&file, 10);
        assert_eq!(sink.take(b"0123456789", 0), Fate::Done);
        assert!(matches!(sink.take(b"x", 0), Fate::Closed(_)));
        assert_eq!(sink.take(b"y", 0), Fate::Done);
        assert_eq!(sink.written(), 10);
    }

    #[test]
    fn a_disk_that_stays_full_ends_the_patience() {
        let full: OwnedFd = std::fs::File::options().write(true).open("/dev/full").expect("device").into();
        let mut sink = JournalSink::new(&full, 100);
        assert_eq!(sink.take(b"abc", 5), Fate::Held);
        assert!(sink.is_held());
        assert_eq!(sink.retry(5 + DISK_PATIENCE_MS - 1, true), Fate::Held);
        let Fate::Closed(cause) = sink.retry(5 + DISK_PATIENCE_MS, true) else {
            panic!("patience without end")
        };
        assert!(cause.message.contains("full: 0 bytes written"), "{}", cause.message);
        assert!(!sink.is_held());
        assert_eq!(sink.take(b"more", 0), Fate::Done, "the rest is dropped so that the agent can end");
    }

    #[test]
    fn markers_are_found_across_pieces() {
        let file = file();
        let mut sink = StderrSink::new(&file, 1 << 20);
        sink.take(&vec![b'.'; BUFFER_BYTES - 3]);
        sink.take(b"No conversation found");
        sink.take(&vec![b'.'; BUFFER_BYTES]);
        assert!(sink.contains_any(&["absent".into(), "conversation".into()]));
        assert!(!sink.contains_any(&["absent".into()]));
        assert!(!sink.contains_any(&[]));
        let empty = self::file();
        assert!(!StderrSink::new(&empty, 1).contains_any(&["x".into()]));
    }
}
