//! The key goes to the agent and nowhere else.

use std::fs;
use std::path::PathBuf;

use super::for_each_program;
use super::stage::{Program, Stage, files_below};
use crate::support::{Marker, eventually, gated_script};

for_each_program!(a_key_is_nowhere_to_be_read);

fn a_key_is_nowhere_to_be_read(program: Program) {
    let Some(stage) = Stage::scripted(program) else { return };
    let marker = Marker::new("secrets");
    let [_, _, command] = gated_script(&format!("echo {}", marker.0));
    let mut driver = stage.start("r", "t", &format!("Please work.\nRUN {command}"));
    driver.wait_for("TOOL_CALL_END");
    eventually("the tool works", || (stage.bench.starts() == 1).then_some(()));
    check_files(&stage, &marker);
    assert!(!arguments_with(&marker.0).is_empty(), "what is in arguments is found");
    assert_eq!(arguments_with(&stage.key), Vec::<PathBuf>::new());
    stage.bench.open_gate();

    let ended = driver.finish();
    assert!(!ended.stderr.contains(&stage.key), "{}", ended.stderr);
    let shown = ended.ok();
    assert!(shown.contains(&marker.0) && !shown.contains(&stage.key), "{shown}");
    check_files(&stage, &marker);
    let record = stage.bench.outlast(["show", "--json", "r"]).ok();
    assert!(!record.contains(&stage.key), "{record}");
    let heard = stage.endpoint.heard();
    assert!(heard.iter().all(|call| call.key.as_ref() == Some(&stage.key)), "the agent had it: {heard:?}");
}

/// No file of the data directory holds the key. What the agent says is in several: the search finds what is there.
#[track_caller]
fn check_files(stage: &Stage, marker: &Marker) {
    let files = files_below(&stage.bench.data_dir());
    let with = |text: &str| {
        let holds = |path: &&PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            bytes.windows(text.len()).any(|piece| piece == text.as_bytes())
        };
        files.iter().filter(holds).collect::<Vec<_>>()
    };
    assert!(with(&marker.0).len() >= 2, "the journal and the database at least: {files:?}");
    assert_eq!(with(&stage.key), Vec::<&PathBuf>::new());
}

/// The argument lists of living processes that hold the text.
fn arguments_with(text: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let lists = processes.map(|entry| entry.path().join("cmdline"));
    lists
        .filter(|list| fs::read(list).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text)))
        .collect()
}
