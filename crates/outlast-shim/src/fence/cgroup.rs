//! Cgroups, version 2: wherever the machine has mounted them, which on hybrid machines is not `/sys/fs/cgroup`.

use std::io;
use std::path::{Path, PathBuf};

/// The directory of the cgroup that the caller is in, found through the mounts; none where the machine has no such
/// hierarchy, or shows none of it that holds the caller.
pub fn own_directory() -> Option<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (root, point) = cgroup2_mount(line)?;
        // A mount may show a part of the hierarchy only.
        let below = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(&point).join(below))
    })
}

/// Root and mount point, if the line of `mountinfo` is a cgroup2 mount.
fn cgroup2_mount(line: &str) -> Option<(String, String)> {
    let (mount, kind) = line.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    Some((unescape(fields.next()?), unescape(fields.next()?)))
}

/// `mountinfo` writes blanks and backslashes as octal numbers.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.as_bytes();
    while let Some((&first, rest)) = bytes.split_first() {
        let octal = rest.get(..3).filter(|digits| first == b'\\' && digits.iter().all(u8::is_ascii_digit));
        let number = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match number {
            Some(number) => {
                out.push(number);
                bytes = &rest[3..];
            }
            None => {
                out.push(first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Makes a cgroup below the caller's own and checks that it can be killed as a whole.
pub(crate) fn create(name: &str) -> Result<PathBuf, String> {
    let own = own_directory().ok_or("this machine shows no cgroup (v2) that holds this process")?;
    let path = own.join(name);
    std::fs::create_dir(&path)
        .map_err(|error| format!("cannot make the cgroup {}: {error}", path.display()))?;
    if !path.join("cgroup.kill").exists() {
        let _ = std::fs::remove_dir(&path);
        return Err("this kernel cannot kill a cgroup as a whole (before Linux 5.14)".to_owned());
    }
    Ok(path)
}

/// Puts a process into the cgroup. What it forks later is in it from the start.
pub(crate) fn enter(path: &Path, pid: i32) -> io::Result<()> {
    std::fs::write(path.join("cgroup.procs"), pid.to_string())
}

/// Kills every process in the cgroup and below it at once, those that are just being forked too. A cgroup that is gone
/// is empty already.
///
/// # Errors
///
/// The cgroup exists and may not be killed by the caller.
pub fn kill(path: &Path) -> io::Result<()> {
    // Never created here: a plain file of this name would answer for a cgroup.
    match std::fs::File::options().write(true).open(path.join("cgroup.kill")) {
        Ok(mut file) => match io::Write::write_all(&mut file, b"1") {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            written => written,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a living process is in the cgroup or below it. One that is gone holds none. The kernel does not count
/// zombies.
///
/// # Errors
///
/// The cgroup exists and cannot be read.
pub fn is_populated(path: &Path) -> io::Result<bool> {
    match std::fs::read_to_string(path.join("cgroup.events")) {
        Ok(events) => Ok(!events.lines().any(|line| line == "populated 0")),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Removes an empty cgroup, and those that its processes have made in it.
pub fn remove(path: &Path) {
    // An agent may have made cgroups of its own, at any depth; a removal that fails leaves an empty directory behind.
    let Ok(entries) = std::fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_every_kind() {
        let hybrid = "42 35 0:31 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(cgroup2_mount(hybrid), Some(("/".into(), "/sys/fs/cgroup/unified".into())));
        let part = r"42 35 0:31 /a\040b /mnt/c\134d rw - cgroup2 none rw";
        assert_eq!(cgroup2_mount(part), Some(("/a b".into(), r"/mnt/c\d".into())));
        assert_eq!(cgroup2_mount("36 35 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"), None);
        assert_eq!(cgroup2_mount("nonsense"), None);
    }

    #[test]
    fn what_is_gone_is_empty_and_nothing_is_made() {
        let dir = tempfile::tempdir().expect("dir");
        let gone = dir.path().join("gone");
        assert!(!is_populated(&gone).expect("gone"));
        kill(&gone).expect("gone");
        kill(dir.path()).expect("not a cgroup");
        assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 0);
    }
}
