//! What files held when they were read last.
//!
//! A file is in the cache only if it is certain that any later write gives it another time: its times must be older
//! than a time that the file system's own clock had shown before the file was read. A file that was written within the
//! same tick of that clock as it was read is not in the cache, and is read again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, fstat};

use crate::workspace::files::FileStat;
use crate::workspace::{Digest, escape};

const HEADER: &str = "outlast-workspace-cache 1";

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) stat: FileStat,
    pub(super) chunks: Vec<Digest>,
}

/// Files by their escaped paths.
pub(super) type Cache = HashMap<String, Cached>;

/// Reads a cache that was written for this root; empty where that cannot be done.
pub(super) fn load(path: &Path, root: &Path) -> Cache {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Cache::new(),
        Err(error) => {
            tracing::warn!(cache = %path.display(), %error, "the cache of a workspace cannot be read: everything is read again");
            return Cache::new();
        }
    };
    parse(&text, root).unwrap_or_else(|| {
        tracing::warn!(cache = %path.display(), "the cache of a workspace is damaged, or another one's: everything is read again");
        Cache::new()
    })
}

fn head(root: &Path) -> String {
    format!("{HEADER} {}\n", escape(root.as_os_str().as_bytes()))
}

fn parse(text: &str, root: &Path) -> Option<Cache> {
    let (body, checksum) = text.split_at_checked(text.len().checked_sub(65)?)?;
    if Digest::parse(checksum.strip_suffix('\n')?)? != Digest::of(body.as_bytes()) {
        return None;
    }
    body.strip_prefix(&head(root))?.lines().map(entry).collect()
}

fn entry(line: &str) -> Option<(String, Cached)> {
    let mut words = line.split(' ');
    let path = words.next()?.to_owned();
    let stat = FileStat {
        device: words.next()?.parse().ok()?,
        inode: words.next()?.parse().ok()?,
        size: words.next()?.parse().ok()?,
        mode: words.next()?.parse().ok()?,
        modified: words.next()?.parse().ok()?,
        changed: words.next()?.parse().ok()?,
    };
    let chunks = words.map(Digest::parse).collect::<Option<_>>()?;
    Some((path, Cached { stat, chunks }))
}

/// The next cache, on its way.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    /// Device and time of its file system when it was begun.
    pub(super) clock: (u64, i128),
}

impl Writer {
    /// Begins one; none, with a warning, where none can be written.
    pub(super) fn begin(path: &Path) -> Option<Writer> {
        Writer::try_begin(path).unwrap_or_else(|error| {
            tracing::warn!(cache = %path.display(), %error, "the cache of a workspace cannot be written");
            None
        })
    }

    fn try_begin(path: &Path) -> std::io::Result<Option<Writer>> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&temporary)?;
        // Whoever holds it writes another one of the same workspace: that one will do.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // It may have been moved into its place before it was locked.
        if fstat(&file)?.st_ino != rustix::fs::lstat(&temporary)?.st_ino {
            return Ok(None);
        }
        file.set_len(0)?;
        file.write_all(b"\n")?;
        let stat = FileStat::of(&fstat(&file)?);
        Ok(Some(Writer { file, temporary, path: path.to_owned(), clock: (stat.device, stat.changed) }))
    }

    /// Puts the cache into its place, whole.
    pub(super) fn finish(mut self, root: &Path, cache: &Cache) {
        let mut text = head(root);
        for (path, cached) in cache {
            line(&mut text, path, cached);
        }
        let checksum = Digest::of(text.as_bytes()).hex();
        text.push_str(&checksum);
        text.push('\n');
        let written = self
            .file
            .rewind()
            .and_then(|()| self.file.set_len(0))
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&self.temporary, &self.path));
        if let Err(error) = written {
            tracing::warn!(cache = %self.path.display(), %error, "the cache of a workspace cannot be written");
        }
    }
}

fn line(text: &mut String, path: &str, cached: &Cached) {
    use std::fmt::Write;
    let FileStat { device, inode, size, mode, modified, changed } = cached.stat;
    // Writing to a string cannot fail.
    let _ = write!(text, "{path} {device} {inode} {size} {mode} {modified} {changed}");
    for chunk in &cached.chunks {
        text.push(' ');
        text.push_str(&chunk.hex());
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_and_own_ones_count() {
        let directory = tempfile::tempdir().unwrap();
        let (path, root) = (directory.path().join("deep/cache"), Path::new("/a b"));
        let stat = FileStat { device: 1, inode: 2, size: 3, mode: 0o644, modified: -5, changed: i128::MAX };
        let cached = Cached { stat, chunks: vec![Digest::of(b"abc")] };
        let cache = Cache::from([
            (escape(b"x y/\xff"), cached.clone()),
            ("empty".to_owned(), Cached { chunks: Vec::new(), ..cached }),
        ]);
        Writer::begin(&path).expect("a writer").finish(root, &cache);
        assert_eq!(load(&path, root), cache);
        assert_eq!(load(&path, Path::new("/a")), Cache::new(), "of another workspace");
        assert_eq!(load(&directory.path().join("none"), root), Cache::new());
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(load(&path, root), Cache::new(), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(load(&path, root), Cache::new(), "cut at {at}");
        }
    }

    #[test]
    fn one_writer_at_a_time_and_what_a_dead_one_left_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache");
        let first = Writer::begin(&path).expect("a writer");
        assert!(Writer::begin(&path).is_none());
        drop(first);
        let again = Writer::begin(&path).expect("a writer");
        again.finish(Path::new("/"), &Cache::new());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
