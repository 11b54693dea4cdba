//! Whole processes: how fast they start, how fast they replay, how much memory they take.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::agent;
use crate::machine::{Place, peak_mb, timed};
use crate::report::{figure, millis, percentile};

const ROUNDS: usize = 20;

/// From the start of the process to its end, with the data directory opened and closed.
pub fn start_up() {
    let place = Place::new();
    place.outlast(["ps"]).output().expect("outlast");
    let mut bare: Vec<f64> = (0..ROUNDS)
        .map(|_| millis(timed(|| place.outlast(["--version"]).output().expect("outlast")).1))
        .collect();
    let mut open: Vec<f64> =
        (0..ROUNDS).map(|_| millis(timed(|| place.outlast(["ps"]).output().expect("outlast")).1)).collect();
    figure("start-up: outlast --version", percentile(&mut bare, 0.5), "ms", "<= 20 ms");
    figure("start-up: outlast ps on an opened data directory", percentile(&mut open, 0.5), "ms", "");
}

/// From the start of `outlast run` to the agent's first line, less what the agent takes by itself.
pub fn first_line() {
    let place = Place::new();
    place.outlast(["ps"]).output().expect("outlast");
    let agent = agent::command(&["stamps", "1", "0"]);
    let mut alone: Vec<f64> =
        (0..ROUNDS).map(|_| until_first_line(Command::new(&agent[0]).args(&agent[1..]))).collect();
    let mut through: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let args = ["run".to_owned(), "--".to_owned()].into_iter().chain(agent.iter().cloned());
            until_first_line(&mut place.outlast(args))
        })
        .collect();
    let own = percentile(&mut alone, 0.5);
    figure(
        "run to the agent's first line, above its own start",
        percentile(&mut through, 0.5) - own,
        "ms",
        "<= 60 ms",
    );
}

fn until_first_line(command: &mut Command) -> f64 {
    let (mut child, took) = timed(|| {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("spawn");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("line");
        assert!(line.contains("stamp"), "{line:?}");
        child
    });
    child.wait().expect("wait");
    millis(took)
}

/// A stored log of 100 MB, read back by `outlast logs --json`.
pub fn replay() {
    let place = Place::new();
    let agent = agent::command(&["bulk", "60000000", "0", "0"]);
    let args = ["run", "--run-id", "r", "--"].map(str::to_owned).into_iter().chain(agent);
    let status = place.outlast(args).stdout(Stdio::null()).status().expect("run");
    assert!(status.success(), "{status}");
    let mut rates: Vec<f64> = (0..3)
        .map(|_| {
            let (bytes, took) = timed(|| {
                let mut child = place.outlast(["logs", "--json", "r"]).spawn().expect("spawn");
                let bytes = drain(&mut child);
                child.wait().expect("wait");
                bytes
            });
            bytes as f64 / 1e6 / took.as_secs_f64()
        })
        .collect();
    figure("replay of a stored log, as JSON lines", percentile(&mut rates, 0.5), "MB/s", ">= 200 MB/s");
}

fn drain(child: &mut Child) -> u64 {
    let mut stdout = child.stdout.take().expect("stdout");
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match stdout.read(&mut buffer).expect("read") {
            0 => return bytes,
            n => bytes += n as u64,
        }
    }
}

/// The most memory that `outlast run` and its shim take while the agent prints 1 GB.
pub fn memory() {
    let place = Place::new();
    let agent = agent::command(&["bulk", "1000000000", "0", "0"]);
    let args = ["run", "--run-id", "r", "--"].map(str::to_owned).into_iter().chain(agent);
    let ((driver, shim), took) = timed(|| {
        let mut child = place.outlast(args).stdout(Stdio::null()).spawn().expect("spawn");
        let (mut driver, mut shim) = (0.0_f64, 0.0_f64);
        loop {
            driver = driver.max(peak_mb(child.id()).unwrap_or(0.0));
            for pid in shims_of(&place) {
                shim = shim.max(peak_mb(pid).unwrap_or(0.0));
            }
            if let Some(status) = child.try_wait().expect("wait") {
                assert!(status.success(), "{status}");
                return (driver, shim);
            }
            #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    figure("a run that prints 1 GB: peak memory of outlast run", driver, "MB", "<= 30 MB");
    figure("a run that prints 1 GB: peak memory of the shim", shim, "MB", "");
    figure("a run that prints 1 GB: through journal and log", 1000.0 / took.as_secs_f64(), "MB/s", "");
}

fn shims_of(place: &Place) -> Vec<u32> {
    let needle = place.data_dir().to_str().expect("utf-8").to_owned();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let arguments = std::fs::read(entry.path().join("cmdline")).ok()?;
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            (arguments.contains("__shim") && arguments.contains(&needle)).then_some(pid)
        })
        .collect()
}
