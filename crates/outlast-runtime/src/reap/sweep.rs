//! One sweep.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::decide::{Reach, SweepFacts, SweepStep, sweep};
use outlast_core::duration::millis;
use outlast_core::run::{RunRecord, Status};
use outlast_core::{ErrorCode, RunId};
use outlast_store::{ListRuns, StoreError};

use super::{ReapError, ReapOptions, ReapOutcome, ReapResult, ReapRun};
use crate::side_by_side::side_by_side;
use crate::{Host, RunProbe};

/// How many runs are listed, and held in memory, at once.
const PAGE: usize = 256;

/// Where the next sweep begins: after the run with which the last one stopped, so that runs that are looked at in vain do
/// not keep the others from being looked at.
#[derive(Debug, Default)]
pub(crate) struct SweepFrom(Mutex<Option<(u64, RunId)>>);

impl SweepFrom {
    fn get(&self) -> Option<(u64, RunId)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, from: Option<(u64, RunId)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = from;
    }
}

/// What is to be done to a run that is not left alone.
enum Job {
    Expire,
    End,
    Finalize,
}

impl Host {
    /// Brings runs that nobody watches to their end: those whose agent has ended are driven to it, so that their
    /// transcript is complete; those whose time is up are stopped. Runs that work and runs of which nothing can be told
    /// are not touched. Never fails as a whole: what goes wrong with one run is told of that run, and the next is gone
    /// on with.
    pub async fn reap_detached_runs(&self, options: &ReapOptions) -> ReapResult {
        let mut result = ReapResult::empty();
        if let Err(error) = self.sweep(options, &mut result).await {
            result.error = Some(ReapError::new(error.code(), error));
        }
        log(&result);
        result
    }

    async fn sweep(&self, options: &ReapOptions, result: &mut ReapResult) -> Result<(), StoreError> {
        let host = &self.inner;
        let began = host.ports.clock.boot_ms();
        let limit = options.time_limit.map(millis);
        let alive: BTreeSet<Option<String>> =
            host.store.hosts().await?.into_iter().map(|seen| seen.machine).collect();
        let from = host.sweep_from.get();
        let mut query = ListRuns {
            tenant: host.tenant.clone(),
            statuses: vec![Status::Running, Status::Interrupted],
            detached: true,
            after: from.clone(),
            limit: PAGE,
            ..ListRuns::default()
        };
        let mut room = options.max_runs;
        // From where the last sweep stopped to the end, and then from the beginning to there.
        let mut wrapped = from.is_none();
        loop {
            let page = host.store.list_runs(&query).await?;
            let full = page.len() == PAGE;
            let now = host.store.now().await?;
            for chunk in page.chunks(options.probes_at_once.max(1) * 4) {
                let over = limit.is_some_and(|limit| host.ports.clock.boot_ms() - began >= limit);
                if room == 0 || over {
                    host.sweep_from.set(query.after.clone());
                    return Ok(());
                }
                let passed = |run: &RunRecord| {
                    wrapped
                        && from.as_ref().is_some_and(|from| (run.started_at, &run.run_id) < (from.0, &from.1))
                };
                let chunk: Vec<RunRecord> = chunk.iter().filter(|run| !passed(run)).cloned().collect();
                let Some(last) = chunk.last().map(|run| (run.started_at, run.run_id.clone())) else {
                    host.sweep_from.set(None);
                    return Ok(());
                };
                let jobs = self.classify(chunk, now, &alive, options, result).await;
                // What finds no room is the first of the next sweep.
                let taken = jobs.len().min(room);
                let rest = jobs.get(taken).map(|(run, _)| (run.started_at, run.run_id.clone()));
                room -= taken;
                let done =
                    side_by_side(jobs.into_iter().take(taken), options.drives_at_once, |(run, job)| {
                        let (host, options) = (self.clone(), options.clone());
                        let reach = host.reach(&run, &alive);
                        async move {
                            (run.run_id.clone(), Box::pin(host.carry_out(run, job, reach, &options)).await)
                        }
                    });
                for entry in done.await.into_iter().flatten() {
                    result.add(entry.1);
                }
                if let Some((at, run_id)) = rest {
                    // Strictly after: one more, so that the run itself comes first.
                    host.sweep_from.set(Some((at.saturating_add(1), run_id)));
                    return Ok(());
                }
                query.after = Some(last);
            }
            if !full {
                if wrapped {
                    host.sweep_from.set(None);
                    return Ok(());
                }
                wrapped = true;
                query.after = None;
            }
        }
    }

    /// Who reaches the run's sandbox. A run that has none is reached by everybody.
    fn reach(&self, run: &RunRecord, alive: &BTreeSet<Option<String>>) -> Reach {
        match self.inner.elsewhere(run) {
            None => Reach::Here,
            Some(machine) if alive.contains(&Some(machine.to_owned())) => Reach::Elsewhere,
            Some(_) => Reach::Nobody,
        }
    }

    /// Looks at runs, and tells what is to be done to which. Those that are to be left alone are in the result.
    async fn classify(
        &self,
        runs: Vec<RunRecord>,
        now: u64,
        alive: &BTreeSet<Option<String>>,
        options: &ReapOptions,
        result: &mut ReapResult,
    ) -> Vec<(RunRecord, Job)> {
        let step = |run: &RunRecord| {
            sweep(&SweepFacts {
                status: run.status,
                detached_for: run.detached_since.map(|since| now.saturating_sub(since)),
                ttl: options.ttl.map(millis).or(run.detached_ttl),
                interrupted_ttl: options.interrupted_ttl.map(millis),
                cancel: run.cancel_requested.map(|cancel| cancel.reason),
                driven: run.driver.is_some(),
                reach: self.reach(run, alive),
            })
        };
        let steps: Vec<SweepStep> = runs.iter().map(step).collect();
        let asked: Vec<RunRecord> = runs
            .iter()
            .zip(&steps)
            .filter(|(_, step)| **step == SweepStep::Probe)
            .map(|(run, _)| run.clone())
            .collect();
        result.probed += asked.len();
        let probes = side_by_side(asked, options.probes_at_once, |run| {
            let (host, steps) = (self.clone(), Arc::clone(&options.steps));
            async move { steps.probe(&host, &run).await }
        });
        let mut probes = probes.await.into_iter();
        let mut jobs = Vec::new();
        for (run, step) in runs.into_iter().zip(steps) {
            match step {
                SweepStep::Leave => {}
                SweepStep::Expire => jobs.push((run, Job::Expire)),
                SweepStep::End => jobs.push((run, Job::End)),
                SweepStep::Probe => match probes.next().flatten() {
                    Some(RunProbe::Finished { .. } | RunProbe::Lost) => jobs.push((run, Job::Finalize)),
                    Some(RunProbe::Producing | RunProbe::NotLaunched) => {
                        result.add(ReapRun::new(&run.run_id, ReapOutcome::Producing));
                    }
                    Some(RunProbe::Unknown { cause }) => result.add(
                        ReapRun::new(&run.run_id, ReapOutcome::Unknown)
                            .because(ErrorCode::SandboxUnreachable, cause),
                    ),
                    None => result.add(panicked(&run.run_id)),
                },
            }
        }
        jobs
    }

    async fn carry_out(&self, run: RunRecord, job: Job, reach: Reach, options: &ReapOptions) -> ReapRun {
        // In a task of its own, so that what panics takes nothing else with it.
        let (host, options, run_id) = (self.clone(), options.clone(), run.run_id.clone());
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            match job {
                Job::Expire => host.expire(&run, reach, &options).await,
                Job::End => host.bring_to_end(run, reach, &options).await,
                Job::Finalize => host.finalize(&run, &options).await,
            }
        });
        match task.join_next().await {
            Some(Ok(entry)) => entry,
            Some(Err(_)) | None => panicked(&run_id),
        }
    }
}

fn panicked(run_id: &RunId) -> ReapRun {
    ReapRun::new(run_id, ReapOutcome::Failed)
        .because(ErrorCode::Internal, "the sweep has panicked at this run")
}

/// One line for the sweep, and a warning for each run that needs attention.
fn log(result: &ReapResult) {
    let outcomes = result.summary();
    let outcomes = if outcomes.is_empty() { "nothing to do".to_owned() } else { outcomes };
    match &result.error {
        None => tracing::info!(considered = result.considered, probed = result.probed, outcomes, "swept"),
        Some(error) => {
            tracing::error!(considered = result.considered, outcomes, code = %error.code, message = error.message, "the sweep could not list all runs");
        }
    }
    for run in result.runs.iter().filter(|run| run.outcome.needs_attention()) {
        let message = run.error.as_ref().map_or("", |error| error.message.as_str());
        tracing::warn!(run = %run.run_id, outcome = run.outcome.as_str(), message, "a run needs attention");
    }
}
