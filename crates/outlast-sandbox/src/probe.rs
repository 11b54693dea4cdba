//! Has the agent ended? Asked out of band, read only.

use outlast_core::journal::sentinel;
use outlast_core::{ExitSecret, InstanceId, RunId};

use crate::Provider;

/// How much of a journal's end is looked at: a sentinel is the last that a shim writes, and some 60 bytes long.
pub const EXIT_PROBE_BYTES: usize = 4096;

/// What a journal says of its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunExit {
    /// It has ended, with this exit status.
    Finished(i32),
    /// Nothing says that it has. There may be no journal yet.
    Producing,
    /// The question was not answered. Never a reason to act.
    Unknown {
        /// Why, for people.
        cause: String,
    },
}

/// Asks the exit file, else the last `max_bytes` of the journal. Only what carries the run's secret counts: an agent can
/// print what looks like a sentinel. Touches nothing.
pub async fn probe_run_exit(
    provider: &dyn Provider,
    instance: &InstanceId,
    run: &RunId,
    secret: &ExitSecret,
    max_bytes: usize,
) -> RunExit {
    match provider.facts(instance, run, secret).await {
        Err(error) => return RunExit::Unknown { cause: error.to_string() },
        Ok(facts) if !facts.exists => {
            return RunExit::Unknown { cause: "the sandbox is not there".to_owned() };
        }
        Ok(facts) => {
            if let Some(exit) = facts.exit {
                return RunExit::Finished(exit.exit);
            }
        }
    }
    match provider.journal_tail(instance, run, max_bytes).await {
        Err(error) => RunExit::Unknown { cause: error.to_string() },
        Ok(tail) => match last_sentinel(&tail.unwrap_or_default(), secret) {
            Some(exit) => RunExit::Finished(exit),
            None => RunExit::Producing,
        },
    }
}

/// The last sentinel in the end of a journal. Its first line may be cut, and then it is none.
fn last_sentinel(tail: &[u8], secret: &ExitSecret) -> Option<i32> {
    tail.split(|byte| *byte == b'\n').rev().find_map(|line| sentinel::parse(line, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_with_the_secret_counts() {
        let secret = ExitSecret::from_bytes([7; 16]);
        let own = |exit| sentinel::block(exit, &secret);
        let other = sentinel::block(9, &ExitSecret::from_bytes([8; 16]));
        for (tail, expected) in [
            (String::new(), None),
            ("working\n".to_owned(), None),
            (other.clone(), None),
            ("{\"__exit\":0}\n".to_owned(), None),
            (own(0), Some(0)),
            (format!("{}{other}", own(3)), Some(3)),
            (format!("{}{}", own(3), own(4)), Some(4)),
            (format!("{}rest", own(3)), Some(3)),
            // Cut at its beginning, as the end of a file may be.
            (own(5)[8..].to_owned(), None),
            // Not yet whole: the line break is what ends it, and what comes before may still grow.
            (own(137).trim_end_matches(['}', '\n']).to_owned(), None),
        ] {
            assert_eq!(last_sentinel(tail.as_bytes(), &secret), expected, "{tail:?}");
        }
        let mut raw = vec![0xff, b'\n'];
        raw.extend(own(1).bytes());
        assert_eq!(last_sentinel(&raw, &secret), Some(1));
    }
}
