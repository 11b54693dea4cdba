//! One round: trouble, calm, and the question whether everything is as it was promised.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::adversary::{Adversary, Deeds};
use super::agents::{self, Task};
use super::check::{Ended, check};
use super::database::Database;
use super::hosts::Hosts;
use super::plan::Plan;
use super::proxy::proxy;
use super::viewer::{Viewed, Viewer, request};
use crate::dice::Dice;

/// What came of a round.
#[derive(Debug)]
pub struct Report {
    /// What it was drawn from.
    pub seed: u64,
    /// Runs by how they ended.
    pub ends: BTreeMap<String, usize>,
    /// What the adversary did, and how often.
    pub deeds: BTreeMap<&'static str, usize>,
    /// Viewers, and the connections that they needed.
    pub viewers: usize,
    /// See `viewers`.
    pub connections: usize,
    /// Events in all logs together.
    pub events: usize,
    /// Epochs of all runs together: how often somebody began to drive one.
    pub epochs: u64,
    /// Every promise that was broken; empty if all is well.
    pub broken: Vec<String>,
}

/// A run and everybody who watches it.
pub(super) struct Watched {
    pub run: String,
    pub task: Task,
    pub viewed: Vec<Arc<Mutex<Viewed>>>,
}

/// Plays a round.
///
/// # Errors
///
/// The round itself could not be played: no PostgreSQL, no binary, no room. Broken promises are in the report.
pub async fn round(plan: &Plan) -> io::Result<Report> {
    let dice = Dice::new(plan.seed);
    let said = plan.dir.join("agents");
    std::fs::create_dir_all(&said)?;
    std::fs::create_dir_all(plan.dir.join("data"))?;
    let configuration = format!(
        "[driver]\nlease = \"{}ms\"\n[serve]\nagent = \"numbers\"\nheartbeat = \"2s\"\n[retention]\nkeep_journals = \"1d\"\n{}",
        plan.lease.as_millis(),
        agents::configuration(&said)
    );
    std::fs::write(plan.dir.join("outlast.toml"), configuration)?;
    let schema = format!("outlast_chaos_{}_{}", plan.seed, std::process::id());
    let database = Arc::new(Database::create(&plan.database, &schema).await?);
    let hosts =
        Arc::new(Hosts::new(plan.outlast.clone(), plan.dir.clone(), database.url.clone(), plan.hosts));
    for place in 0..plan.hosts {
        hosts.start(place).await?;
    }
    let address = proxy(Arc::clone(&hosts), dice.fork(), plan.cut_viewers).await?;
    let runs = Arc::new(Mutex::new(Vec::new()));
    let deeds = Arc::new(Mutex::new(Deeds::default()));
    let adversary = Arc::new(Adversary {
        plan: plan.clone(),
        hosts: Arc::clone(&hosts),
        database: Arc::clone(&database),
        dice: dice.fork(),
        runs: Arc::clone(&runs),
        deeds: Arc::clone(&deeds),
    });
    let mut watching = JoinSet::new();
    let mut watched = Vec::new();
    for n in 0..plan.runs {
        let run = format!("run-{}-{n}", plan.seed);
        let dice = dice.fork();
        let task = Task::draw(&dice);
        let viewers: Vec<Viewer> = (0..plan.viewers.max(1))
            .map(|_| Viewer {
                run: run.clone(),
                proxy: address,
                dice: dice.fork(),
                restless: plan.cut_viewers,
                viewed: Arc::default(),
            })
            .collect();
        let viewed = viewers.iter().map(|viewer| Arc::clone(&viewer.viewed)).collect();
        watched.push(Watched { run: run.clone(), task: task.clone(), viewed });
        let latest = u64::try_from(plan.trouble.as_millis() * 8 / 10).unwrap_or(u64::MAX);
        let after = Duration::from_millis(dice.between(0, latest));
        let runs = Arc::clone(&runs);
        watching.spawn(async move {
            sleep(after).await;
            watch(run, &task, viewers, runs).await;
        });
    }
    let troubled = tokio::spawn(Arc::clone(&adversary).act());
    troubled.await.map_err(io::Error::other)??;
    let deadline = Instant::now() + plan.calm;
    while !watching.is_empty() && Instant::now() < deadline {
        let left = deadline.saturating_duration_since(Instant::now());
        let _ = tokio::time::timeout(left, watching.join_next()).await;
    }
    watching.abort_all();
    let deeds = std::mem::take(&mut *deeds.lock().unwrap_or_else(PoisonError::into_inner));
    let Ended { ends, events, epochs, mut broken } = check(&hosts, &said, &watched, &deeds.stopped).await?;
    broken.extend(deeds.complaints);
    for place in 0..plan.hosts {
        if !hosts.terminate(place).await? {
            broken.push(format!("server {place} has not ended well"));
        }
    }
    if broken.is_empty() {
        database.drop_schema().await?;
    }
    let all: Vec<_> = watched.iter().flat_map(|watched| &watched.viewed).collect();
    let connections =
        all.iter().map(|viewed| viewed.lock().unwrap_or_else(PoisonError::into_inner).connections);
    Ok(Report {
        seed: plan.seed,
        ends,
        deeds: deeds.counts,
        viewers: all.len(),
        connections: connections.sum(),
        events,
        epochs,
        broken,
    })
}

/// The first viewer starts the run, the others come once it is there.
async fn watch(run: String, task: &Task, viewers: Vec<Viewer>, runs: Arc<Mutex<Vec<String>>>) {
    let mut viewers = viewers.into_iter();
    let Some(first) = viewers.next() else { return };
    let viewed = Arc::clone(&first.viewed);
    let request = request(&run, &task.prompt());
    let mut all = JoinSet::new();
    all.spawn(async move { first.start(&request).await });
    loop {
        {
            let viewed = viewed.lock().unwrap_or_else(PoisonError::into_inner);
            if !viewed.complaints.is_empty() {
                return;
            }
            if !viewed.events.is_empty() {
                break;
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
    for viewer in viewers {
        all.spawn(async move {
            sleep(Duration::from_millis(viewer.dice.between(0, 3000))).await;
            viewer.follow().await;
        });
    }
    while all.join_next().await.is_some() {}
}
