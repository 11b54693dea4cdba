//! How hard a simulation of sessions is.

use std::time::Duration;

/// What is simulated, and how often what goes wrong.
#[derive(Debug, Clone)]
pub struct SessionsPlan {
    /// Hosts at a time; one that dies is replaced.
    pub hosts: usize,
    /// Threads that are written to; one that is deleted is followed by another.
    pub threads: usize,
    /// Clients that add records, each one append after the other.
    pub writers: usize,
    /// How often each of them does.
    pub appends: usize,
    /// Runs that are accepted, driven and ended.
    pub runs: usize,
    /// How long things go wrong; after that the rest must come to its end by itself.
    pub trouble: Duration,
    /// How often in a thousand an operation fails without effect.
    pub fail: u32,
    /// How often in a thousand an operation is carried out and its answer lost.
    pub lose: u32,
    /// How often in a thousand an operation takes its time.
    pub delay: u32,
    /// How often in a thousand an operation of object storage fails for its caller and takes effect some time later.
    pub late: u32,
    /// How often in a thousand the adversary's turn is spent on the deletion of a session.
    pub delete: u32,
    /// How long a body to which nothing points is left alone.
    pub grace: Duration,
}

impl Default for SessionsPlan {
    fn default() -> Self {
        SessionsPlan {
            hosts: 3,
            threads: 2,
            writers: 4,
            appends: 10,
            runs: 3,
            trouble: Duration::from_secs(240),
            fail: 60,
            lose: 60,
            delay: 80,
            late: 15,
            delete: 60,
            grace: Duration::from_secs(3),
        }
    }
}
