//! The canonical bytes: a line for the format, then one for each entry.
//!
//! ```text
//! outlast-workspace 1
//! d 755 src
//! f 644 11 src/hello.txt <digest of each chunk>
//! l src/link hello.txt
//! ```

use super::check::Checker;
use super::path::unescape;
use super::{Entry, EntryKind, MAX_MANIFEST_BYTES, ManifestError, ManifestFault, escape};
use crate::workspace::Digest;

const HEADER: &str = "outlast-workspace 1";

pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut out = String::with_capacity(entries.len() * 128);
    out.push_str(HEADER);
    out.push('\n');
    for entry in entries {
        line(&mut out, entry);
        out.push('\n');
    }
    out.into_bytes()
}

fn line(out: &mut String, entry: &Entry) {
    use std::fmt::Write;
    let path = escape(&entry.path);
    // Writing to a string cannot fail.
    let _ = match &entry.kind {
        EntryKind::Directory { mode } => write!(out, "d {mode:03o} {path}"),
        EntryKind::File { mode, size, chunks } => {
            let _ = write!(out, "f {mode:03o} {size} {path}");
            for chunk in chunks {
                out.push(' ');
                out.push_str(&chunk.hex());
            }
            Ok(())
        }
        EntryKind::Symlink { target } => write!(out, "l {path} {}", escape(target)),
    };
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Entry>, ManifestError> {
    let refuse = |number: usize, fault| ManifestError { at: format!("line {number}"), fault };
    if bytes.len() as u64 > MAX_MANIFEST_BYTES {
        return Err(refuse(1, ManifestFault::TooLong));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| refuse(1, ManifestFault::Line))?;
    let Some(body) = text.strip_prefix(HEADER).and_then(|rest| rest.strip_prefix('\n')) else {
        return Err(refuse(1, ManifestFault::Header));
    };
    let mut checker = Checker::default();
    let mut again = String::new();
    for (at, found) in body.split_inclusive('\n').enumerate() {
        let not_canonical = || refuse(at + 2, ManifestFault::Line);
        let found = found.strip_suffix('\n').ok_or_else(not_canonical)?;
        let entry = read(found).ok_or_else(not_canonical)?;
        // Whatever could be written in two ways was written in the other one.
        again.clear();
        line(&mut again, &entry);
        if again != found {
            return Err(not_canonical());
        }
        checker.push(entry)?;
    }
    Ok(checker.entries)
}

fn read(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let mode = |word: &str| u16::from_str_radix(word, 8).ok();
    let entry = match kind {
        "d" => {
            let mode = mode(words.next()?)?;
            Entry { path: unescape(words.next()?)?, kind: EntryKind::Directory { mode } }
        }
        "f" => {
            let (mode, size) = (mode(words.next()?)?, words.next()?.parse().ok()?);
            let path = unescape(words.next()?)?;
            let chunks = words.by_ref().map(Digest::parse).collect::<Option<Vec<_>>>()?;
            Entry { path, kind: EntryKind::File { mode, size, chunks } }
        }
        "l" => {
            let (path, target) = (unescape(words.next()?)?, unescape(words.next()?)?);
            Entry { path, kind: EntryKind::Symlink { target } }
        }
        _ => return None,
    };
    words.next().is_none().then_some(entry)
}

#[cfg(test)]
mod tests;
