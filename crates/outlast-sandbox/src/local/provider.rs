//! The provider.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::{RunUse, SandboxFacts};
use outlast_core::journal::exit::ExitRecord;
use outlast_core::journal::files;
use outlast_core::journal::latch::{Latch, LatchState};
use outlast_core::{ExitSecret, InstanceId, RunId};
use outlast_shim::{latch, lock};
use outlast_store::Ports;

use super::config::{LocalConfig, ShimProgram};
use super::errors::{Attempting, NAME, failed};
use super::journal::LocalJournal;
use super::layout::Layout;
use super::watch::Watches;
use super::{kill, launch, machine, prune};
use crate::{
    Found, InstancePaths, Journal, KillOutcome, LaunchError, LaunchOrder, LaunchOutcome, Provider,
    ProviderError, RunListing,
};

/// Sandboxes as directories on this machine.
#[derive(Debug)]
pub struct LocalProvider {
    layout: Layout,
    shim: ShimProgram,
    ports: Ports,
    machine: String,
    watches: Watches,
}

impl LocalProvider {
    /// Opens the directory that holds the instances, making it if it is missing.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, read or written.
    pub fn new(config: LocalConfig) -> Result<Self, ProviderError> {
        let layout = Layout::open(&config.root)?;
        let machine = machine::identify(layout.root(), &*config.ports.entropy)?;
        Ok(LocalProvider {
            layout,
            shim: config.shim,
            ports: config.ports,
            machine,
            watches: Watches::default(),
        })
    }

    /// The end of one of the run's files; none where there is no such file.
    fn tail(
        &self,
        instance: &InstanceId,
        run: &RunId,
        suffix: &str,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let path = self.layout.runs(instance).join(format!("{}{suffix}", run.encoded()));
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            let from = file.metadata()?.len().saturating_sub(max_bytes as u64);
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(max_bytes as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(format!("cannot read {}: {error}", path.display()))),
        }
    }
}

#[async_trait]
impl Provider for LocalProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn machine(&self) -> Option<&str> {
        Some(&self.machine)
    }

    async fn create(&self, instance: &InstanceId, lent: Option<&str>) -> Result<(), ProviderError> {
        self.layout.create(instance, lent.is_none())
    }

    async fn exists(&self, instance: &InstanceId) -> Result<bool, ProviderError> {
        self.layout.exists(instance)
    }

    fn paths(&self, instance: &InstanceId, lent: Option<&str>) -> InstancePaths {
        InstancePaths {
            workspace: lent.map_or_else(|| self.layout.work(instance), Into::into),
            prompts: self.layout.prompts(instance),
        }
    }

    async fn launch(&self, order: LaunchOrder) -> Result<LaunchOutcome, LaunchError> {
        launch::launch(&self.layout, &self.shim, &self.ports, order).await
    }

    async fn latch_cancelled(
        &self,
        instance: &InstanceId,
        run: &RunId,
    ) -> Result<LaunchOutcome, ProviderError> {
        let runs = self.layout.runs(instance);
        let taking = latch::take_cancelled(&runs, &run.encoded())
            .attempting(|| format!("cannot take the launch latch in {}", runs.display()))?;
        Ok(match taking {
            latch::Taking::Taken => LaunchOutcome::Taken,
            latch::Taking::TakenBefore => LaunchOutcome::TakenBefore,
        })
    }

    async fn facts(
        &self,
        instance: &InstanceId,
        run: &RunId,
        secret: &ExitSecret,
    ) -> Result<SandboxFacts, ProviderError> {
        let runs = self.layout.runs(instance);
        let file = |suffix| runs.join(format!("{}{suffix}", run.encoded()));
        let exists = self.layout.exists(instance)?;
        // Latch, lock, exit, in this order. A shim takes its lock before its latch, so a latch that was seen taken
        // with a lock that is free afterwards is a dead shim's; and what a shim that was dead then has not written to
        // the exit file, it never will.
        let latch =
            latch::read(&runs, &run.encoded()).attempting(|| "cannot read the launch latch".to_owned())?;
        let held =
            lock::is_held(&file(files::LOCK)).attempting(|| "cannot ask for the run's lock".to_owned())?;
        let this_boot = match &latch {
            LatchState::Taken(Latch::Launch(launch)) => launch.boot_id == self.ports.clock.boot_id(),
            _ => true,
        };
        let exit = match std::fs::read(file(files::EXIT)) {
            Ok(bytes) => ExitRecord::parse(&bytes, secret),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(format!("cannot read the run's exit: {error}"))),
        };
        Ok(SandboxFacts { exists, latch, shim_alive: held && this_boot, exit })
    }

    async fn journal(
        &self,
        instance: &InstanceId,
        run: &RunId,
        secret: &ExitSecret,
        from: u64,
    ) -> Result<Box<dyn Journal>, ProviderError> {
        let (runs, enc) = (self.layout.runs(instance), run.encoded());
        // The watch comes before the first look, so that nothing that happens after it is missed.
        let watch = self.watches.watch(&runs, &enc);
        let clock = std::sync::Arc::clone(&self.ports.clock);
        Ok(Box::new(LocalJournal::new(clock, &runs, &enc, secret.clone(), from, watch)))
    }

    async fn journal_tail(
        &self,
        instance: &InstanceId,
        run: &RunId,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        self.tail(instance, run, files::JOURNAL, max_bytes)
    }

    async fn stderr_tail(
        &self,
        instance: &InstanceId,
        run: &RunId,
        max_bytes: usize,
    ) -> Result<String, ProviderError> {
        let tail = self.tail(instance, run, files::STDERR, max_bytes)?;
        Ok(tail.map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn kill(
        &self,
        instance: &InstanceId,
        run: &RunId,
        grace: Duration,
    ) -> Result<KillOutcome, ProviderError> {
        kill::kill(&*self.ports.clock, &self.layout.runs(instance), &run.encoded(), grace).await
    }

    async fn destroy(&self, instance: &InstanceId) -> Result<(), ProviderError> {
        self.layout.destroy(instance)
    }

    async fn list(&self) -> Result<Vec<Found>, ProviderError> {
        self.layout.list()
    }

    async fn journal_bytes(&self) -> Result<u64, ProviderError> {
        self.layout.journal_bytes()
    }

    async fn run_files(&self, instance: &InstanceId) -> Result<RunListing, ProviderError> {
        prune::list(&self.layout.runs(instance), self.ports.clock.wall_ms())
    }

    async fn run_use(&self, instance: &InstanceId, run: &RunId) -> Result<RunUse, ProviderError> {
        prune::in_use(&self.layout.runs(instance), &run.encoded())
    }

    async fn remove_run(&self, instance: &InstanceId, run: &RunId) -> Result<RunUse, ProviderError> {
        prune::remove(&self.layout.runs(instance), &self.layout.prompts(instance), &run.encoded())
    }

    async fn quarantine(&self, instance: &InstanceId) -> Result<(), ProviderError> {
        self.layout.quarantine(instance)
    }
}
