//! What must be so at the end.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::agents::{self, Task};
use super::client::get;
use super::hosts::Hosts;
use super::round::Watched;
use super::viewer::{is_terminal, kind, offset_and_event};
use crate::dice::Dice;

/// What is there at the end.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub ends: BTreeMap<String, usize>,
    pub events: usize,
    pub epochs: u64,
    pub broken: Vec<String>,
}

/// Looks at every run from all sides.
pub(super) async fn check(
    hosts: &Hosts,
    said: &Path,
    watched: &[Watched],
    stopped: &[String],
) -> io::Result<Ended> {
    let address = hosts.any(&Dice::new(0)).ok_or_else(|| io::Error::other("no server is left"))?;
    let mut ended = Ended::default();
    for of in watched {
        let mut broken = Vec::new();
        if let Err(error) = check_run(hosts, address, said, of, stopped, &mut ended, &mut broken).await {
            broken.push(error.to_string());
        }
        ended.broken.extend(broken.into_iter().map(|what| format!("{}: {what}", of.run)));
    }
    Ok(ended)
}

async fn check_run(
    hosts: &Hosts,
    address: SocketAddr,
    said: &Path,
    of: &Watched,
    stopped: &[String],
    ended: &mut Ended,
    broken: &mut Vec<String>,
) -> io::Result<()> {
    let run = &of.run;
    let record = get(address, &format!("/v1/runs/{run}")).await?;
    let status = record["status"].as_str().unwrap_or_default();
    let reason = record["endReason"].as_str().unwrap_or_default();
    *ended.ends.entry(format!("{status} {reason}").trim().to_owned()).or_insert(0) += 1;
    ended.epochs += record["driverEpoch"].as_u64().unwrap_or_default();
    if !matches!(status, "completed" | "failed" | "aborted") {
        broken.push(format!("is not over in time: {record}"));
        return Ok(());
    }
    let stored = stored(hosts, run).await?;
    let log: Vec<&str> = stored.iter().map(|(_, event)| event.as_str()).collect();
    ended.events += log.len();
    broken.extend(whole(&log, &record));
    let text: String = log.iter().filter_map(|event| text_of(event)).collect();
    broken.extend(truthful(&of.task, &record, &text, stopped.contains(run)));
    if !record["driver"].is_null() {
        broken.push(format!("has ended and has a driver: {record}"));
    }
    let messages = get(address, &format!("/v1/runs/{run}/messages")).await?;
    if said_in(&messages) != text {
        broken.push(format!("its transcript and its log differ: {messages}"));
    }
    let report = verified(hosts, run).await?;
    let looked_at = report["journalEvents"].as_u64().unwrap_or_default()
        + report["hostEvents"].as_u64().unwrap_or_default();
    if report["whole"] != true || looked_at != log.len() as u64 {
        broken.push(format!("of {} events were verified: {report}", log.len()));
    }
    for (n, viewed) in of.viewed.iter().enumerate() {
        let viewed = viewed.lock().unwrap_or_else(PoisonError::into_inner);
        broken.extend(viewed.complaints.iter().map(|what| format!("viewer {n} {what}")));
        if !viewed.done {
            broken.push(format!("viewer {n} was not done in time"));
        }
        if viewed.events != stored {
            broken.push(format!("viewer {n} saw {} events, {} are stored", viewed.events.len(), log.len()));
        }
    }
    broken.extend(one_agent(said, run, &record, &text).await);
    Ok(())
}

/// The log as the command line prints it.
async fn stored(hosts: &Hosts, run: &str) -> io::Result<Vec<(String, String)>> {
    let text = said_by(hosts, &["logs", "--json", run]).await?;
    let events = text.lines().map(|line| offset_and_event(line.as_bytes())).collect::<Result<_, _>>();
    events.map_err(io::Error::other)
}

async fn verified(hosts: &Hosts, run: &str) -> io::Result<Value> {
    let text = said_by(hosts, &["verify", "--json", run]).await?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

async fn said_by(hosts: &Hosts, args: &[&str]) -> io::Result<String> {
    let output = hosts.outlast().args(args).output().await?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{args:?}: {}", String::from_utf8_lossy(&output.stderr))));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

/// One beginning, one end, at the ends, and the end that the record names.
fn whole(log: &[&str], record: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let ends: Vec<usize> = (0..log.len()).filter(|n| is_terminal(log[*n])).collect();
    if ends != [log.len().saturating_sub(1)] {
        broken.push(format!("terminal events at {ends:?} of {}", log.len()));
    }
    if log.iter().filter(|event| kind(event) == "RUN_STARTED").count() > 1 {
        broken.push("RUN_STARTED more than once".to_owned());
    }
    let last = log.last().map(|event| kind(event)).unwrap_or_default();
    if (record["status"] == "completed") != (last == "RUN_FINISHED") {
        broken.push(format!("it is {} and its log ends with {last}", record["status"]));
    }
    broken
}

/// The run ended as its agent did, with what it printed, unless somebody pressed Stop.
fn truthful(task: &Task, record: &Value, text: &str, stopped: bool) -> Vec<String> {
    let mut broken = Vec::new();
    let all = agents::text(task.lines);
    let status = record["status"].as_str().unwrap_or_default();
    match (status, record["endReason"].as_str()) {
        ("aborted", _) if stopped && !record["cancelRequested"].is_null() => {
            if !all.starts_with(text) {
                broken.push(format!("it was stopped after {text:?}"));
            }
            return broken;
        }
        ("completed", _) if task.exit == 0 => {}
        ("failed", Some("agent_failed")) if task.exit != 0 => {}
        _ => broken.push(format!("it should not have ended like this: {record}")),
    }
    if !record["cancelRequested"].is_null() {
        broken.push(format!("a Stop is on record and it is {status}"));
    }
    if text != all {
        broken.push(format!("{} of {} bytes are in the log", text.len(), all.len()));
    }
    broken
}

/// Never two agents, and none that outlives its run.
async fn one_agent(said: &Path, run: &str, record: &Value, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let started = agents::started(said, run);
    let may_be_none = record["status"] == "aborted" && text.is_empty();
    if started > 1 || (started == 0 && !may_be_none) {
        broken.push(format!("it had {started} agents"));
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let alive = agents::alive(run);
        if alive.is_empty() {
            return broken;
        }
        if Instant::now() > deadline {
            broken.push(format!("it has ended and these processes of it live: {alive:?}"));
            return broken;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn text_of(event: &str) -> Option<String> {
    let value: Value = serde_json::from_str(event).ok()?;
    (value["type"] == "TEXT_MESSAGE_CONTENT").then(|| value["delta"].as_str().unwrap_or_default().to_owned())
}

/// What the assistant says in a transcript.
fn said_in(messages: &Value) -> String {
    let messages = messages["messages"].as_array();
    messages
        .into_iter()
        .flatten()
        .filter(|message| message["role"] == "assistant")
        .filter_map(|message| message["content"].as_str())
        .collect()
}
