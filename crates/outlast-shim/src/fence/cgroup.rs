//! Cgroups, version 2: wherever the machine has mounted them, which on hybrid machines is not `/sys/fs/cgroup`.

use std::io;
use std::path::{Path, PathBuf};

/// The directory of the cgroup that the caller is in, found through the mounts; none where the machine has no such
/// hierarchy, or shows none of it that holds the caller.
pub fn own_directory() -> Option<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    shown(&mounts, own, |kind| kind.split(' ').next() == Some("cgroup2")).map(|place| place.directory)
}

/// A cgroup where the file system shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where its hierarchy is mounted: what is above is not shown.
    pub mount: PathBuf,
    /// The cgroup.
    pub directory: PathBuf,
}

/// Where a process's limits of memory are kept, under version 2 and then under version 1, given its `/proc/PID/cgroup`
/// and `mountinfo`.
pub fn memory_places(cgroup: &str, mountinfo: &str) -> [Option<Place>; 2] {
    let lists_memory = |list: &str| list.split(',').any(|name| name == "memory");
    let own = |wanted: &dyn Fn(&str) -> bool| {
        cgroup.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then_some(path)
        })
    };
    let unified = own(&|controllers| controllers.is_empty())
        .and_then(|path| shown(mountinfo, path, |kind| kind.split(' ').next() == Some("cgroup2")));
    let legacy = own(&lists_memory).and_then(|path| {
        shown(mountinfo, path, |kind| {
            let mut fields = kind.split(' ');
            fields.next() == Some("cgroup") && fields.nth(1).is_some_and(lists_memory)
        })
    });
    [unified, legacy]
}

/// Where a mount of this kind (what stands after the dash of its line of `mountinfo`) shows the cgroup.
fn shown(mountinfo: &str, cgroup: &str, kind: impl Fn(&str) -> bool) -> Option<Place> {
    mountinfo.lines().find_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        if !kind(rest) {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (unescape(fields.next()?), PathBuf::from(unescape(fields.next()?)));
        // A mount may show a part of the hierarchy only.
        let below = Path::new(cgroup).strip_prefix(root).ok()?;
        Some(Place { directory: point.join(below), mount: point })
    })
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
        const HYBRID: &str =
            "42 35 0:31 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        const PART: &str = r"42 35 0:31 /a\040b /mnt/c\134d rw - cgroup2 none rw";
        const LEGACY: &str = "36 35 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        const OTHER: &str = "36 35 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu";
        let place =
            |mount: &str, directory: &str| Some(Place { mount: mount.into(), directory: directory.into() });
        for (mount, cgroup, unified, legacy) in [
            (HYBRID, "0::/x\n", place("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/x"), None),
            (PART, "0::/a b/x\n", place(r"/mnt/c\d", r"/mnt/c\d/x"), None),
            (PART, "0::/elsewhere\n", None, None),
            (
                LEGACY,
                "4:cpu,memory:/y\n0::/x\n",
                None,
                place("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/y"),
            ),
            (LEGACY, "4:cpu:/y\n0::/x\n", None, None),
            (OTHER, "4:memory:/y\n", None, None),
            ("nonsense", "nonsense", None, None),
        ] {
            assert_eq!(memory_places(cgroup, mount), [unified, legacy], "{mount} {cgroup}");
        }
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
