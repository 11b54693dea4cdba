//! A data directory of one test, and the program that is tested on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast::core::event::{Chunk, EventKind};
use outlast::core::transcript::{Message, Role, fold_log};
use outlast::{Offset, Seq};
use serde_json::Value;
use tempfile::TempDir;

use super::census::kill9;
use super::proc::{Finished, Proc};

/// One test's place.
pub struct Bench {
    dir: TempDir,
    /// What starts the program: its path, behind what makes it another user's.
    pub(super) program: Vec<OsString>,
}

/// One line of `outlast logs --json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub seq: Seq,
    pub kind: EventKind,
    pub json: Value,
    pub raw: String,
}

/// A test that fails leaves no agent behind: agents die with their shims.
impl Drop for Bench {
    fn drop(&mut self) {
        self.shims().into_iter().for_each(|(pid, _)| kill9(pid));
    }
}

impl Bench {
    /// With a lease that is short enough for tests.
    pub fn new() -> Bench {
        Bench::with_config("[driver]\nlease = \"1500ms\"\n")
    }

    pub fn with_config(config: &str) -> Bench {
        let dir = TempDir::with_prefix("outlast-it-").expect("temporary directory");
        std::fs::create_dir(dir.path().join("data")).expect("data directory");
        std::fs::create_dir(dir.path().join("work")).expect("workspace");
        std::fs::write(dir.path().join("data/outlast.toml"), config).expect("configuration");
        Bench { dir, program: vec![env!("CARGO_BIN_EXE_outlast").into()] }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A directory to lend.
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The program, with this data directory and nothing of Outlast's in its environment.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("OUTLAST") {
                command.env_remove(name);
            }
        }
        command.env("OUTLAST_DATA_DIR", self.data_dir()).current_dir(self.dir.path());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the program.
    pub fn spawn<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Proc {
        Proc::new(self.command(args).spawn().expect("spawn"))
    }

    /// Runs the program to its end.
    #[track_caller]
    pub fn outlast<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Finished {
        self.spawn(args).finish()
    }

    /// `outlast show RUN --json`.
    #[track_caller]
    pub fn record(&self, run: &str) -> Value {
        serde_json::from_str(&self.outlast(["show", "--json", "--", run]).ok()).expect("a record")
    }

    /// The run's status, or none where it is not recorded.
    pub fn status(&self, run: &str) -> Option<String> {
        let shown = self.outlast(["show", "--json", "--", run]);
        let value: Value = serde_json::from_str(&shown.stdout).ok()?;
        value["status"].as_str().map(str::to_owned)
    }

    /// The stored log.
    #[track_caller]
    pub fn log(&self, run: &str) -> Vec<Logged> {
        parse_stream(&self.outlast(["logs", "--json", "--", run]).ok())
    }

    /// The stored transcript.
    #[track_caller]
    pub fn messages(&self, run: &str) -> Vec<Message> {
        serde_json::from_str(&self.outlast(["show", "--messages", "--json", "--", run]).ok())
            .expect("messages")
    }

    /// Asserts everything that holds for the log of a run that has ended, and gives it.
    #[track_caller]
    pub fn check_ended(&self, run: &str) -> Vec<Logged> {
        let log = self.log(run);
        for (n, event) in log.iter().enumerate() {
            assert_eq!(event.seq, Seq(n as u64 + 1), "offsets count up without a gap");
        }
        assert_eq!(log[0].json["name"], "run.accepted", "the first event");
        let terminal: Vec<usize> =
            log.iter().enumerate().filter(|(_, event)| event.kind.is_terminal()).map(|(n, _)| n).collect();
        assert_eq!(terminal, [log.len() - 1], "exactly one terminal event, at the end");
        let started = log.iter().filter(|event| event.kind == EventKind::RunStarted).count();
        assert!(started <= 1, "RUN_STARTED {started} times");
        let record = self.record(run);
        let status = record["status"].as_str().expect("status");
        let last = &log[log.len() - 1];
        assert_eq!(
            status == "completed",
            last.kind == EventKind::RunFinished,
            "record and log agree: {record}"
        );
        if status != "completed" {
            assert_eq!(record["error"]["code"], last.json["code"], "record and log agree on the code");
        }
        assert_eq!(record["sealed"], true);
        let chunks: Vec<(Seq, Chunk)> = log
            .iter()
            .map(|event| (event.seq, Chunk { kind: event.kind, json: event.raw.clone() }))
            .collect();
        let folded = fold_log(chunks.iter().map(|(seq, chunk)| (*seq, chunk)));
        let stored: Vec<Message> = self.messages(run).into_iter().filter(|m| m.role != Role::User).collect();
        assert_eq!(stored, folded, "the transcript is the fold over the log");
        log
    }

    /// All assistant text of the log, in order.
    pub fn text(log: &[Logged]) -> String {
        log.iter()
            .filter(|event| event.kind == EventKind::TextMessageContent)
            .map(|event| event.json["delta"].as_str().expect("delta"))
            .collect()
    }
}

/// Lines of a stream in JSON.
pub fn parse_stream(text: &str) -> Vec<Logged> {
    text.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> Logged {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let Ok(Offset::After(seq)) = Offset::parse(value["id"].as_str().expect("id")) else {
        panic!("an offset: {line}");
    };
    let json = value["chunk"].clone();
    let kind = EventKind::parse(json["type"].as_str().expect("type")).expect("a type of AG-UI");
    let raw = line.split_once("\"chunk\":").expect("chunk").1.strip_suffix('}').expect("brace").to_owned();
    Logged { seq, kind, json, raw }
}

/// An agent that prints `line 0` to `line N-1`, one every `pause` seconds, appends a line to `starts` in its workspace
/// (so that a second start would show) and exits with `status`.
pub fn numbered_agent(lines: u32, pause: &str, status: u8) -> [String; 3] {
    let script = format!(
        "echo start >> starts; i=0; while [ $i -lt {lines} ]; do echo \"line $i\"; i=$((i+1)); sleep {pause}; done; exit {status}"
    );
    ["sh".to_owned(), "-c".to_owned(), script]
}

/// What that agent prints.
pub fn numbered_text(lines: u32) -> String {
    (0..lines).map(|i| format!("line {i}\n")).collect()
}
