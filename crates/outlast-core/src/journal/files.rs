//! The names of a run's files in the runs directory of its instance. Every name is an encoded run id
//! ([`crate::encoding`]) and one of these suffixes.

use crate::{RunId, encoding};

/// The launch latch: made with `O_CREAT|O_EXCL`, so exactly one shim (or one cancel) ever gets it. JSON of
/// [`super::latch::Latch`].
pub const LATCH: &str = ".start";
/// Locked by the shim for as long as it lives. Empty.
pub const LOCK: &str = ".lock";
/// The agent's standard output and the exit sentinel.
pub const JOURNAL: &str = ".ndjson";
/// The agent's standard error.
pub const STDERR: &str = ".err";
/// The exit, as [`super::exit::ExitRecord`]; its blocks are allocated before the agent starts, so that a full disk
/// still records it.
pub const EXIT: &str = ".exit";
/// The prompt, which is the agent's standard input.
pub const PROMPT: &str = ".prompt";
/// The prompt of the second attempt, where an agent lost the session that it was to resume.
pub const FALLBACK_PROMPT: &str = ".prompt2";

/// Every suffix, the longest of which decides how long an encoded id may be.
pub const ALL: &[&str] = &[LATCH, LOCK, JOURNAL, STDERR, EXIT, PROMPT, FALLBACK_PROMPT];

/// Bytes of the exit file: one block of common file systems.
pub const EXIT_BYTES: usize = 4096;

/// The run that a file belongs to, by its name; none where the name is not one of a run's files. A name that is only
/// nearly one, a truncated one say, would decode to another run's id: such a file is nobody's.
pub fn run_of(name: &[u8]) -> Option<RunId> {
    let name = std::str::from_utf8(name).ok()?;
    let enc = ALL.iter().find_map(|suffix| name.strip_suffix(suffix))?;
    RunId::new(encoding::decode(enc)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_of_which_run_they_are() {
        let run = |id: &str| Some(RunId::new(id).expect("id"));
        for id in ["r", "../x y", "a.start", "r.ndjson", "\u{1f980}", "CON"] {
            for suffix in ALL {
                let name = format!("{}{suffix}", encoding::encode(id));
                assert_eq!(run_of(name.as_bytes()), run(id), "{name}");
            }
        }
        for name in [
            "r",
            ".ndjson",
            "_2.ndjson",
            "_zz.err",
            "r.NDJSON",
            "r.ndjson~",
            "r.ndjso",
            "_2E.start",
            "r x.start",
            "..start",
            "a/b.start",
            "_0a.start",
            "con.err",
            "",
        ] {
            assert_eq!(run_of(name.as_bytes()), None, "{name}");
        }
        assert_eq!(run_of(b"\xff.ndjson"), None);
        let long = format!("{}.start", "x".repeat(encoding::MAX_ENCODED_BYTES + 1));
        assert_eq!(run_of(long.as_bytes()), None);
    }

    #[test]
    fn every_name_fits_a_file_system() {
        for suffix in ALL {
            assert!(encoding::MAX_ENCODED_BYTES + suffix.len() <= 255);
        }
    }
}
