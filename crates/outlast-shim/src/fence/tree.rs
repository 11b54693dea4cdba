//! A tree of processes, found through `/proc`. The weakest way to find it, and the one that works everywhere: it holds
//! as long as the root adopts orphans (`PR_SET_CHILD_SUBREAPER`).

use std::io;

use outlast_core::journal::latch::ProcessId;
use rustix::process::Signal;

use crate::process;

/// Signals every living process below `root`, and wakes those that are stopped if they are asked to end. Whether none
/// was found and nothing moved meanwhile. One round: what forked during it is found by the next.
///
/// # Errors
///
/// `/proc` cannot be read.
pub fn signal_below(root: ProcessId, signal: Signal) -> io::Result<bool> {
    let found = process::descendants(root)?;
    for process in &found.living {
        // Whoever died meanwhile is what was wanted; whoever may not be signalled is found again in the next round.
        let _ = process::signal(*process, signal);
        if signal == Signal::TERM {
            let _ = process::signal(*process, Signal::CONT);
        }
    }
    Ok(found.living.is_empty() && !found.blurred)
}

/// The same below the calling process.
pub(crate) fn signal_below_self(signal: Signal) -> io::Result<bool> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let root = process::identify(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
    signal_below(root, signal)
}
