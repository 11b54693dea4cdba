//! Holding a run's log against its journal.

use std::collections::VecDeque;
use std::time::Duration;

use outlast_agents::{AgentExit, JournalEnd, Progress, RunContext, Translation};
use outlast_core::align::{Alignment, Diverged, Step};
use outlast_core::event::{Chunk, Origin};
use outlast_core::run::{Phase, RunRecord};
use outlast_core::{ErrorCode, RunId, Seq};
use outlast_sandbox::{Journal, ProviderError};
use outlast_store::{LogEnd, ReadError, StoreError, StoredEvent};

use crate::Host;
use crate::drive::STDERR_TAIL_BYTES;

/// How much of the log is held at a time.
const PAGE_EVENTS: usize = 1000;
const PAGE_BYTES: usize = 512 * 1024;

/// A log that is the translation of its journal.
#[derive(Debug, Clone)]
pub struct VerifyReport {
    /// The run.
    pub run: RunRecord,
    /// How many events the journal yielded, each of them as it is stored.
    pub compared: u64,
    /// How many events of the log are the host's, which come from no journal.
    pub of_the_host: u64,
    /// Whether the run has ended, so that this is the whole log. Otherwise it is what was stored when it was looked at.
    pub whole: bool,
}

/// Why a log could not be verified.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VerifyError {
    /// No such run.
    #[error("there is no run {0:?}")]
    NotFound(RunId),
    /// The log is not the translation of the journal.
    #[error("run {run_id:?}: {diverged}")]
    Diverged {
        /// The run.
        run_id: RunId,
        /// Where and how.
        diverged: Diverged,
    },
    /// The log has aged out.
    #[error("the events of run {0:?} have aged out")]
    LogExpired(RunId),
    /// The journal is gone, with its sandbox or by itself.
    #[error(
        "the journal of run {0:?} is gone (pruned, or removed with its sandbox), so there is nothing to hold its log \
         against; the log itself is not affected"
    )]
    JournalGone(RunId),
    /// The journal cannot be read from here.
    #[error("the journal cannot be read from here: {0}")]
    Unreachable(String),
    /// This version does not know the run's kind of agent.
    #[error("this version does not know agents of kind {0:?}")]
    UnknownKind(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl VerifyError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            VerifyError::NotFound(_) => ErrorCode::RunNotFound,
            VerifyError::Diverged { .. } => ErrorCode::ReplayDiverged,
            VerifyError::LogExpired(_) => ErrorCode::CursorExpired,
            VerifyError::JournalGone(_) => ErrorCode::SandboxGone,
            VerifyError::Unreachable(_) => ErrorCode::SandboxUnreachable,
            VerifyError::UnknownKind(_) => ErrorCode::UnsupportedCapability,
            VerifyError::Store(error) => error.code(),
        }
    }
}

impl From<ReadError> for VerifyError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::RunNotFound(run_id) => VerifyError::NotFound(run_id),
            ReadError::Store(error) => error.into(),
            ReadError::OffsetAhead { .. } => {
                VerifyError::Store(StoreError::Unusable { message: format!("internal error: {error}") })
            }
        }
    }
}

impl From<ProviderError> for VerifyError {
    fn from(error: ProviderError) -> Self {
        VerifyError::Unreachable(error.to_string())
    }
}

impl Host {
    /// Translates the run's journal from its start and compares each event with the stored one. Writes nothing. Of a run
    /// that lives, what is stored at the beginning is compared.
    pub async fn verify(&self, run_id: &RunId) -> Result<VerifyReport, VerifyError> {
        let run = self.run(run_id).await?.ok_or_else(|| VerifyError::NotFound(run_id.clone()))?;
        if self.page(run_id, Seq::START, 0, 0).await?.end == LogEnd::Expired {
            return Err(VerifyError::LogExpired(run_id.clone()));
        }
        let mut stored = Stored::new(self, &run);
        let mut replay = Replay::open(self, &run).await?;
        let mut alignment = Alignment::default();
        loop {
            let next = stored.next().await?;
            // What a live run's journal holds beyond the stored events is not in the log yet.
            if next.is_none() && !run.status.is_terminal() {
                break;
            }
            let replayed = replay.next().await?;
            if next.is_none() && replayed.is_none() {
                break;
            }
            let step = |origin, json| Step { origin, json };
            alignment
                .step(
                    next.as_ref().map(|event| (event.seq, step(event.origin, event.json.as_str()))),
                    replayed.as_ref().map(|(origin, chunk)| step(*origin, chunk.json.as_str())),
                )
                .map_err(|diverged| VerifyError::Diverged { run_id: run_id.clone(), diverged })?;
        }
        let whole = run.status.is_terminal();
        Ok(VerifyReport { run, compared: alignment.compared(), of_the_host: stored.of_the_host, whole })
    }
}

/// The stored events of the journal, in order.
struct Stored<'h> {
    host: &'h Host,
    run_id: RunId,
    after: Seq,
    until: Seq,
    page: VecDeque<StoredEvent>,
    of_the_host: u64,
}

impl<'h> Stored<'h> {
    fn new(host: &'h Host, run: &RunRecord) -> Self {
        Stored {
            host,
            run_id: run.run_id.clone(),
            after: Seq::START,
            until: Seq(run.tail),
            page: VecDeque::new(),
            of_the_host: 0,
        }
    }

    async fn next(&mut self) -> Result<Option<StoredEvent>, VerifyError> {
        loop {
            match self.page.pop_front() {
                Some(event) if Alignment::takes(event.origin) => return Ok(Some(event)),
                Some(_) => self.of_the_host += 1,
                None if self.after >= self.until => return Ok(None),
                None => {
                    let most = usize::try_from(self.until.0 - self.after.0).unwrap_or(usize::MAX);
                    let page =
                        self.host.page(&self.run_id, self.after, most.min(PAGE_EVENTS), PAGE_BYTES).await?;
                    let Some(last) = page.events.last() else {
                        return Ok(None);
                    };
                    self.after = last.seq;
                    self.page = page.events.into();
                }
            }
        }
    }
}

/// What the journal yields, in order.
struct Replay<'h> {
    host: &'h Host,
    run: &'h RunRecord,
    translation: Translation,
    /// None for a run whose agent was never started.
    journal: Option<Box<dyn Journal>>,
    events: VecDeque<(Origin, Chunk)>,
    over: bool,
}

impl<'h> Replay<'h> {
    async fn open(host: &'h Host, run: &'h RunRecord) -> Result<Self, VerifyError> {
        let inner = &host.inner;
        let agent =
            (inner.agents)(&run.spec.kind).ok_or_else(|| VerifyError::UnknownKind(run.spec.kind.clone()))?;
        if let Some(machine) = inner.elsewhere(run) {
            return Err(VerifyError::Unreachable(format!("its sandbox is on another machine ({machine})")));
        }
        let context = RunContext {
            run_id: run.run_id.to_string(),
            thread_id: run.thread_id.to_string(),
            model: run.model.clone(),
        };
        let translation = Translation::new(agent, context, run.exit_secret.clone());
        let journal = match &run.instance_id {
            None => None,
            Some(instance) => {
                let facts = inner.provider.facts(instance, &run.run_id, &run.exit_secret).await?;
                match (facts.exists, run.phase) {
                    (true, _) => {
                        Some(inner.provider.journal(instance, &run.run_id, &run.exit_secret, 0).await?)
                    }
                    (false, Phase::Launched) => return Err(VerifyError::JournalGone(run.run_id.clone())),
                    // Its sandbox was never made.
                    (false, _) => None,
                }
            }
        };
        Ok(Replay { host, run, translation, journal, events: VecDeque::new(), over: false })
    }

    async fn next(&mut self) -> Result<Option<(Origin, Chunk)>, VerifyError> {
        while self.events.is_empty() && !self.over {
            self.read().await?;
        }
        Ok(self.events.pop_front())
    }

    async fn read(&mut self) -> Result<(), VerifyError> {
        let read = match &mut self.journal {
            Some(journal) => journal.read(self.host.inner.options.read_bytes, Duration::ZERO).await?,
            None => Default::default(),
        };
        let end = JournalEnd { stdout_bytes: read.exit.as_ref().map(|exit| exit.stdout_bytes) };
        // A launched run's journal was there before its latch.
        if read.missing && self.run.phase == Phase::Launched {
            return Err(VerifyError::JournalGone(self.run.run_id.clone()));
        }
        let mut events = Vec::new();
        let sentinel = match self.translation.feed(&read.bytes, end, &mut events) {
            Progress::Sentinel { .. } => true,
            Progress::More => {
                if read.bytes.is_empty() {
                    self.translation.feed_rest(&mut events);
                }
                read.bytes.is_empty()
            }
        };
        if sentinel {
            self.over = true;
            if self.run.status.is_terminal() {
                let exit = self.exit(read.exit.and_then(|exit| exit.signal)).await?;
                self.translation.finish(&exit, &mut events);
            }
        }
        self.events.extend(events);
        Ok(())
    }

    /// The agent's exit, as the driver that ended the run saw it.
    async fn exit(&self, signal: Option<i32>) -> Result<AgentExit, VerifyError> {
        let status = self.run.exit_code;
        let stderr_tail = match &self.run.instance_id {
            Some(instance) if status != Some(0) => {
                let provider = &self.host.inner.provider;
                provider.stderr_tail(instance, &self.run.run_id, STDERR_TAIL_BYTES).await.unwrap_or_default()
            }
            _ => String::new(),
        };
        Ok(AgentExit { status, signal, stderr_tail })
    }
}
