//! The sandboxes of the simulated world. They outlive every host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::decide::RunUse;
use outlast_core::journal::exit::ExitRecord;
use outlast_core::journal::latch::{Fence, Latch, LatchState, LaunchLatch, ProcessId};
use outlast_core::journal::{files, sentinel};
use outlast_core::{ExitSecret, InstanceId, RunId};

use super::agent::{Done, Now, Script};
use super::clock::Time;
use super::history::History;

#[derive(Debug)]
pub(super) struct Sandboxes {
    pub time: Time,
    history: History,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    instances: BTreeMap<InstanceId, BTreeMap<RunId, Agent>>,
    /// Runs whose sandbox was destroyed.
    destroyed: Vec<(RunId, Agent)>,
    /// What each run's agent is going to do.
    scripts: BTreeMap<RunId, Script>,
    /// What is odd in every sandbox.
    oddities: Oddities,
}

/// What is odd in every sandbox, for those who look into runs directories.
#[derive(Debug, Clone, Default)]
pub(super) struct Oddities {
    /// Files that no run of this world has made: names, and when they were written.
    pub strays: Vec<(Vec<u8>, Option<u64>)>,
    /// Whether no ages are told.
    pub ageless: bool,
    /// Runs whose journals somebody has open.
    pub readers: BTreeSet<RunId>,
    /// Runs whose files cannot be deleted.
    pub stuck: BTreeSet<RunId>,
}

/// A run within a sandbox.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    latch: LatchState,
    started: u64,
    secret: ExitSecret,
    script: Script,
    done: Done,
    /// How often it was started. More than once is what must never be.
    pub starts: u32,
    /// Whether its files are deleted, all but the latch.
    pub pruned: bool,
}

impl Agent {
    pub fn now(&self, time: u64) -> Option<Now> {
        matches!(self.latch, LatchState::Taken(Latch::Launch(_)))
            .then(|| self.script.at(self.started, time, self.done))
    }

    fn exit(&self, now: &Now) -> Option<ExitRecord> {
        now.exit.map(|exit| ExitRecord {
            exit,
            signal: (exit > 128).then(|| exit - 128),
            stdout_bytes: Script::text(now.lines).len() as u64,
            nonce: self.secret.clone(),
            cause: None,
        })
    }
}

/// What a look into a sandbox yields.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub latch: LatchState,
    pub alive: bool,
    pub exit: Option<ExitRecord>,
    pub journal: Vec<u8>,
    /// When something may have changed next.
    pub next: Option<u64>,
    /// Whether there is no journal.
    pub missing: bool,
}

impl Sandboxes {
    pub fn new(time: Time, history: History) -> Arc<Sandboxes> {
        Arc::new(Sandboxes { time, history, state: Mutex::default() })
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the run's agent is going to do.
    pub fn script(&self, run: &RunId, script: Script) {
        self.with(|state| state.scripts.insert(run.clone(), script));
    }

    pub fn create(&self, instance: &InstanceId) {
        self.with(|state| {
            state.instances.entry(instance.clone()).or_default();
        });
    }

    pub fn exists(&self, instance: &InstanceId) -> bool {
        self.with(|state| state.instances.contains_key(instance))
    }

    pub fn list(&self) -> Vec<InstanceId> {
        self.with(|state| state.instances.keys().cloned().collect())
    }

    /// Destroys it; false where a run lives in it. What is checked in the end is kept.
    pub fn destroy(&self, instance: &InstanceId) -> bool {
        let now = self.time.now();
        self.with(|state| {
            let Some(runs) = state.instances.get(instance) else { return true };
            if runs.values().any(|agent| agent.now(now).is_some_and(|now| now.alive)) {
                return false;
            }
            let runs = state.instances.remove(instance).unwrap_or_default();
            state.destroyed.extend(runs);
            true
        })
    }

    /// The files in a sandbox, with the times of their last change; none where there is no such sandbox.
    pub fn files(&self, instance: &InstanceId) -> Option<Vec<(Vec<u8>, Option<u64>)>> {
        let now = self.time.now();
        self.with(|state| {
            let runs = state.instances.get(instance)?;
            let mut found = state.oddities.strays.clone();
            for (run, agent) in runs {
                let left = if agent.starts == 0 || agent.pruned { &files::ALL[..1] } else { files::ALL };
                let alive = agent.now(now).is_some_and(|now| now.alive);
                let at = if alive { now } else { agent.started };
                let name = |suffix: &&str| (format!("{}{suffix}", run.encoded()).into_bytes(), Some(at));
                found.extend(left.iter().map(name));
            }
            Some(found)
        })
    }

    /// What is odd in every sandbox, from now on.
    #[cfg(test)]
    pub fn make_odd(&self, change: impl FnOnce(&mut Oddities)) {
        self.with(|state| change(&mut state.oddities));
    }

    pub fn is_ageless(&self) -> bool {
        self.with(|state| state.oddities.ageless)
    }

    /// Who uses the run's files.
    pub fn run_use(&self, instance: &InstanceId, run: &RunId) -> RunUse {
        if self.look(instance, run).is_some_and(|look| look.alive) {
            return RunUse::Shim;
        }
        if self.with(|state| state.oddities.readers.contains(run)) { RunUse::Reader } else { RunUse::Free }
    }

    /// Deletes a run's files where nobody uses them; none where there is no such sandbox, or it cannot be done.
    pub fn prune(&self, instance: &InstanceId, run: &RunId) -> Option<RunUse> {
        let in_use = self.run_use(instance, run);
        self.with(|state| {
            let runs = state.instances.get_mut(instance)?;
            if state.oddities.stuck.contains(run) {
                return None;
            }
            if in_use == RunUse::Free {
                if let Some(agent) = runs.get_mut(run) {
                    agent.pruned = true;
                }
                state.oddities.strays.retain(|(name, _)| files::run_of(name).as_ref() != Some(run));
                self.history.note(format!("sandbox prune {run}"));
            }
            Some(in_use)
        })
    }

    /// Whether the run's files were deleted.
    pub fn is_pruned(&self, run: &RunId) -> bool {
        self.agents(run).iter().any(|agent| agent.pruned)
    }

    /// Takes the run's latch, for an agent or for a cancel. False where it was taken before; none where there is no such
    /// sandbox.
    pub fn latch(&self, instance: &InstanceId, run: &RunId, secret: Option<&ExitSecret>) -> Option<bool> {
        let now = self.time.now();
        self.with(|state| {
            let script = state.scripts.get(run).cloned()?;
            let runs = state.instances.get_mut(instance)?;
            let taken = match runs.get(run) {
                Some(_) => false,
                None => {
                    let process = ProcessId { pid: 2, start: now };
                    let latch = match secret {
                        None => Latch::Cancelled,
                        Some(_) => Latch::Launch(LaunchLatch {
                            boot_id: "simulated".to_owned(),
                            pid_ns: 1,
                            shim: process,
                            fence: Fence::Subreaper { keeper: process },
                        }),
                    };
                    let agent = Agent {
                        latch: LatchState::Taken(latch),
                        started: now,
                        secret: secret.cloned().unwrap_or_else(|| ExitSecret::from_bytes([0; 16])),
                        script,
                        done: Done::default(),
                        starts: u32::from(secret.is_some()),
                        pruned: false,
                    };
                    runs.insert(run.clone(), agent);
                    true
                }
            };
            self.history.note(format!(
                "sandbox latch {run} {} {taken}",
                if secret.is_some() { "launch" } else { "cancel" }
            ));
            Some(taken)
        })
    }

    /// Kills the run's agent. False where none was started.
    pub fn kill(&self, instance: &InstanceId, run: &RunId, grace: u64) -> bool {
        let now = self.time.now();
        self.with(|state| {
            let agent = state.instances.get_mut(instance).and_then(|runs| runs.get_mut(run));
            let Some(agent) = agent.filter(|agent| agent.starts > 0) else {
                return false;
            };
            let sooner = agent.done.killed.is_none_or(|(at, old)| now + grace < at + old);
            if sooner {
                agent.done.killed = Some((now, grace));
                self.history.note(format!("sandbox kill {run}"));
            }
            true
        })
    }

    /// Kills a shim, as the kernel does when memory runs out.
    pub fn lose(&self, run: &RunId) {
        let now = self.time.now();
        self.with(|state| {
            for agent in state.instances.values_mut().filter_map(|runs| runs.get_mut(run)) {
                agent.done.lost.get_or_insert(now);
                self.history.note(format!("sandbox lose {run}"));
            }
        });
    }

    /// The run as it is now; none where there is no such sandbox.
    pub fn look(&self, instance: &InstanceId, run: &RunId) -> Option<Look> {
        let now = self.time.now();
        self.with(|state| {
            let runs = state.instances.get(instance)?;
            let Some(agent) = runs.get(run) else {
                return Some(Look {
                    latch: LatchState::Free,
                    alive: false,
                    exit: None,
                    journal: Vec::new(),
                    next: None,
                    missing: true,
                });
            };
            let look = Look {
                latch: agent.latch.clone(),
                alive: false,
                exit: None,
                journal: Vec::new(),
                next: None,
                missing: true,
            };
            Some(match agent.now(now).filter(|_| !agent.pruned) {
                None => look,
                Some(is) => {
                    let exit = agent.exit(&is);
                    let mut journal = Script::text(is.lines).into_bytes();
                    if let Some(exit) = &exit {
                        journal.extend_from_slice(sentinel::block(exit.exit, &agent.secret).as_bytes());
                    }
                    let next = is.alive.then(|| agent.script.next(agent.started, now));
                    Look { alive: is.alive, exit, journal, next, missing: false, ..look }
                }
            })
        })
    }

    /// Everything that was ever started for the run.
    pub fn agents(&self, run: &RunId) -> Vec<Agent> {
        self.with(|state| {
            let there = state.instances.values().filter_map(|runs| runs.get(run));
            let gone = state.destroyed.iter().filter(|(of, _)| of == run).map(|(_, agent)| agent);
            there.chain(gone).cloned().collect()
        })
    }
}
