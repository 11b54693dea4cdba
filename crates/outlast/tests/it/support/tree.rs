//! An agent whose tree holds every kind of process that is hard to get rid of.

use super::census::{Marker, is_stopped};
use super::wait::eventually;

/// Its main process, which SIGTERM does not end; a plain child; one in a session of its own; one behind a double fork with an empty environment in
/// another session; one that ignores SIGTERM; one that is stopped.
const PROCESSES: usize = 6;

const SCRIPT: &str = r#"
: > "$0"
trap : TERM
tail -f "$0" > /dev/null 2>&1 &
setsid tail -f "$0" > /dev/null 2>&1 &
env -i setsid sh -c 'tail -f "$0" &' "$0" > /dev/null 2>&1
sh -c 'trap "" TERM; exec tail -f "$0"' "$0" > /dev/null 2>&1 &
tail -f "$0" > /dev/null 2>&1 &
kill -STOP $!
echo up
while :; do wait; sleep 0.05; done
"#;

/// The command of that agent; every process of it has the marker in its arguments. It works until it is killed.
pub fn stubborn_agent(marker: &Marker) -> [String; 4] {
    ["sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned(), marker.0.clone()]
}

/// Waits until the whole tree is there.
#[track_caller]
pub fn wait_for_tree(marker: &Marker) {
    eventually("the agent's whole tree", || {
        let alive = marker.alive();
        let stopped = alive.iter().filter(|(pid, _)| is_stopped(*pid)).count();
        (alive.len() == PROCESSES && stopped == 1).then_some(())
    });
}
