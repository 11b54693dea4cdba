//! Reading the journal.

use std::time::Duration;

use outlast_agents::{JournalEnd, Progress, RunContext, Translation};
use outlast_core::decide::silent;
use outlast_core::event::{Chunk, Origin};
use outlast_core::journal::exit::ExitRecord;
use outlast_core::journal::latch::{Latch, LatchState};
use outlast_core::run::CancelReason;
use outlast_sandbox::{Journal, JournalRead, KillOutcome, ProviderError};

use super::driver::{DriveEnd, Driver};
use super::finish::Exit;
use crate::fail;

/// How long a read of the journal waits before the driver looks around: whether it is still the driver, whether the
/// run is to stop, whether the shim lives.
const PATIENCE: Duration = Duration::from_millis(250);

/// How often a provider that cannot answer is asked again, a second apart, before the run is left to another attempt.
const PROVIDER_ATTEMPTS: u32 = 30;

impl Driver<'_> {
    /// The translation as the last append left it.
    pub(super) fn translation(&self) -> Translation {
        let context = RunContext {
            run_id: self.run.run_id.to_string(),
            thread_id: self.run.thread_id.to_string(),
            model: self.run.model.clone(),
        };
        let secret = self.run.exit_secret.clone();
        match &self.run.cursor {
            Some(cursor) => Translation::resume(self.agent, context, secret, cursor),
            None => Translation::new(self.agent, context, secret),
        }
    }

    /// Turns the journal into the log until the agent has ended. The store's cursor says where to go on, so a takeover
    /// costs the same whatever the journal's size.
    pub(super) async fn follow(&mut self) -> Result<(Translation, Exit), DriveEnd> {
        let instance = self.instance()?;
        self.rebuild_fold().await?;
        let mut translation = self.translation();
        let opened = self
            .host
            .provider
            .journal(&instance, &self.run.run_id, &self.run.exit_secret, translation.position())
            .await;
        let mut journal = match opened {
            Ok(journal) => journal,
            Err(error) => return Err(self.unreachable(error).await),
        };
        // Set once the shim was found dead: what the journal holds after that is all that it will ever hold.
        let mut dead: Option<Exit> = None;
        let mut events = Vec::new();
        let resumed_at = translation.position();
        loop {
            self.guard()?;
            if self.killed.is_none()
                && let Some(cancel) = self.cancel().await
            {
                self.stop(cancel.reason).await?;
            }
            let patience = if dead.is_some() { Duration::ZERO } else { PATIENCE };
            let read = self.read(&mut *journal, patience).await?;
            let exit = read.exit;
            if read.size < resumed_at {
                // What the log was made from is not there any more, so nothing that follows can be trusted.
                return Ok((translation, Exit::Diverged { position: resumed_at, size: read.size }));
            }
            if !read.bytes.is_empty() {
                let end = JournalEnd { stdout_bytes: exit.as_ref().map(|exit| exit.stdout_bytes) };
                let progress = translation.feed(&read.bytes, end, &mut events);
                self.append_translated(&translation, &mut events).await?;
                if let Progress::Sentinel { exit: status } = progress {
                    let record = self.exit_record(exit).await;
                    return Ok((translation, Exit::Exited { status, record }));
                }
                continue;
            }
            // Nothing new. An exit that was recorded while the sentinel could not be written counts once the shim is
            // gone, for until then the sentinel may still come.
            if let Some(lost) = dead {
                translation.feed_rest(&mut events);
                self.append_translated(&translation, &mut events).await?;
                return Ok((
                    translation,
                    exit.map_or(lost, |r| Exit::Exited { status: r.exit, record: Some(r) }),
                ));
            }
            let facts = self.host.provider.facts(&instance, &self.run.run_id, &self.run.exit_secret).await;
            match facts {
                Ok(facts) if !facts.exists => return Ok((translation, Exit::SandboxGone)),
                Ok(facts) if silent(&facts) => {
                    let boot = self.host.ports.clock.boot_id();
                    let rebooted = matches!(&facts.latch, LatchState::Taken(Latch::Launch(latch)) if latch.boot_id != boot);
                    dead = Some(match facts.exit {
                        Some(record) => Exit::Exited { status: record.exit, record: Some(record) },
                        None => Exit::Lost { rebooted },
                    });
                }
                // A shim that lives and a journal that is silent: patience. A provider that cannot tell: the next read
                // will say whether it is away.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Adds what the translation has yielded, if anything.
    async fn append_translated(
        &mut self,
        translation: &Translation,
        events: &mut Vec<(Origin, Chunk)>,
    ) -> Result<(), DriveEnd> {
        if events.is_empty() {
            return Ok(());
        }
        self.append(std::mem::take(events), |fold| translation.cursor(fold), translation.session()).await
    }

    /// Reads, again and again where the provider is away for a while.
    async fn read(&self, journal: &mut dyn Journal, patience: Duration) -> Result<JournalRead, DriveEnd> {
        let mut attempts = 0;
        loop {
            match journal.read(self.host.options.read_bytes, patience).await {
                Ok(read) => return Ok(read),
                Err(error) if attempts == PROVIDER_ATTEMPTS => return Err(self.unreachable(error).await),
                Err(error) => {
                    tracing::warn!(%error, run = %self.run.run_id, "the journal cannot be read");
                    attempts += 1;
                    self.guard()?;
                    self.host.ports.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// The exit file, which is filled before the sentinel is written.
    async fn exit_record(&self, seen: Option<ExitRecord>) -> Option<ExitRecord> {
        if seen.is_some() {
            return seen;
        }
        let instance = self.run.instance_id.as_ref()?;
        let facts = self.host.provider.facts(instance, &self.run.run_id, &self.run.exit_secret).await;
        facts.ok().and_then(|facts| facts.exit)
    }

    /// Kills the run's fence. What the agent wrote until then is still read. An agent that had ended by itself when its
    /// time was up keeps its own end.
    async fn stop(&mut self, reason: CancelReason) -> Result<(), DriveEnd> {
        let instance = self.instance()?;
        if reason == CancelReason::Ttl && self.exit_record(None).await.is_some() {
            return Ok(());
        }
        fail::point("kill.before");
        let killed = self.host.provider.kill(&instance, &self.run.run_id, self.host.options.kill_grace).await;
        fail::point("kill.after");
        self.killed = Some(match killed {
            Ok(outcome) => outcome,
            Err(ProviderError { message, .. }) => KillOutcome::Unverified { cause: message },
        });
        Ok(())
    }
}
