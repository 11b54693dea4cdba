//! Where files are cut. Names of workspaces depend on it: what is here may never change within a manifest's version.

use std::io::Read;

use fastcdc::v2020::{Normalization, cut, select_masks};

/// A file of at most so many bytes is one chunk.
pub const SINGLE_CHUNK_BYTES: usize = 1 << 20;
const MIN_CHUNK_BYTES: usize = 512 << 10;
const AVERAGE_CHUNK_BYTES: usize = 1 << 20;
/// No chunk has more bytes.
pub const MAX_CHUNK_BYTES: usize = 4 << 20;
/// Twice a chunk, so that what remains after a cut is seldom moved.
const BUFFER_BYTES: usize = 2 * MAX_CHUNK_BYTES;

/// Cuts what a reader yields. The buffer is the caller's, to be used again.
pub(in crate::workspace) struct Chunker<'b, R> {
    source: R,
    buffer: &'b mut Vec<u8>,
    start: usize,
    filled: usize,
    at_end: bool,
    first: bool,
}

impl<'b, R: Read> Chunker<'b, R> {
    pub(in crate::workspace) fn new(source: R, buffer: &'b mut Vec<u8>) -> Self {
        buffer.resize(BUFFER_BYTES, 0);
        Chunker { source, buffer, start: 0, filled: 0, at_end: false, first: true }
    }

    /// The next chunk; none at the end.
    pub(in crate::workspace) fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        self.fill()?;
        let rest = &self.buffer[self.start..self.filled];
        let whole = std::mem::take(&mut self.first) && self.at_end && rest.len() <= SINGLE_CHUNK_BYTES;
        let length = if whole { rest.len() } else { boundary(rest) };
        let from = self.start;
        self.start += length;
        Ok((length > 0).then(|| &self.buffer[from..from + length]))
    }

    /// Sees to it that a whole chunk is there, or all that is left.
    fn fill(&mut self) -> std::io::Result<()> {
        if self.at_end || self.filled - self.start >= MAX_CHUNK_BYTES {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        while self.filled < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn boundary(bytes: &[u8]) -> usize {
    let (strict, loose) = select_masks(AVERAGE_CHUNK_BYTES, Normalization::Level1);
    let (_, length) = cut(
        bytes,
        MIN_CHUNK_BYTES,
        AVERAGE_CHUNK_BYTES,
        MAX_CHUNK_BYTES,
        strict,
        loose,
        strict << 1,
        loose << 1,
    );
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Digest;

    /// Bytes that look random, the same for ever.
    fn noise(count: usize) -> Vec<u8> {
        let block = |n: usize| *Digest::of(&(n as u64).to_le_bytes()).bytes();
        (0..count.div_ceil(32)).flat_map(block).take(count).collect()
    }

    /// Yields little at a time.
    struct Drips<'a>(&'a [u8], usize);

    impl Read for Drips<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(to.len());
            (&mut self.0).read(&mut to[..count])
        }
    }

    fn lengths(bytes: &[u8], at_a_time: usize) -> Vec<usize> {
        let mut buffer = Vec::new();
        let mut chunker = Chunker::new(Drips(bytes, at_a_time), &mut buffer);
        let (mut found, mut again) = (Vec::new(), Vec::new());
        while let Some(chunk) = chunker.next().expect("reads") {
            found.push(chunk.len());
            again.extend_from_slice(chunk);
        }
        assert!(again == bytes, "nothing is lost");
        found
    }

    #[test]
    fn the_cuts_are_pinned() {
        let bytes = noise(12 << 20);
        let expected = [
            1_197_658, 1_030_097, 2_259_670, 1_733_911, 1_249_336, 1_226_445, 557_149, 1_190_350, 1_672_428,
            465_868,
        ];
        assert_eq!(lengths(&bytes, usize::MAX), expected);
        assert_eq!(lengths(&bytes, 70_001), expected, "however it is read");
    }

    #[test]
    fn small_files_are_whole() {
        let bytes = noise(SINGLE_CHUNK_BYTES + 1);
        assert_eq!(lengths(&[], 1), [0; 0]);
        assert_eq!(lengths(&bytes[..1], 1), [1]);
        assert_eq!(lengths(&bytes[..SINGLE_CHUNK_BYTES], usize::MAX), [SINGLE_CHUNK_BYTES]);
        assert!(lengths(&bytes, usize::MAX).iter().all(|length| *length <= SINGLE_CHUNK_BYTES + 1));
        let zeros = vec![0; MAX_CHUNK_BYTES * 2 + 5];
        assert_eq!(lengths(&zeros, usize::MAX), [MAX_CHUNK_BYTES, MAX_CHUNK_BYTES, 5]);
    }

    #[test]
    fn an_insertion_moves_few_cuts() {
        let bytes = noise(24 << 20);
        let digests = |bytes: &[u8]| {
            let mut buffer = Vec::new();
            let mut chunker = Chunker::new(bytes, &mut buffer);
            let mut found = std::collections::BTreeSet::new();
            while let Some(chunk) = chunker.next().expect("reads") {
                found.insert(Digest::of(chunk));
            }
            found
        };
        let before = digests(&bytes);
        let after = digests(&[b"inserted", &bytes[..]].concat());
        assert!(
            after.difference(&before).count() <= 3,
            "{} of {}",
            after.difference(&before).count(),
            after.len()
        );
    }
}
