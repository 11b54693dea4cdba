//! The machine's own figures, and the program on a data directory of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A place for one measurement.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: TempDir::with_prefix("outlast-bench-").expect("temporary directory") }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn outlast<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
        command.env("OUTLAST_DATA_DIR", self.data_dir()).current_dir(self.dir.path());
        command.args(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

/// How long this takes.
#[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// The beginning of a measurement.
#[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// How many times a second a small write can be made durable here, one after the other.
pub fn fdatasync_rate(dir: &Path) -> f64 {
    let mut file = std::fs::File::create(dir.join("fdatasync")).expect("file");
    let rounds = 2000;
    let ((), took) = timed(|| {
        for _ in 0..rounds {
            file.write_all(&[7; 512]).and_then(|()| file.sync_data()).expect("write");
        }
    });
    f64::from(rounds) / took.as_secs_f64()
}

/// The most memory that the process has had so far, in MB (`VmHWM`); none once it is gone.
pub fn peak_mb(pid: u32) -> Option<f64> {
    memory(pid, "VmHWM:")
}

/// The memory that the process has now, in MB (`VmRSS`); none once it is gone.
pub fn now_mb(pid: u32) -> Option<f64> {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
