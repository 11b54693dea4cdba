//! What a directory holds.

use std::os::fd::BorrowedFd;

use rustix::fs::Dir;
use rustix::io::Errno;

/// The names in a directory, sorted, without `.` and `..`.
pub(in crate::workspace) fn names(directory: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            found.push(name);
        }
    }
    found.sort_unstable();
    Ok(found)
}
