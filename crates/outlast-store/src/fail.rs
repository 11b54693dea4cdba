//! Fail points: between any two steps of a run, a test can kill or freeze the process. For Outlast's own crates.
//!
//! `OUTLAST_FAILPOINT=NAME[@N]=kill|stop` acts at the N-th (first) passing of the point; `OUTLAST_FAILPOINT_LOG=FILE`
//! appends the name of every point that is passed. Compiled in only with the feature `failpoints`.

/// Passes a point.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// Passes a point.
#[cfg(feature = "failpoints")]
pub fn point(name: &'static str) {
    armed::point(name);
}

#[cfg(feature = "failpoints")]
mod armed {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Armed {
        name: String,
        nth: u32,
        signal: rustix::process::Signal,
        passed: AtomicU32,
    }

    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        ARMED
            .get_or_init(|| {
                let text = std::env::var("OUTLAST_FAILPOINT").ok()?;
                let (point, action) = text.rsplit_once('=')?;
                let (name, nth) =
                    point.split_once('@').map_or((point, 1), |(name, n)| (name, n.parse().unwrap_or(1)));
                let signal = match action {
                    "kill" => rustix::process::Signal::KILL,
                    _ => rustix::process::Signal::STOP,
                };
                Some(Armed { name: name.to_owned(), nth, signal, passed: AtomicU32::new(0) })
            })
            .as_ref()
    }

    fn log() -> Option<&'static std::path::Path> {
        static LOG: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
        LOG.get_or_init(|| std::env::var_os("OUTLAST_FAILPOINT_LOG").map(Into::into)).as_deref()
    }

    pub(super) fn point(name: &'static str) {
        if let Some(path) = log() {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            if let Ok(mut file) = file {
                let _ = file.write_all(format!("{name}\n").as_bytes());
            }
        }
        let Some(armed) = armed() else {
            return;
        };
        if armed.name == name && armed.passed.fetch_add(1, Ordering::SeqCst) + 1 == armed.nth {
            let _ = rustix::process::kill_process(rustix::process::getpid(), armed.signal);
        }
    }
}
