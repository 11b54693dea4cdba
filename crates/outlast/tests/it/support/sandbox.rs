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

    /// The run's shim, found by its arguments.
    pub fn shim(&self, run: &str) -> Option<i32> {
        let enc = encoding::encode(run);
        self.shims().into_iter().find(|(_, name)| *name == enc).map(|(pid, _)| pid)
    }

    /// The shims of this data directory, with their encoded run ids. A keeper, a fork of its shim, has the same
    /// arguments and is left out.
    pub fn shims(&self) -> Vec<(i32, String)> {
        let sandboxes = self.data_dir().join("sandboxes");
        let sandboxes = sandboxes.to_str().expect("utf-8");
        let enc = |pid: i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            match arguments.split_terminator('\0').collect::<Vec<&str>>().as_slice() {
                [_, "__shim", runs, enc] if runs.starts_with(sandboxes) => Some((*enc).to_owned()),
                _ => None,
            }
        };
        let pids = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let found: Vec<(i32, String)> = pids.filter_map(|pid| Some((pid, enc(pid)?))).collect();
        let is_fork =
            |pid: i32| parent(pid).is_some_and(|parent| found.iter().any(|(other, _)| *other == parent));
        found.iter().filter(|(pid, _)| !is_fork(*pid)).cloned().collect()
    }
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The most memory that the process has had at once, in KiB.
pub fn peak_memory(pid: i32) -> Option<u64> {
    memory(pid, "VmHWM:")
}

/// The memory that the process has now, in KiB.
pub fn resident_memory(pid: i32) -> Option<u64> {
    memory(pid, "VmRSS:")
}

fn memory(pid: i32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
