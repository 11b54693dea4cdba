//! A host's way to the sandboxes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::{RunUse, SandboxFacts};
use outlast_core::{ExitSecret, InstanceId, RunId};
use outlast_sandbox::{
    AgeGate, Found, InstancePaths, Journal, JournalRead, KillOutcome, LaunchError, LaunchOrder,
    LaunchOutcome, Provider, ProviderError, RunFile, RunListing,
};

use super::gate::Gate;
use super::plan::Plan;
use super::sandboxes::{Look, Sandboxes};
use crate::dice::Dice;

/// A provider that every host reaches, and that does not always answer.
#[derive(Debug, Clone)]
pub(super) struct SimProvider {
    pub world: Arc<Sandboxes>,
    pub gate: Gate,
    pub dice: Dice,
    pub trouble: Arc<std::sync::atomic::AtomicBool>,
    pub plan: Plan,
}

impl SimProvider {
    /// Before anything is done to the world: time passes, or it does not answer.
    async fn way(&self) -> Result<(), ProviderError> {
        self.gate.pass().await;
        let trouble = self.trouble.load(std::sync::atomic::Ordering::Relaxed);
        let slow = trouble && self.dice.permille(self.plan.delay);
        let time = if slow { self.dice.between(100, 3000) } else { self.dice.between(1, 5) };
        self.world.time.sleep(Duration::from_millis(time)).await;
        self.gate.pass().await;
        if trouble && self.dice.permille(self.plan.sandbox_fail) {
            return Err(ProviderError { provider: "simulated", message: "does not answer".to_owned() });
        }
        Ok(())
    }

    fn look(&self, instance: &InstanceId, run: &RunId) -> Option<Look> {
        self.world.look(instance, run)
    }
}

#[async_trait]
impl Provider for SimProvider {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn machine(&self) -> Option<&str> {
        None
    }

    async fn create(&self, instance: &InstanceId, _: Option<&str>) -> Result<(), ProviderError> {
        self.way().await?;
        self.world.create(instance);
        self.way().await
    }

    async fn exists(&self, instance: &InstanceId) -> Result<bool, ProviderError> {
        self.way().await?;
        Ok(self.world.exists(instance))
    }

    fn paths(&self, instance: &InstanceId, _: Option<&str>) -> InstancePaths {
        let root = PathBuf::from(format!("/simulated/{instance}"));
        InstancePaths { workspace: root.join("work"), prompts: root.join("prompts") }
    }

    async fn launch(&self, order: LaunchOrder) -> Result<LaunchOutcome, LaunchError> {
        let failed = |error: ProviderError| LaunchError::Failed(error.to_string());
        self.way().await.map_err(failed)?;
        let taken = self.world.latch(&order.instance, &order.run, Some(&order.secret));
        let taken = taken.ok_or_else(|| LaunchError::SandboxGone("it is not there".to_owned()))?;
        // The answer may be lost, too.
        self.way().await.map_err(failed)?;
        Ok(if taken { LaunchOutcome::Taken } else { LaunchOutcome::TakenBefore })
    }

    async fn latch_cancelled(
        &self,
        instance: &InstanceId,
        run: &RunId,
    ) -> Result<LaunchOutcome, ProviderError> {
        self.way().await?;
        let taken = self.world.latch(instance, run, None);
        self.way().await?;
        match taken {
            Some(true) => Ok(LaunchOutcome::Taken),
            Some(false) => Ok(LaunchOutcome::TakenBefore),
            None => Err(no_such_sandbox()),
        }
    }

    async fn facts(
        &self,
        instance: &InstanceId,
        run: &RunId,
        _: &ExitSecret,
    ) -> Result<SandboxFacts, ProviderError> {
        self.way().await?;
        Ok(match self.look(instance, run) {
            None => SandboxFacts {
                exists: false,
                latch: outlast_core::journal::latch::LatchState::Free,
                shim_alive: false,
                exit: None,
            },
            Some(look) => {
                SandboxFacts { exists: true, latch: look.latch, shim_alive: look.alive, exit: look.exit }
            }
        })
    }

    async fn journal(
        &self,
        instance: &InstanceId,
        run: &RunId,
        _: &ExitSecret,
        from: u64,
    ) -> Result<Box<dyn Journal>, ProviderError> {
        self.way().await?;
        let position = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(Box::new(SimJournal {
            provider: self.clone(),
            instance: instance.clone(),
            run: run.clone(),
            position,
        }))
    }

    async fn journal_tail(
        &self,
        instance: &InstanceId,
        run: &RunId,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        self.way().await?;
        let look = self.look(instance, run).filter(|look| !look.missing);
        let journal = look.map(|look| look.journal);
        Ok(journal.map(|journal| journal[journal.len().saturating_sub(max_bytes)..].to_vec()))
    }

    async fn stderr_tail(&self, _: &InstanceId, _: &RunId, _: usize) -> Result<String, ProviderError> {
        self.way().await?;
        Ok(String::new())
    }

    async fn kill(
        &self,
        instance: &InstanceId,
        run: &RunId,
        grace: Duration,
    ) -> Result<KillOutcome, ProviderError> {
        self.way().await?;
        let grace = outlast_core::duration::millis(grace);
        if !self.world.kill(instance, run, grace) {
            return Ok(KillOutcome::NeverStarted);
        }
        // Verified: nobody answers before it is dead.
        while self.look(instance, run).is_some_and(|look| look.alive) {
            self.world.time.sleep(Duration::from_millis(20)).await;
        }
        self.way().await?;
        Ok(KillOutcome::Dead)
    }

    async fn destroy(&self, instance: &InstanceId) -> Result<(), ProviderError> {
        self.way().await?;
        if !self.world.destroy(instance) {
            return Err(ProviderError { provider: "simulated", message: "a run lives in it".to_owned() });
        }
        self.way().await
    }

    async fn list(&self) -> Result<Vec<Found>, ProviderError> {
        self.way().await?;
        let found = |instance: InstanceId| Found {
            name: instance.to_string(),
            instance: Some(instance),
            quarantined: false,
            since: Some(0),
        };
        Ok(self.world.list().into_iter().map(found).collect())
    }

    async fn journal_bytes(&self) -> Result<u64, ProviderError> {
        Ok(0)
    }

    async fn run_files(&self, instance: &InstanceId) -> Result<RunListing, ProviderError> {
        self.way().await?;
        let files = self.world.files(instance).ok_or_else(no_such_sandbox)?;
        let age_gate = if self.world.is_ageless() { AgeGate::Unavailable } else { AgeGate::Available };
        let file = |(name, mtime)| RunFile { name, mtime };
        Ok(RunListing {
            files: files.into_iter().map(file).collect(),
            now: Some(self.world.time.now()),
            age_gate,
            trouble: None,
        })
    }

    async fn run_use(&self, instance: &InstanceId, run: &RunId) -> Result<RunUse, ProviderError> {
        self.way().await?;
        Ok(self.world.run_use(instance, run))
    }

    async fn remove_run(&self, instance: &InstanceId, run: &RunId) -> Result<RunUse, ProviderError> {
        self.way().await?;
        let in_use = self.world.prune(instance, run).ok_or_else(no_such_sandbox)?;
        // The answer may be lost, too.
        self.way().await?;
        Ok(in_use)
    }

    async fn quarantine(&self, _: &InstanceId) -> Result<(), ProviderError> {
        self.way().await
    }
}

fn no_such_sandbox() -> ProviderError {
    ProviderError { provider: "simulated", message: "no such sandbox".to_owned() }
}

#[derive(Debug)]
struct SimJournal {
    provider: SimProvider,
    instance: InstanceId,
    run: RunId,
    position: usize,
}

#[async_trait]
impl Journal for SimJournal {
    async fn read(&mut self, max: usize, patience: Duration) -> Result<JournalRead, ProviderError> {
        self.provider.way().await?;
        let mut waited = false;
        loop {
            let Some(look) = self.provider.look(&self.instance, &self.run) else {
                return Ok(JournalRead { missing: true, ..JournalRead::default() });
            };
            let rest = look.journal.get(self.position..).unwrap_or_default();
            let size = look.journal.len() as u64;
            if !rest.is_empty() || waited || patience.is_zero() {
                // Cut anywhere, as pipes do.
                let most = rest.len().min(max).min(self.provider.dice.between(1, 400) as usize);
                let bytes = rest[..most].to_vec();
                self.position += most;
                return Ok(JournalRead { bytes, size, exit: look.exit, missing: look.missing });
            }
            let now = self.provider.world.time.now();
            let next = look.next.map_or(u64::MAX, |next| next.saturating_sub(now));
            let patience = outlast_core::duration::millis(patience);
            self.provider.world.time.sleep(Duration::from_millis(next.min(patience))).await;
            self.provider.gate.pass().await;
            waited = true;
        }
    }
}
