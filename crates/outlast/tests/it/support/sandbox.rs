//! Looking into a run's sandbox without any help of the program under test.

use std::fs;
use std::path::PathBuf;

use outlast::core::encoding;
use serde_json::Value;

use super::bench::Bench;

impl Bench {
    /// The run's file of this suffix in the sandbox, if it is there.
    pub fn run_file(&self, run: &str, suffix: &str) -> Option<PathBuf> {
        let name = format!("{}{suffix}", encoding::encode(run));
        let instances = fs::read_dir(self.data_dir().join("sandboxes")).ok()?;
        instances
            .flatten()
            .map(|instance| instance.path().join("runs").join(&name))
            .find(|path| path.exists())
    }

    /// What the run's launch latch says.
    pub fn latch(&self, run: &str) -> Option<Value> {
        let bytes = fs::read(self.run_file(run, ".start")?).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The kind of fence that the run's latch names.
    #[track_caller]
    pub fn fence(&self, run: &str) -> String {
        let latch = self.latch(run).expect("a latch");
        latch["fence"]["kind"].as_str().expect("a fence").to_owned()
    }

    /// The run's shim, found by its arguments. Its keeper, a fork of it, has the same ones.
    pub fn shim(&self, run: &str) -> Option<i32> {
        let (sandboxes, enc) = (self.data_dir().join("sandboxes"), encoding::encode(run));
        let is_shim = |pid: i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            let arguments: Vec<&str> = arguments.split_terminator('\0').collect();
            matches!(arguments.as_slice(), [_, "__shim", runs, name]
                if runs.starts_with(sandboxes.to_str().expect("utf-8")) && *name == enc)
        };
        let pids = fs::read_dir("/proc").expect("/proc").flatten();
        let found: Vec<i32> = pids
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| is_shim(*pid))
            .collect();
        found.iter().copied().find(|pid| parent(*pid).is_none_or(|parent| !found.contains(&parent)))
    }
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The most memory that the process has had at once, in KiB.
pub fn peak_memory(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
