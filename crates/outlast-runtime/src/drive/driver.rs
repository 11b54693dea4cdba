//! The driver's state and its fenced writes.

use std::sync::atomic::Ordering;

use outlast_agents::Agent;
use outlast_core::event::{Chunk, Origin};
use outlast_core::run::{Cancel, Cursor, Phase, RunRecord};
use outlast_core::transcript::{Fold, Update};
use outlast_core::{ErrorCode, InstanceId, Seq};
use outlast_sandbox::{KillOutcome, ProviderError};
use outlast_store::{Append, AppendError, NewEvent, NewMessage, ReadError, StoreError};

use super::finish::Exit;
use super::launch::Step;
use crate::claim::Held;
use crate::fail;
use crate::host::Inner;
use crate::notice::Notice;

/// Why a driver stopped.
#[derive(Debug)]
pub(crate) enum DriveEnd {
    /// The run has ended, by this driver.
    Ended(Box<RunRecord>),
    /// Another host has the run, or it has ended by another's hand. This one wrote nothing after that.
    Superseded,
    /// The lease may have run out, so this host stopped by itself. It may claim again.
    LeaseRanOut,
    /// This host cannot drive the run. The claim was given back.
    CannotDrive { code: ErrorCode, message: String },
    /// The store failed for good, or for longer than it is waited for.
    Store(StoreError),
}

/// One host's drive of one run.
#[derive(Debug)]
pub(crate) struct Driver<'h> {
    pub(super) host: &'h Inner,
    pub(super) held: Held,
    pub(super) run: RunRecord,
    pub(super) agent: &'static dyn Agent,
    pub(super) tail: Seq,
    pub(super) fold: Fold,
    pub(super) killed: Option<KillOutcome>,
    cancel: Option<Cancel>,
    polled_at: u64,
}

impl<'h> Driver<'h> {
    /// Takes over a claim. Without knowledge of the run's kind of agent, it cannot be driven.
    pub(crate) async fn new(host: &'h Inner, held: Held, run: RunRecord) -> Result<Self, DriveEnd> {
        let Some(agent) = (host.agents)(&run.spec.kind) else {
            host.release(&held.token).await;
            let message = format!("this version does not know agents of kind {:?}", run.spec.kind);
            return Err(DriveEnd::CannotDrive { code: ErrorCode::UnsupportedCapability, message });
        };
        let tail = Seq(run.tail);
        let cancel = run.cancel_requested;
        Ok(Driver {
            host,
            held,
            run,
            agent,
            tail,
            fold: Fold::default(),
            killed: None,
            cancel,
            polled_at: host.ports.clock.boot_ms(),
        })
    }

    /// Drives to the end.
    pub(crate) async fn drive(mut self) -> DriveEnd {
        match self.until_the_end().await {
            Ok(end) | Err(end) => end,
        }
    }

    /// Launches, and gives the claim back.
    pub(crate) async fn launch_only(mut self) -> DriveEnd {
        let end = match self.prepare().await {
            Ok(Step::Follow) => None,
            Ok(Step::Exit(exit)) => Some(self.finish_unlaunched(exit).await),
            Err(end) => Some(end),
        };
        match end {
            Some(end) => end,
            None => {
                fail::point("release.before");
                self.host.release(&self.held.token).await;
                DriveEnd::Superseded
            }
        }
    }

    async fn until_the_end(&mut self) -> Result<DriveEnd, DriveEnd> {
        match self.prepare().await? {
            Step::Exit(exit) => Ok(self.finish_unlaunched(exit).await),
            Step::Follow => {
                let (mut translation, exit) = self.follow().await?;
                Ok(self.finish(&mut translation, exit).await)
            }
        }
    }

    pub(super) async fn finish_unlaunched(&mut self, exit: Exit) -> DriveEnd {
        let mut translation = self.translation();
        match self.rebuild_fold().await {
            Ok(()) => self.finish(&mut translation, exit).await,
            Err(end) => end,
        }
    }

    /// Refuses to go on once the claim is lost or the lease may have run out.
    pub(super) fn guard(&self) -> Result<(), DriveEnd> {
        if self.held.is_lost() {
            Err(DriveEnd::Superseded)
        } else if !self.held.is_valid() {
            Err(DriveEnd::LeaseRanOut)
        } else {
            Ok(())
        }
    }

    /// The cancel, from the record as it was claimed, the renewals, or a look of its own every now and then.
    pub(super) async fn cancel(&mut self) -> Option<Cancel> {
        if self.cancel.is_none() {
            self.cancel = self.held.cancel();
        }
        let now = self.host.ports.clock.boot_ms();
        if self.cancel.is_none() && now - self.polled_at >= self.host.options.cancel_poll.as_millis() as u64 {
            self.polled_at = now;
            // A store that cannot tell is asked again; the append that follows will find out what is wrong with it.
            if let Ok(Some(run)) = self.host.store.run(&self.host.tenant, &self.run.run_id).await {
                self.cancel = run.cancel_requested;
            }
        }
        self.cancel
    }

    pub(super) fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = Some(cancel);
    }

    pub(super) fn known_cancel(&self) -> Option<Cancel> {
        self.cancel
    }

    /// The instance that the run is bound to. Unbound runs have nothing to look into.
    pub(super) fn instance(&self) -> Result<InstanceId, DriveEnd> {
        self.run.instance_id.clone().ok_or_else(|| DriveEnd::CannotDrive {
            code: ErrorCode::Internal,
            message: "the run is bound to no instance".to_owned(),
        })
    }

    /// Where the driver stops because the sandbox cannot be looked into from here: another attempt may do better.
    pub(super) async fn unreachable(&self, error: ProviderError) -> DriveEnd {
        self.host.release(&self.held.token).await;
        DriveEnd::CannotDrive { code: ErrorCode::SandboxUnreachable, message: error.to_string() }
    }

    /// Adds events with the cursor after them. Durable before anybody is shown them.
    pub(super) async fn append(
        &mut self,
        events: Vec<(Origin, Chunk)>,
        cursor: impl FnOnce(u64) -> Cursor,
        session: Option<&str>,
    ) -> Result<(), DriveEnd> {
        let (whole, last) = self.prepare_append(events, cursor, session);
        let mut hold = self.host.hold();
        let mut salt = None;
        loop {
            self.guard()?;
            let append = match self.host.lighten(&self.run, &whole, salt.as_ref()).await {
                Ok(append) => append,
                Err(error) => {
                    hold.wait(error).await.map_err(DriveEnd::Store)?;
                    continue;
                }
            };
            self.guard()?;
            fail::point("append.before");
            match self.host.store.append(append.clone()).await {
                Ok(appended) => {
                    fail::point("append.after");
                    hold.done();
                    debug_assert_eq!(appended.tail, last);
                    self.host.appended.fetch_add(append.events.len() as u64, Ordering::Relaxed);
                    self.tail = appended.tail;
                    if let Some(session) = append.agent_session {
                        self.run.agent_session = Some(session);
                    }
                    return Ok(());
                }
                Err(AppendError::Store(error)) => hold.wait(error).await.map_err(DriveEnd::Store)?,
                Err(AppendError::Bodies(refusal)) => {
                    self.host.put_again(refusal, &mut salt).map_err(DriveEnd::Store)?;
                }
                Err(error) => return Err(self.superseded(&error)),
            }
        }
    }

    /// The append that these events make, with the messages that they complete; and the tail after it.
    pub(super) fn prepare_append(
        &mut self,
        events: Vec<(Origin, Chunk)>,
        cursor: impl FnOnce(u64) -> Cursor,
        session: Option<&str>,
    ) -> (Append, Seq) {
        let mut seq = self.tail;
        let mut updates: Vec<Update> = Vec::new();
        let events: Vec<NewEvent> = events
            .into_iter()
            .map(|(origin, chunk)| {
                seq = seq.next();
                self.fold.apply(seq, &chunk, &mut updates);
                NewEvent::new(origin, chunk)
            })
            .collect();
        let append = Append {
            token: self.held.token.clone(),
            expected_tail: self.tail,
            batch: self.host.ports.entropy.nonce(),
            events,
            cursor: Some(cursor(self.fold.fold_from(seq.next()).0)),
            messages: updates.into_iter().map(message).collect(),
            barrier: None,
            agent_session: session
                .filter(|s| self.run.agent_session.as_deref() != Some(s))
                .map(str::to_owned),
        };
        (append, seq)
    }

    /// The writes of a driver that is no longer one change nothing, and it stops for good.
    pub(super) fn superseded(&self, error: &dyn std::fmt::Display) -> DriveEnd {
        tracing::info!(run = %self.run.run_id, %error, "superseded");
        self.host.notices.tell(Notice::Superseded { run_id: self.run.run_id.clone() });
        DriveEnd::Superseded
    }

    /// Brings the fold to where the last append left it.
    pub(super) async fn rebuild_fold(&mut self) -> Result<(), DriveEnd> {
        let from = self.run.cursor.as_ref().map_or(1, |cursor| cursor.fold_from);
        let mut after = Seq(from.saturating_sub(1));
        let mut hold = self.host.hold_reads();
        let mut ignored = Vec::new();
        while after < self.tail {
            let (host, run_id) = (self.host, &self.run.run_id);
            let page = match host.store.read(&host.tenant, run_id, after, 1000, 1 << 20).await {
                Ok(page) => host.whole_page(run_id, page, 1 << 20).await,
                Err(error) => Err(error),
            };
            match page {
                Ok(page) => {
                    hold.done();
                    let Some(last) = page.events.last() else {
                        return Ok(());
                    };
                    after = last.seq;
                    for event in page.events {
                        if let Some(chunk) = crate::view::chunk(event.json) {
                            self.fold.apply(event.seq, &chunk, &mut ignored);
                        }
                    }
                    ignored.clear();
                }
                Err(ReadError::Store(error)) => hold.wait(error).await.map_err(DriveEnd::Store)?,
                Err(error) => return Err(self.superseded(&error)),
            }
        }
        Ok(())
    }

    pub(super) fn launched(&self) -> bool {
        self.run.phase == Phase::Launched
    }
}

/// An update of the transcript, for the store.
pub(super) fn message(update: Update) -> NewMessage {
    NewMessage::new(i64::try_from(update.ordinal.0).unwrap_or(i64::MAX), update.message)
}
