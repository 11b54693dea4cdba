//! Agents that print numbered lines, and what they leave behind.

use std::path::Path;

use crate::dice::Dice;

/// What one agent is asked to do.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub lines: u64,
    /// Lines that are printed at a time.
    pub burst: u64,
    /// Between two bursts, in milliseconds.
    pub pause: u64,
    pub exit: u8,
}

/// Says that it is there, prints, and ends as it was told; `$0` is where it says so.
const SCRIPT: &str = r#"read -r lines burst pause status
echo "$$" >> "$0/$OUTLAST_RUN_ID"
i=0
while [ "$i" -lt "$lines" ]; do
    echo "line $i"
    i=$((i + 1))
    if [ $((i % burst)) -eq 0 ]; then sleep "$pause"; fi
done
exit "$status""#;

impl Task {
    /// Slow ones, fast ones, ones that fail, and ones that are over before anybody looks.
    pub fn draw(dice: &Dice) -> Task {
        let (lines, burst, pause) = match dice.pick(4) {
            0 => (dice.between(1, 5), 1, 1),
            1 => (dice.between(200, 2000), 50, dice.between(20, 120)),
            2 => (dice.between(20, 120), 1, dice.between(20, 120)),
            _ => (dice.between(5, 15), 1, dice.between(300, 900)),
        };
        Task { lines, burst, pause, exit: if dice.permille(150) { 3 } else { 0 } }
    }

    pub fn prompt(&self) -> String {
        format!(
            "{} {} {}.{:03} {}\n",
            self.lines,
            self.burst,
            self.pause / 1000,
            self.pause % 1000,
            self.exit
        )
    }
}

/// What so many lines look like.
pub(super) fn text(lines: u64) -> String {
    (0..lines).map(|n| format!("line {n}\n")).collect()
}

/// The configuration's section for these agents, which say below this directory that they are there.
pub(super) fn configuration(said: &Path) -> String {
    format!("[agents.numbers]\nkind = \"command\"\nargv = [\"sh\", \"-c\", {SCRIPT:?}, {said:?}]\n")
}

/// How many agents this run has had.
pub(super) fn started(said: &Path, run: &str) -> usize {
    std::fs::read_to_string(said.join(run)).map_or(0, |text| text.lines().count())
}

/// Processes that belong to an agent of this run.
pub(super) fn alive(run: &str) -> Vec<u32> {
    let mark = format!("OUTLAST_RUN_ID={run}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        })
        .collect()
}
