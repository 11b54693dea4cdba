//! Opening by a path of any length without a symbolic link at any step.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::workspace::manifest::parts;

/// How everything is opened: a link in the last place fails, a pipe does not hang.
pub(in crate::workspace) const NOT_FOLLOWED: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a directory whose path the caller vouches for.
pub(in crate::workspace) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens what lies at this relative path (the root itself where it is empty). Fails with `ELOOP` or `ENOTDIR` where a
/// step is a symbolic link.
pub(in crate::workspace) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | NOT_FOLLOWED;
    if path.split(|b| *b == b'/').any(|segment| segment == b"..") {
        return Err(Errno::XDEV);
    }
    if path.is_empty() {
        return openat(root, c".", flags, Mode::empty());
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, path, flags, Mode::empty(), resolve) {
        // Old kernels and strict sandboxes do not have it, and it takes no path of `PATH_MAX` bytes.
        Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => by_steps(root, path, flags),
        answer => answer,
    }
}

fn by_steps(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let (directory, name) = parts(path);
    let mut at: Option<OwnedFd> = None;
    let step = OFlags::RDONLY | OFlags::DIRECTORY | NOT_FOLLOWED;
    for segment in directory.split(|b| *b == b'/').filter(|segment| !segment.is_empty()) {
        let next = openat(at.as_ref().map_or(root, AsFd::as_fd), segment, step, Mode::empty())?;
        at = Some(next);
    }
    openat(at.as_ref().map_or(root, AsFd::as_fd), name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn no_link_is_followed_in_either_way() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::write(root.path().join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("a/out")).unwrap();
        std::os::unix::fs::symlink("b", root.path().join("a/in")).unwrap();
        let directory = open_root(root.path()).unwrap();
        for stepwise in [false, true] {
            let open = |path: &str| {
                let refused = path.split('/').any(|segment| segment == "..");
                let open = if stepwise && !refused { by_steps } else { open_beneath };
                open(directory.as_fd(), path.as_bytes(), OFlags::RDONLY | NOT_FOLLOWED).map(|_| ())
            };
            assert_eq!(open("a/b/file"), Ok(()));
            assert_eq!(open("a/b"), Ok(()));
            for path in ["a/out/secret", "a/in/file", "a/out", "a/in", "../x", "a/../..", "a/b/.."] {
                assert!(open(path).is_err(), "{path}");
            }
        }
    }
}
