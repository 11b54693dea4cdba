//! A runs directory, shims in it, and ways to look.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use outlast_core::ExitSecret;
use outlast_core::journal::exit::ExitRecord;
use outlast_core::journal::latch::{Fence, Latch, LatchState, LaunchLatch, ProcessId};
use outlast_core::journal::{files, sentinel};
use outlast_core::shim::{FenceChoice, OutputLimits, ShimCommand, ShimReport, ShimRequest};
use rustix::process::Signal;

pub const SHIM: &str = env!("CARGO_BIN_EXE_outlast-shim");

/// Longer than anything takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub enc: String,
    pub marker: String,
}

impl Bench {
    pub fn new() -> Bench {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("runs")).expect("runs");
        let unique = dir.path().file_name().and_then(|name| name.to_str()).expect("name").to_owned();
        Bench { enc: "run-1".into(), marker: format!("marker{unique}"), dir }
    }

    pub fn runs(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    pub fn file(&self, suffix: &str) -> PathBuf {
        self.runs().join(format!("{}{suffix}", self.enc))
    }

    pub fn secret() -> ExitSecret {
        ExitSecret::from_bytes([9; 16])
    }

    /// A request for a shell script, which runs in the directory above the runs directory.
    pub fn request(&self, script: &str, fence: FenceChoice) -> ShimRequest {
        ShimRequest {
            secret: Self::secret(),
            command: self.shell(script),
            fallback: None,
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            cwd: self.dir.path().to_str().expect("text").to_owned(),
            limits: OutputLimits::default(),
            fence,
            hide: vec![],
        }
    }

    pub fn shell(&self, script: &str) -> ShimCommand {
        let script = format!(": {}\n{script}", self.marker);
        ShimCommand { argv: vec!["sh".into(), "-c".into(), script], stdin: None }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(SHIM);
        command.arg(self.runs()).arg(&self.enc);
        command
    }

    /// Starts a shim, sends the request and waits for the report.
    pub fn start(&self, request: &ShimRequest) -> Shim {
        Shim::start(self.command(), request)
    }

    /// Starts a shim that must launch.
    pub fn launch(&self, script: &str, fence: FenceChoice) -> Shim {
        let shim = self.start(&self.request(script, fence));
        assert_eq!(shim.report, Some(ShimReport::Launched));
        shim
    }

    pub fn latch(&self) -> LatchState {
        outlast_shim::latch::read(&self.runs(), &self.enc).expect("latch")
    }

    pub fn launched(&self) -> LaunchLatch {
        match self.latch() {
            LatchState::Taken(Latch::Launch(launch)) => launch,
            other => panic!("not launched: {other:?}"),
        }
    }

    pub fn is_locked(&self) -> bool {
        outlast_shim::lock::is_held(&self.file(files::LOCK)).expect("lock")
    }

    pub fn exit(&self) -> Option<ExitRecord> {
        ExitRecord::parse(&std::fs::read(self.file(files::EXIT)).expect("exit file"), &Self::secret())
    }

    /// The agent's bytes and its exit, after the shim has left. The sentinel must be exact.
    pub fn ended(&self, shim: Shim) -> (Vec<u8>, ExitRecord) {
        shim.wait();
        let exit = self.exit().expect("an exit");
        let mut journal = std::fs::read(self.file(files::JOURNAL)).expect("journal");
        let rest = journal.split_off(usize::try_from(exit.stdout_bytes).expect("size"));
        assert_eq!(String::from_utf8_lossy(&rest), sentinel::block(exit.exit, &Self::secret()));
        (journal, exit)
    }

    /// Living processes with the marker in their arguments or environment, found without the fence's help.
    pub fn census(&self) -> Vec<i32> {
        let marker = self.marker.as_bytes();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("proc").flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            let holds = |file: &str| {
                std::fs::read(entry.path().join(file))
                    .is_ok_and(|bytes| bytes.windows(marker.len()).any(|piece| piece == marker))
            };
            if let Some(pid) = pid
                && (holds("cmdline") || holds("environ"))
                && outlast_shim::process::identify(pid).is_some_and(outlast_shim::process::alive)
            {
                found.push(pid);
            }
        }
        found
    }

    pub fn until_nothing_lives(&self) {
        until("the tree's death", || self.census().is_empty());
    }

    pub fn until_file(&self, name: &str) {
        let path = self.dir.path().join(name);
        until(name, || path.exists());
    }

    pub fn keeper(&self) -> ProcessId {
        match self.launched().fence {
            Fence::PidNamespace { init } => init,
            Fence::Cgroup { keeper, .. } | Fence::Subreaper { keeper } => keeper,
        }
    }
}

pub struct Shim {
    child: Child,
    output: BufReader<ChildStdout>,
    pub report: Option<ShimReport>,
}

impl Shim {
    pub fn start(command: Command, request: &ShimRequest) -> Shim {
        let mut line = serde_json::to_vec(request).expect("json");
        line.push(b'\n');
        let mut shim = Self::spawn(command);
        shim.send(&line);
        shim.listen();
        shim
    }

    pub fn spawn(mut command: Command) -> Shim {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn");
        let output = BufReader::new(child.stdout.take().expect("stdout"));
        Shim { child, output, report: None }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        let mut input = self.child.stdin.take().expect("stdin");
        input.write_all(bytes).expect("send");
    }

    pub fn listen(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("report");
        self.report = (!line.is_empty()).then(|| serde_json::from_str(&line).expect("a report"));
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).expect("pid");
        rustix::process::kill_process(pid, signal).expect("signal");
    }

    pub fn has_left(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    /// Waits until it has left.
    pub fn wait(mut self) {
        until("the shim's end", || self.has_left());
    }
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = now_ms() + PATIENCE.as_millis() as u64;
    while !holds() {
        assert!(now_ms() < deadline, "waited in vain: {what}");
        pause();
    }
}

#[allow(clippy::disallowed_methods, reason = "tests of a program without ports")]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

pub fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Every fence that the machine grants. Those that it does not grant are named.
pub fn fences() -> Vec<FenceChoice> {
    [FenceChoice::PidNamespace, FenceChoice::Cgroup, FenceChoice::Subreaper]
        .into_iter()
        .filter(|fence| {
            let bench = Bench::new();
            let shim = bench.start(&bench.request("true", *fence));
            let granted = shim.report == Some(ShimReport::Launched);
            if !granted {
                eprintln!("skipped: {fence:?}: {:?}", shim.report);
            }
            shim.wait();
            granted
        })
        .collect()
}
