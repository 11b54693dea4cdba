//! What is left out of a snapshot.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{SECRETS, SnapshotError, SnapshotOptions};
use crate::workspace::escape;
use crate::workspace::files::{WalkError, open_beneath};

/// Patterns of the workspace itself.
const OWN_FILE: &str = ".outlastignore";
const GIT_FILE: &str = ".gitignore";
/// Bytes of a file with patterns at most.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What the caller excludes, and which files in the tree may exclude more.
#[derive(Debug)]
pub(in crate::workspace) struct Excludes {
    caller: Gitignore,
    own_file: bool,
    git_files: bool,
}

/// What files within the tree exclude, at one place of it.
#[derive(Debug, Clone, Default)]
pub(in crate::workspace) struct Nested {
    /// They can only exclude more: who writes into the workspace must not get secrets into a snapshot.
    own: Option<Arc<Gitignore>>,
    /// With the directory that each lies in, the innermost last.
    git: Vec<Arc<(Vec<u8>, Gitignore)>>,
}

impl Excludes {
    /// Nothing at all.
    pub(in crate::workspace) fn none() -> Excludes {
        Excludes { caller: Gitignore::empty(), own_file: false, git_files: false }
    }

    pub(super) fn new(options: &SnapshotOptions) -> Result<Excludes, SnapshotError> {
        let refuse = |error: ignore::Error| SnapshotError::Patterns {
            place: "the options".to_owned(),
            message: error.to_string(),
        };
        let mut builder = builder();
        let secrets = SECRETS.iter().copied().filter(|_| !options.include_secrets);
        for pattern in secrets.chain(options.exclude.iter().map(String::as_str)) {
            builder.add_line(None, pattern).map_err(refuse)?;
        }
        let caller = builder.build().map_err(refuse)?;
        Ok(Excludes { caller, own_file: true, git_files: options.gitignore })
    }

    /// Reads the patterns that lie in a directory.
    pub(in crate::workspace) fn enter(
        &self,
        directory: BorrowedFd<'_>,
        path: &[u8],
        mut nested: Nested,
    ) -> Result<Nested, WalkError> {
        if self.own_file && path.is_empty() {
            nested.own = own_patterns(directory)?.map(Arc::new);
        }
        if self.git_files
            && let Some(patterns) = git_patterns(directory)
        {
            nested.git.push(Arc::new((path.to_vec(), patterns)));
        }
        Ok(nested)
    }

    pub(in crate::workspace) fn excluded(&self, path: &[u8], is_directory: bool, nested: &Nested) -> bool {
        let matches = |patterns: &Gitignore, path: &[u8]| {
            let found = patterns.matched(Path::new(OsStr::from_bytes(path)), is_directory);
            (!found.is_none()).then(|| found.is_ignore())
        };
        if matches(&self.caller, path) == Some(true) {
            return true;
        }
        if nested.own.as_ref().is_some_and(|own| matches(own, path) == Some(true)) {
            return true;
        }
        let by_git = nested.git.iter().rev().find_map(|patterns| {
            let (directory, patterns) = &**patterns;
            let below = if directory.is_empty() { path } else { path.get(directory.len() + 1..)? };
            matches(patterns, below)
        });
        by_git == Some(true)
    }
}

fn builder() -> GitignoreBuilder {
    // Of a root with this name, nothing is stripped from paths.
    let mut builder = GitignoreBuilder::new(".");
    builder.allow_unclosed_class(false);
    builder
}

fn own_patterns(root: BorrowedFd<'_>) -> Result<Option<Gitignore>, WalkError> {
    let refuse = |reason: String| WalkError::Patterns { path: OWN_FILE.to_owned(), reason };
    let bytes = match read(root, OWN_FILE) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) => return Err(refuse(error.to_string())),
    };
    let mut builder = builder();
    for line in bytes.split(|b| *b == b'\n') {
        let line =
            std::str::from_utf8(line).map_err(|_| refuse(format!("{:?} is not UTF-8", escape(line))))?;
        builder.add_line(None, line).map_err(|error| refuse(error.to_string()))?;
    }
    builder.build().map(Some).map_err(|error| refuse(error.to_string()))
}

/// As Git reads them: what it does not understand, it ignores.
fn git_patterns(directory: BorrowedFd<'_>) -> Option<Gitignore> {
    let bytes = read(directory, GIT_FILE).ok().flatten()?;
    let mut builder = GitignoreBuilder::new(".");
    for line in String::from_utf8_lossy(&bytes).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|patterns| !patterns.is_empty())
}

fn read(directory: BorrowedFd<'_>, name: &str) -> std::io::Result<Option<Vec<u8>>> {
    let file = match open_beneath(directory, name.as_bytes(), OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(std::io::Error::other("it is a symbolic link")),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    (&file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    Ok(Some(bytes))
}
