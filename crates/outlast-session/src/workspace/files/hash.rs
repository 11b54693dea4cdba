//! Reading a file into chunks while others may write it.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;

use super::stat::file_type;
use super::{FileStat, open_beneath};
use crate::workspace::Digest;
use crate::workspace::content::Chunker;

/// So often a file is read that changes meanwhile; the last reading counts.
const ATTEMPTS: u32 = 3;

/// What a file holds.
#[derive(Debug)]
pub(in crate::workspace) struct Hashed {
    /// As it was before it was read.
    pub(in crate::workspace) stat: FileStat,
    /// Bytes that were read.
    pub(in crate::workspace) size: u64,
    pub(in crate::workspace) chunks: Vec<Digest>,
    /// Whether it changed each time that it was read: what is here may be no state that it ever had.
    pub(in crate::workspace) unsteady: bool,
}

#[derive(Debug)]
pub(in crate::workspace) enum HashFailed {
    /// It is not there any more.
    Gone,
    /// It is no regular file any more, or a link is on the way to it.
    Replaced,
    /// It cannot be read.
    Unreadable(std::io::Error),
    /// It has more bytes than the caller takes.
    TooLarge,
    /// The caller said so.
    Stopped,
}

/// Reads the file at this path of the root. `each` gets every chunk, also those of readings that do not count.
pub(in crate::workspace) fn hash_file(
    root: BorrowedFd<'_>,
    path: &[u8],
    max_bytes: u64,
    buffer: &mut Vec<u8>,
    each: &mut dyn FnMut(Digest, &[u8]) -> ControlFlow<()>,
) -> Result<Hashed, HashFailed> {
    let mut attempt = 1;
    loop {
        let (hashed, after) = read_once(root, path, max_bytes, buffer, each)?;
        let steady = hashed.stat == after && hashed.size == after.size;
        if steady || attempt == ATTEMPTS {
            return Ok(Hashed { unsteady: !steady, ..hashed });
        }
        attempt += 1;
    }
}

fn read_once(
    root: BorrowedFd<'_>,
    path: &[u8],
    max_bytes: u64,
    buffer: &mut Vec<u8>,
    each: &mut dyn FnMut(Digest, &[u8]) -> ControlFlow<()>,
) -> Result<(Hashed, FileStat), HashFailed> {
    let file = File::from(open_beneath(root, path, OFlags::RDONLY).map_err(not_opened)?);
    let unreadable = |error: Errno| HashFailed::Unreadable(error.into());
    let before = fstat(&file).map_err(unreadable)?;
    if file_type(&before) != FileType::RegularFile {
        return Err(HashFailed::Replaced);
    }
    let (mut size, mut chunks) = (0, Vec::new());
    // Bounded, or a file that grows as fast as it is read would never end.
    let mut chunker = Chunker::new((&file).take(max_bytes.saturating_add(1)), buffer);
    while let Some(chunk) = chunker.next().map_err(HashFailed::Unreadable)? {
        size += chunk.len() as u64;
        if size > max_bytes {
            return Err(HashFailed::TooLarge);
        }
        let digest = Digest::of(chunk);
        if each(digest, chunk).is_break() {
            return Err(HashFailed::Stopped);
        }
        chunks.push(digest);
    }
    let after = FileStat::of(&fstat(&file).map_err(unreadable)?);
    Ok((Hashed { stat: FileStat::of(&before), size, chunks, unsteady: false }, after))
}

fn not_opened(error: Errno) -> HashFailed {
    match error {
        Errno::NOENT => HashFailed::Gone,
        Errno::LOOP | Errno::NOTDIR | Errno::NXIO => HashFailed::Replaced,
        error => HashFailed::Unreadable(error.into()),
    }
}
