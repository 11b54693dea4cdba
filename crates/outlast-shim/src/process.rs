//! Processes, seen through `/proc`.

use std::io;
use std::os::fd::OwnedFd;

use outlast_core::journal::latch::ProcessId;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: i32,
    start: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The command's name stands in parentheses and may itself hold blanks and parentheses, so fields count from the last.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let after = text.iter().rposition(|byte| *byte == b')')? + 1;
    let text = std::str::from_utf8(&text[after..]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start })
}

/// When the process started, in clock ticks since the boot; none where there is no such process.
pub fn start_time(pid: i32) -> Option<u64> {
    stat(pid).map(|stat| stat.start)
}

/// Names a process so that a recycled pid is never taken for it. None where it is gone.
pub fn identify(pid: i32) -> Option<ProcessId> {
    start_time(pid).map(|start| ProcessId { pid, start })
}

/// Whether exactly this process lives. A zombie does not: it runs no code and only waits to be reaped.
pub fn alive(process: ProcessId) -> bool {
    stat(process.pid).is_some_and(|stat| stat.start == process.start && !matches!(stat.state, b'Z' | b'X'))
}

/// A handle of exactly this process; none where it is gone. The start time is compared after the handle was opened:
/// a pid that was recycled before shows another one, and afterwards the handle no longer depends on the pid.
fn open(process: ProcessId) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return Ok(None);
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Ok(alive(process).then_some(handle)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends a signal to exactly this process. False where it is gone.
///
/// # Errors
///
/// The process lives and may not, or cannot, be signalled by the caller.
pub fn signal(process: ProcessId, signal: Signal) -> io::Result<bool> {
    let Some(handle) = open(process)? else {
        return Ok(false);
    };
    match rustix::process::pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The processes below another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descendants {
    /// Those that live, for certain.
    pub living: Vec<ProcessId>,
    /// Whether something changed while they were looked for, so that some may be missing.
    pub blurred: bool,
}

/// The living processes below `root`, without it. `/proc` is a moving target: whoever dies meanwhile hands its children
/// over, and its pid may become somebody else's. So every parent is looked at again after its children were found, and
/// a child whose parent has changed is left out; whoever kills looks again until nothing is found and nothing moved.
///
/// # Errors
///
/// `/proc` cannot be read.
pub fn descendants(root: ProcessId) -> io::Result<Descendants> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(stat) = stat(pid) {
            all.push((pid, stat));
        }
    }
    let mut found = Descendants::default();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let mut children = all.iter().filter(|(_, stat)| stat.parent == parent.pid).peekable();
        if children.peek().is_some() && start_time(parent.pid) != Some(parent.start) {
            found.blurred = true;
            continue;
        }
        for (pid, stat) in children {
            let child = ProcessId { pid: *pid, start: stat.start };
            parents.push(child);
            if !matches!(stat.state, b'Z' | b'X') {
                found.living.push(child);
            }
        }
    }
    Ok(found)
}

/// The kernel's id of this boot, as `Clock::boot_id` of the ports gives it.
///
/// # Errors
///
/// `/proc` cannot be read.
pub fn boot_id() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

/// The inode of the PID namespace in which the caller's pids hold.
///
/// # Errors
///
/// `/proc` cannot be read.
pub fn pid_ns() -> io::Result<u64> {
    Ok(rustix::fs::stat("/proc/self/ns/pid")?.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_shift_fields() {
        let tail = "S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";
        for name in ["sh", "a b", ") Z 1 (", "))"] {
            let stat = parse_stat(format!("12 ({name}) {tail}").as_bytes());
            assert_eq!(stat, Some(Stat { state: b'S', parent: 7, start: 4242 }), "{name}");
        }
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn descendants_of_a_recycled_root_are_nobodys() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let me = identify(std::process::id() as i32).expect("self");
        let id = identify(child.id() as i32).expect("child");
        assert!(descendants(me).expect("look").living.contains(&id));
        let recycled = ProcessId { start: me.start + 1, ..me };
        let found = descendants(recycled).expect("look");
        assert_eq!((found.living, found.blurred), (vec![], true));
        child.kill().and_then(|()| child.wait()).expect("kill");
        assert!(!descendants(me).expect("look").living.contains(&id));
    }

    #[test]
    fn the_dead_and_the_recycled_are_not_alive() {
        let me = identify(std::process::id() as i32).expect("self");
        assert!(alive(me));
        assert!(open(me).expect("open").is_some());
        let recycled = ProcessId { start: me.start + 1, ..me };
        assert!(!alive(recycled));
        assert!(!signal(recycled, Signal::KILL).expect("signal"), "a recycled pid must not be signalled");

        let mut child = std::process::Command::new("true").spawn().expect("true");
        let id = identify(child.id() as i32).expect("not reaped yet, so it exists");
        // Exited and not reaped: wait without reaping, then look.
        let wait = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let pid = Pid::from_raw(id.pid).expect("pid");
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), wait).expect("waitid");
        assert!(!alive(id), "a zombie is not alive");
        child.wait().expect("wait");
        assert!(!alive(id));
    }
}
