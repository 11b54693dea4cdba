//! The names of a run's files in the runs directory of its instance. Every name is an encoded run id
//! ([`crate::encoding`]) and one of these suffixes.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_a_file_system() {
        for suffix in ALL {
            assert!(crate::encoding::MAX_ENCODED_BYTES + suffix.len() <= 255);
        }
    }
}
