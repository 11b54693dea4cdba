//! Splits a journal into lines, whatever the sizes of the pieces in which it is read.

use sha2::{Digest, Sha256};

/// The longest line that is kept whole, in bytes. A longer one is told by its size and digest.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// A complete line, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The journal's byte at which the line begins.
    pub start: u64,
    /// The journal's byte at which its line break stands.
    pub end: u64,
    /// What it holds.
    pub content: Content<'a>,
}

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// The line's bytes.
    Bytes(&'a [u8]),
    /// The line was longer than [`MAX_LINE_BYTES`]; its size is `end - start`.
    Oversized {
        /// SHA-256 of the whole line.
        sha256: [u8; 32],
    },
}

/// Carries an unfinished line from one piece to the next. Memory is bounded by the longest line that is kept whole.
#[derive(Debug, Clone)]
pub struct LineSplitter {
    /// Where the unfinished line begins.
    start: u64,
    carry: Carry,
    /// The bytes of the line that was handed over last, where it came in several pieces.
    done: Vec<u8>,
    limit: usize,
}

#[derive(Debug, Clone)]
enum Carry {
    Bytes(Vec<u8>),
    Oversized { hasher: Sha256, len: u64 },
}

impl LineSplitter {
    /// Starts at a byte of the journal at which a line begins.
    pub fn new(start: u64) -> Self {
        Self::with_limit(start, MAX_LINE_BYTES)
    }

    /// As [`LineSplitter::new`], with another bound for lines that are kept whole.
    pub fn with_limit(start: u64, limit: usize) -> Self {
        LineSplitter { start, carry: Carry::Bytes(Vec::new()), done: Vec::new(), limit }
    }

    /// The byte at which the unfinished line begins: where a successor resumes.
    pub fn line_start(&self) -> u64 {
        self.start
    }

    /// The byte that the next piece begins with.
    pub fn position(&self) -> u64 {
        self.start
            + match &self.carry {
                Carry::Bytes(bytes) => bytes.len() as u64,
                Carry::Oversized { len, .. } => *len,
            }
    }

    /// Takes the next piece and hands over the first line that it completes, with the bytes of the piece that were
    /// consumed. `None`: the piece was consumed whole and completed no line.
    pub fn next_line<'a>(&'a mut self, piece: &'a [u8]) -> Option<(Line<'a>, usize)> {
        let Some(at) = memchr::memchr(b'\n', piece) else {
            self.carry_over(piece);
            return None;
        };
        let (head, consumed) = (&piece[..at], at + 1);
        let start = self.start;
        let unbroken =
            matches!(&self.carry, Carry::Bytes(bytes) if bytes.is_empty()) && head.len() <= self.limit;
        if unbroken {
            let end = start + head.len() as u64;
            self.start = end + 1;
            return Some((Line { start, end, content: Content::Bytes(head) }, consumed));
        }
        self.carry_over(head);
        Some((self.take(start), consumed))
    }

    /// The unfinished line at the end of a journal that will not grow, if there is one.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        if self.position() == self.start {
            return None;
        }
        let start = self.start;
        Some(self.take(start))
    }

    /// Hands over the carried line and begins the next.
    fn take(&mut self, start: u64) -> Line<'_> {
        let end = self.position();
        self.start = end + 1;
        let content = match std::mem::replace(&mut self.carry, Carry::Bytes(Vec::new())) {
            Carry::Oversized { hasher, .. } => Content::Oversized { sha256: hasher.finalize().into() },
            Carry::Bytes(bytes) => {
                self.done = bytes;
                Content::Bytes(&self.done)
            }
        };
        Line { start, end, content }
    }

    fn carry_over(&mut self, piece: &[u8]) {
        match &mut self.carry {
            Carry::Bytes(bytes) if bytes.len() + piece.len() <= self.limit => bytes.extend_from_slice(piece),
            Carry::Bytes(bytes) => {
                let mut hasher = Sha256::new();
                hasher.update(&*bytes);
                hasher.update(piece);
                let len = (bytes.len() + piece.len()) as u64;
                self.carry = Carry::Oversized { hasher, len };
            }
            Carry::Oversized { hasher, len } => {
                hasher.update(piece);
                *len += piece.len() as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line as an owned value: start, end, bytes or digest.
    type Owned = (u64, u64, Result<Vec<u8>, [u8; 32]>);

    fn split(pieces: &[&[u8]], limit: usize) -> Vec<Owned> {
        let mut out = Vec::new();
        let mut splitter = LineSplitter::with_limit(0, limit);
        let own = |line: Line<'_>| {
            let content = match line.content {
                Content::Bytes(bytes) => Ok(bytes.to_vec()),
                Content::Oversized { sha256 } => Err(sha256),
            };
            (line.start, line.end, content)
        };
        for piece in pieces {
            let mut rest = *piece;
            while let Some((line, used)) = splitter.next_line(rest) {
                out.push(own(line));
                rest = &rest[used..];
            }
        }
        out.extend(splitter.finish().map(own));
        out
    }

    #[test]
    fn long_lines_are_told_by_digest() {
        let digest: [u8; 32] = Sha256::digest(b"0123456789").into();
        let expected = vec![(0, 10, Err(digest)), (11, 13, Ok(b"ab".to_vec()))];
        assert_eq!(split(&[b"0123456789\nab\n"], 8), expected);
        assert_eq!(split(&[b"01234", b"56", b"789\na", b"b"], 8), expected);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            bytes in prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n')], 0..200),
            cuts in prop::collection::vec(0usize..200, 0..8),
            limit in 1usize..20,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(split(&pieces, limit), split(&[&bytes], limit));
        }
    }
}
