//! A process that stands still inside a write.
//!
//! SQLite lets one process write at a time. A driver that is stopped by a signal in the middle of its write (Ctrl-Z at
//! a terminal does it) would make every other process wait for as long as it stands, a Stop of the user included. So
//! whoever waits wakes it: it finishes its write, which is a matter of milliseconds.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, Signal};

/// The byte of the `-shm` file that a writer locks in WAL mode (SQLite's file format, "WAL-Index Locks").
const WRITE_LOCK_BYTE: u64 = 120;

/// Wakes the process that holds the database's write lock, if it is stopped by a signal. One that a debugger holds is
/// left alone.
pub(crate) fn wake_stopped_writer(database: &Path) {
    let Some(pid) = writer(database).filter(|pid| is_stopped(*pid)) else {
        return;
    };
    if let Some(process) = Pid::from_raw(pid) {
        tracing::warn!(pid, "a stopped process holds the database's write lock and is woken");
        let _ = rustix::process::kill_process(process, Signal::CONT);
    }
}

/// Who holds the write lock. Asked of the kernel's list and not of the file: opening and closing the file here would
/// drop this process's own locks on it.
fn writer(database: &Path) -> Option<i32> {
    let mut shm = database.as_os_str().to_owned();
    shm.push("-shm");
    let facts = fs::metadata(&shm).ok()?;
    let (major, minor) = (rustix::fs::major(facts.st_dev()), rustix::fs::minor(facts.st_dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", facts.st_ino());
    holder(&fs::read_to_string("/proc/locks").ok()?, &file)
}

/// Finds the holder in the kernel's list, whose lines read `1: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`.
fn holder(locks: &str, file: &str) -> Option<i32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, on, start, end] = fields.as_slice() else {
            return None;
        };
        let covers = start.parse::<u64>().is_ok_and(|start| start <= WRITE_LOCK_BYTE)
            && (*end == "EOF" || end.parse::<u64>().is_ok_and(|end| end >= WRITE_LOCK_BYTE));
        (*on == file && covers).then(|| pid.parse().ok()).flatten()
    })
}

fn is_stopped(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('T')))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list() {
        let locks = "1: FLOCK  ADVISORY  WRITE 1 fe:00:9 0 EOF\n\
                     2: POSIX  ADVISORY  READ 2 fe:00:77 128 128\n\
                     3: POSIX  ADVISORY  WRITE 3 fe:00:77 121 121\n\
                     4: POSIX  ADVISORY  WRITE 4 fe:01:77 120 120\n\
                     4: -> POSIX  ADVISORY  WRITE 5 fe:00:77 120 120\n\
                     5: POSIX  ADVISORY  WRITE 6 fe:00:77 120 120\n";
        assert_eq!(holder(locks, "fe:00:77"), Some(6));
        assert_eq!(holder(locks, "fe:00:78"), None);
        assert_eq!(holder("1: POSIX  ADVISORY  WRITE 7 fe:00:77 0 EOF", "fe:00:77"), Some(7));
    }
}
