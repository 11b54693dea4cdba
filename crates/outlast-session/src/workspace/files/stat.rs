//! What the kernel says of a file.

use rustix::fs::{FileType, Stat};

/// All by which a change is noticed. Times in nanoseconds since 1970, on the file system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workspace) struct FileStat {
    pub(in crate::workspace) device: u64,
    pub(in crate::workspace) inode: u64,
    pub(in crate::workspace) size: u64,
    /// Permission bits.
    pub(in crate::workspace) mode: u16,
    pub(in crate::workspace) modified: i128,
    /// Of content or attributes; nobody can set it.
    pub(in crate::workspace) changed: i128,
}

impl FileStat {
    pub(in crate::workspace) fn of(stat: &Stat) -> FileStat {
        const SECOND: i128 = 1_000_000_000;
        FileStat {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: permissions(stat),
            modified: i128::from(stat.st_mtime) * SECOND + i128::from(stat.st_mtime_nsec),
            changed: i128::from(stat.st_ctime) * SECOND + i128::from(stat.st_ctime_nsec),
        }
    }
}

pub(super) fn permissions(stat: &Stat) -> u16 {
    u16::try_from(stat.st_mode & 0o777).unwrap_or(0)
}

pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
