//! Who makes the trouble.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::ask;
use super::database::Database;
use super::hosts::Hosts;
use super::plan::Plan;
use crate::dice::Dice;

/// What has been done.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    pub counts: BTreeMap<&'static str, usize>,
    /// Runs of which somebody tried to press Stop.
    pub stopped: Vec<String>,
    /// What should not have been.
    pub complaints: Vec<String>,
}

pub(super) struct Adversary {
    pub plan: Plan,
    pub hosts: Arc<Hosts>,
    pub database: Arc<Database>,
    pub dice: Dice,
    /// Runs that have been started so far.
    pub runs: Arc<Mutex<Vec<String>>>,
    pub deeds: Arc<Mutex<Deeds>>,
}

impl Adversary {
    fn with<T>(&self, f: impl FnOnce(&mut Deeds) -> T) -> T {
        f(&mut self.deeds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes trouble for as long as the plan says, then sees to it that every server runs.
    pub async fn act(self: Arc<Self>) -> io::Result<()> {
        let until = Instant::now() + self.plan.trouble;
        let mut going_on = JoinSet::new();
        let mut turn = 0;
        while Instant::now() < until {
            let pause = outlast_core::duration::millis(self.plan.pause);
            sleep(Duration::from_millis(self.dice.between(100, pause.max(100)))).await;
            let troubles = self.plan.troubles;
            let mut kinds = Vec::new();
            for (times, kind) in [
                (troubles.kill, "killed"),
                (troubles.freeze, "frozen"),
                (troubles.restart, "restarted"),
                (troubles.cut_database, "cut from the database"),
                (troubles.cancel, "stopped"),
            ] {
                kinds.extend(std::iter::repeat_n(kind, times));
            }
            let Some(kind) = kinds.get(self.dice.pick(kinds.len())).copied() else { return Ok(()) };
            // One server after the other where a deploy is all there is; any of them otherwise.
            let one_by_one = kinds.iter().all(|kind| *kind == "restarted");
            let place =
                if one_by_one { turn % self.hosts.count() } else { self.dice.pick(self.hosts.count()) };
            turn += 1;
            let me = Arc::clone(&self);
            if one_by_one {
                me.deed(kind, place).await?;
            } else {
                going_on.spawn(async move { me.deed(kind, place).await });
            }
        }
        while let Some(done) = going_on.join_next().await {
            done.map_err(io::Error::other)??;
        }
        for place in 0..self.hosts.count() {
            self.hosts.start(place).await?;
        }
        Ok(())
    }

    async fn deed(&self, kind: &'static str, place: usize) -> io::Result<()> {
        match kind {
            "killed" => {
                self.hosts.kill(place).await?;
                if self.dice.permille(300) {
                    sleep(self.plan.lease).await;
                }
                self.hosts.start(place).await?;
            }
            "frozen" => {
                let percent = u32::try_from(self.dice.between(110, 250)).unwrap_or(110);
                self.hosts.freeze(place, self.plan.lease * percent / 100).await;
            }
            "restarted" => {
                if !self.hosts.terminate(place).await? {
                    self.with(|deeds| {
                        deeds.complaints.push(format!("server {place} has not ended well after SIGTERM"));
                    });
                }
                self.hosts.start(place).await?;
            }
            "cut from the database" => drop(self.database.cut(self.dice.between(20, 100)).await?),
            _ => self.stop_a_run().await,
        }
        self.with(|deeds| *deeds.counts.entry(kind).or_insert(0) += 1);
        Ok(())
    }

    /// Presses Stop until it is acknowledged, as a person would.
    async fn stop_a_run(&self) {
        let run = {
            let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(run) = runs.get(self.dice.pick(runs.len())).cloned() else { return };
            run
        };
        // From now on it may take effect: an answer can be lost.
        self.with(|deeds| deeds.stopped.push(run.clone()));
        let body = json!({"runId": run});
        // The servers may all be dead at the moment, so it may take some time; it is over with the trouble.
        for _ in 0..200 {
            if let Some(address) = self.hosts.any(&self.dice)
                && let Ok(answer) = ask(address, Method::POST, "/api/chat/cancel", &[], Some(&body)).await
            {
                match answer.status() {
                    StatusCode::NO_CONTENT => return,
                    StatusCode::SERVICE_UNAVAILABLE => {}
                    status => {
                        let what = format!("{run}: Stop was answered {status}");
                        return self.with(|deeds| deeds.complaints.push(what));
                    }
                }
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
