//! Counting an agent's processes without any help of the program under test.

use std::fs;
use std::time::{Duration, Instant};

/// A text that only one test's agents have in their arguments. Environments can be emptied and sessions changed;
/// arguments stay.
#[derive(Debug)]
pub struct Marker(pub String);

/// A test that fails leaves none of its agents behind.
impl Drop for Marker {
    fn drop(&mut self) {
        self.alive().into_iter().for_each(|(pid, _)| kill9(pid));
    }
}

impl Marker {
    /// A fresh one, which is no other's beginning.
    pub fn new(name: &str) -> Marker {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Marker(format!("marker-{name}-{}-{}.", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The living processes with the marker in their arguments, `outlast` itself left out. A zombie is not alive.
    pub fn alive(&self) -> Vec<(i32, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let Ok(arguments) = fs::read(entry.path().join("cmdline")) else {
                continue;
            };
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            let program = arguments.split(' ').next().unwrap_or_default();
            let own = program.ends_with("/outlast") || program.contains("/it-");
            if !own
                && arguments.contains(&self.0)
                && state(pid).is_some_and(|state| state != 'Z' && state != 'X')
            {
                found.push((pid, arguments));
            }
        }
        found
    }

    /// Waits until none lives.
    #[track_caller]
    #[allow(clippy::disallowed_methods, reason = "tests run on real time")]
    pub fn wait_until_gone(&self, within: Duration) {
        let start = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() {
                return;
            }
            assert!(start.elapsed() < within, "after {within:?} there lives: {alive:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Kills a process, which may be gone.
pub fn kill9(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("pid");
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// The state of a process as the kernel tells it.
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether the process is stopped by a signal.
pub fn is_stopped(pid: i32) -> bool {
    state(pid) == Some('T')
}
