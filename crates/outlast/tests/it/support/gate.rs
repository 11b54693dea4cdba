//! Agents that wait until the test says so, and the arguments that start them.

use std::fs;

use super::bench::Bench;

/// Waits, in a script, until the gate is open; leaves once the test's directory is gone.
const AT_THE_GATE: &str = "while [ ! -e gate-is-open ]; do [ -e starts ] || exit 99; sleep 0.02; done";

/// An agent that appends a line to `starts` in its workspace, prints `line 0` to `line {first-1}`, waits for the gate,
/// prints the lines up to `line {total-1}`, and exits with `status`.
pub fn gated_agent(first: u32, total: u32, status: u8) -> [String; 3] {
    let script = format!(
        "echo start >> starts; i=0; while [ $i -lt {first} ]; do echo \"line $i\"; i=$((i+1)); done; {AT_THE_GATE}; \
         while [ $i -lt {total} ]; do echo \"line $i\"; i=$((i+1)); done; exit {status}"
    );
    ["sh".to_owned(), "-c".to_owned(), script]
}

/// An agent that appends a line to `starts`, waits for the gate and then does as the script says.
pub fn gated_script(script: &str) -> [String; 3] {
    ["sh".to_owned(), "-c".to_owned(), format!("echo start >> starts; {AT_THE_GATE}; {script}")]
}

impl Bench {
    /// Starts the run `r`, with nobody attached: it has printed three of `total` lines and waits at the gate, and will
    /// exit with 7.
    #[track_caller]
    pub fn start_waiting(&self, total: u32) {
        self.outlast(self.run_args("r", &["-d"], &gated_agent(3, total, 7))).ok();
    }

    /// Lets the gated agents of the lent workspace go on.
    pub fn open_gate(&self) {
        fs::write(self.workspace().join("gate-is-open"), "").expect("gate");
    }

    /// How many agents were started in the lent workspace.
    pub fn starts(&self) -> usize {
        fs::read_to_string(self.workspace().join("starts")).map_or(0, |text| text.lines().count())
    }

    /// The arguments of `outlast run --json` of this agent under this run id, on a thread of its own, in the lent
    /// workspace.
    pub fn run_args(&self, run: &str, flags: &[&str], agent: &[String]) -> Vec<String> {
        let thread = format!("--thread=thread-{run}");
        let workspace = format!("--workspace={}", self.workspace().to_str().expect("utf-8"));
        let run_id = format!("--run-id={run}");
        let mut args: Vec<String> = vec!["run".to_owned(), "--json".to_owned(), run_id, thread, workspace];
        args.extend(flags.iter().map(|flag| (*flag).to_owned()));
        args.push("--".to_owned());
        args.extend(agent.iter().cloned());
        args
    }
}
