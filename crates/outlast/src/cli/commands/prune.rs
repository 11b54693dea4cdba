//! `outlast prune`.

use std::collections::BTreeMap;

use outlast_core::RunId;
use outlast_core::decide::KeepReason;
use outlast_runtime::{PruneOptions, PruneResult};

use crate::cli::args::PruneArgs;
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::printable;
use crate::cli::say::{print_line, tell};
use crate::count::count;

/// How many runs a line names; `--json` names them all.
const NAMED: usize = 5;

pub async fn prune(context: &Context, args: &PruneArgs) -> Result<u8, Failure> {
    let local = context.open().await?;
    let options = PruneOptions {
        orphan_ttl: args.orphan_ttl,
        max_deletes: args.max_deletes,
        keep_journals: context.config.retention.keep_journals,
        dry_run: args.dry_run,
    };
    let result = local.host().prune_journals(&options).await;
    local.close().await;
    if context.json {
        print_line!("{}", serde_json::to_string(&result).unwrap_or_default());
    } else {
        for line in lines(&result, args.dry_run) {
            print_line!("{line}");
        }
        for failure in &result.failures {
            let run = failure.run_id.as_ref().map_or_else(String::new, |run| format!("run {run}: "));
            tell!("outlast: {}", printable(&format!("{run}{}", failure.message)));
        }
        tell!("outlast: {}", summary(&result, args.dry_run));
    }
    Ok(if result.failures.is_empty() { 0 } else { FAILED })
}

/// What is deleted, then what is kept, by reason.
fn lines(result: &PruneResult, dry_run: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !result.deleted.is_empty() {
        let what = if dry_run { "would delete" } else { "deleted" };
        lines.push(line(what, result.deleted.iter().map(RunId::to_string)));
    }
    let mut kept: BTreeMap<KeepReason, Vec<String>> = BTreeMap::new();
    for entry in &result.kept {
        let names = kept.entry(entry.reason).or_default();
        match &entry.run_id {
            Some(run) => names.push(run.to_string()),
            None => names.extend(entry.names.iter().cloned()),
        }
    }
    lines
        .extend(kept.into_iter().map(|(reason, names)| line(&format!("kept ({reason})"), names.into_iter())));
    lines
}

fn line(what: &str, names: impl ExactSizeIterator<Item = String>) -> String {
    let count = names.len();
    let named: Vec<String> = names.take(NAMED).map(|name| printable(&name)).collect();
    let more = if count > named.len() { format!(" and {} more", count - named.len()) } else { String::new() };
    format!("{what}: {count}: {}{more}", named.join(" "))
}

fn summary(result: &PruneResult, dry_run: bool) -> String {
    let (deleted, kept) = (result.deleted.len(), result.kept.len());
    let what = if dry_run { "would be deleted" } else { "deleted" };
    let mut text = format!("the journals of {} {what}, {kept} kept", count(deleted as u64, "run"));
    let failures = result.failures.len() as u64;
    if failures > 0 {
        text.push_str(&format!(", {}", count(failures, "failure")));
    }
    text
}

#[cfg(test)]
mod tests {
    use outlast_runtime::PruneKept;
    use outlast_sandbox::AgeGate;

    use super::*;

    #[test]
    fn a_line_for_each_reason() {
        let run = |id: &str| RunId::new(id).expect("id");
        let kept = |run_id, names: &[&str], reason| PruneKept {
            run_id,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            reason,
        };
        let result = PruneResult {
            listed: 20,
            run_ids: vec![],
            deleted: (0..7).map(|n| run(&format!("r{n}"))).collect(),
            kept: vec![
                kept(Some(run("live")), &["live.ndjson", "live.start"], KeepReason::NonTerminal),
                kept(None, &["a\u{1b}b"], KeepReason::UndecodableName),
                kept(Some(run("other")), &["other.err"], KeepReason::NonTerminal),
            ],
            age_gate: AgeGate::Available,
            failures: vec![],
        };
        assert_eq!(
            lines(&result, false),
            [
                "deleted: 7: r0 r1 r2 r3 r4 and 2 more",
                "kept (undecodable-name): 1: a\u{241b}b",
                "kept (non-terminal): 2: live other",
            ]
        );
        assert_eq!(summary(&result, false), "the journals of 7 runs deleted, 3 kept");
        assert!(lines(&result, true)[0].starts_with("would delete"));
    }
}
