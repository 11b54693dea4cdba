//! From an accepted run to a taken latch.

use std::path::PathBuf;
use std::time::Duration;

use outlast_agents::LaunchRequest;
use outlast_core::decide::{Next, next};
use outlast_core::event::{Event, Origin};
use outlast_core::run::{Phase, Reuse, sandbox_key};
use outlast_core::transcript::Message;
use outlast_core::{ErrorCode, InstanceId, ThreadId};
use outlast_sandbox::{KillOutcome, LaunchError, LaunchOrder, LaunchOutcome};
use outlast_store::{AppendError, Instance, InstanceError, InstanceState, NewEvent};

use super::driver::{DriveEnd, Driver};
use super::finish::Exit;
use crate::fail;
use crate::notice::Notice;

/// How often a sandbox is tried to be made, a second apart, before the run fails: a provider may be away for a moment.
const CREATE_ATTEMPTS: u32 = 3;

/// What comes after the launch.
#[derive(Debug)]
pub(super) enum Step {
    /// The latch is taken: read the journal.
    Follow,
    /// There is no journal to read, and never will be.
    Exit(Exit),
}

/// What the agent is told of its run's surroundings.
struct Conversation {
    /// The deployment's id.
    deployment: String,
    /// The messages of the thread before this run.
    history: Vec<Message>,
    /// The session that an agent of this kind had on the thread.
    session: Option<String>,
}

impl Driver<'_> {
    /// Brings the run to where its journal can be read, or finds out that there will be none. Idempotent: it never
    /// reasons "no journal, so not started", but lets the latch in the sandbox decide.
    pub(super) async fn prepare(&mut self) -> Result<Step, DriveEnd> {
        if let Some(machine) = self.host.elsewhere(&self.run) {
            self.host.release(&self.held.token).await;
            let message = format!("the run's sandbox is on another machine ({machine})");
            return Err(DriveEnd::CannotDrive { code: ErrorCode::SandboxUnreachable, message });
        }
        if self.known_cancel().is_some() {
            return self.stop_before_launch().await;
        }
        if self.run.instance_id.is_some() {
            // Asked before the sandbox is looked at: a predecessor that thaws now may make it in between, and what is
            // first not there and then recorded as made would look like one that has gone.
            let only_intended = !self.launched() && self.only_intended().await?;
            let step = self.look().await?;
            match step {
                Next::Follow if self.launched() => return Ok(Step::Follow),
                Next::Follow => {
                    self.record_launched().await?;
                    return Ok(Step::Follow);
                }
                Next::NeverLaunched => return Ok(Step::Exit(Exit::NeverLaunched)),
                // An instance of which only the intent exists is made now. One that existed is never made again: an
                // agent may have been started in it.
                Next::SandboxGone if !only_intended => return Ok(Step::Exit(Exit::SandboxGone)),
                Next::SandboxGone | Next::Launch => {}
            }
        }
        let spec = &self.run.spec;
        if let Some(name) = self.host.environment.missing(&spec.needed_env) {
            let message = format!(
                "the agent {:?} needs the environment variable {name}, which is not set here: set it and attach again",
                spec.agent
            );
            self.host.release(&self.held.token).await;
            return Err(DriveEnd::CannotDrive { code: ErrorCode::LaunchEnvMissing, message });
        }
        let instance = match self.ensure().await? {
            Ok(instance) => instance,
            // A frozen predecessor may have made it, and be about to launch in it.
            Err(message) => {
                let instance = self.instance()?;
                return self.give_up_launch(&instance, message).await;
            }
        };
        let order = match self.order(&instance).await? {
            Ok(order) => order,
            Err(message) => return self.give_up_launch(&instance, message).await,
        };
        self.guard()?;
        fail::point("launch.before");
        let launched = self.host.provider.launch(order).await;
        fail::point("launch.after");
        match launched {
            Ok(LaunchOutcome::Taken) => {
                self.record_launched().await?;
                Ok(Step::Follow)
            }
            Ok(LaunchOutcome::TakenBefore) => self.taken_before(Exit::NeverLaunched).await,
            Err(LaunchError::SandboxGone(_)) => Ok(Step::Exit(Exit::SandboxGone)),
            Err(LaunchError::Failed(message)) => self.give_up_launch(&instance, message).await,
        }
    }

    async fn look(&self) -> Result<Next, DriveEnd> {
        let instance = self.instance()?;
        let facts = self.host.provider.facts(&instance, &self.run.run_id, &self.run.exit_secret).await;
        match facts {
            Ok(facts) => Ok(next(self.run.phase, &facts)),
            Err(error) => Err(self.unreachable(error).await),
        }
    }

    /// Somebody else had the latch: a shim, whose journal is read, or a cancel, and then the run ends like this.
    async fn taken_before(&mut self, never_launched: Exit) -> Result<Step, DriveEnd> {
        match self.look().await? {
            Next::NeverLaunched => Ok(Step::Exit(never_launched)),
            Next::SandboxGone => Ok(Step::Exit(Exit::SandboxGone)),
            Next::Follow | Next::Launch => {
                self.record_launched().await?;
                Ok(Step::Follow)
            }
        }
    }

    /// A run that was cancelled before its agent was known to be launched: the latch decides whether there is one.
    async fn stop_before_launch(&mut self) -> Result<Step, DriveEnd> {
        let Some(instance) = self.run.instance_id.clone() else {
            // Nobody can bind an instance under an older claim, so nobody can launch.
            return Ok(Step::Exit(Exit::NeverLaunched));
        };
        if self.launched() {
            return Ok(Step::Follow);
        }
        fail::point("cancel.latch.before");
        match self.host.provider.latch_cancelled(&instance, &self.run.run_id).await {
            Ok(LaunchOutcome::Taken) => {
                self.killed = Some(KillOutcome::NeverStarted);
                Ok(Step::Exit(Exit::NeverLaunched))
            }
            Ok(LaunchOutcome::TakenBefore) => self.taken_before(Exit::NeverLaunched).await,
            Err(error) => match self.host.provider.exists(&instance).await {
                Ok(false) => Ok(Step::Exit(Exit::NeverLaunched)),
                _ => Err(self.unreachable(error).await),
            },
        }
    }

    /// Nothing could be started. Before the run may end as failed, the latch is taken, so that no frozen predecessor
    /// starts the agent afterwards.
    async fn give_up_launch(&mut self, instance: &InstanceId, message: String) -> Result<Step, DriveEnd> {
        match self.host.provider.latch_cancelled(instance, &self.run.run_id).await {
            Ok(LaunchOutcome::Taken) => Ok(Step::Exit(Exit::LaunchFailed { message })),
            Ok(LaunchOutcome::TakenBefore) => self.taken_before(Exit::LaunchFailed { message }).await,
            Err(_) => match self.host.provider.exists(instance).await {
                Ok(false) => Ok(Step::Exit(Exit::LaunchFailed { message })),
                Ok(true) | Err(_) => {
                    self.host.release(&self.held.token).await;
                    Err(DriveEnd::CannotDrive { code: ErrorCode::LaunchFailed, message })
                }
            },
        }
    }

    /// The thread's live sandbox, or a new one: the intent row first, so that a sandbox that was created can always be
    /// found, whatever dies when. The inner error says why there can be none.
    async fn ensure(&mut self) -> Result<Result<InstanceId, String>, DriveEnd> {
        let key = sandbox_key(&self.run.tenant, &self.run.thread_id, &self.run.spec);
        let provider = &self.host.provider;
        let machine = provider.machine().map(str::to_owned);
        let lent = self.run.spec.workspace.as_ref().map(|workspace| workspace.path.clone());
        let mut hold = self.host.hold();
        let deployment = loop {
            match self.host.store.deployment_id().await {
                Ok(deployment) => break deployment,
                Err(error) => hold.wait(error).await.map_err(DriveEnd::Store)?,
            }
        };
        // Drawn once: the same intent again, after an answer that was lost, is known to the store.
        let intent = Instance {
            instance_id: self.host.ports.entropy.instance_id_of(&deployment),
            sandbox_key: key.clone(),
            provider: provider.name().to_owned(),
            machine: machine.clone(),
            state: InstanceState::Creating,
            created_at: self.host.ports.clock.wall_ms(),
            tenant: self.run.tenant.clone(),
            thread_id: Some(self.run.thread_id.clone()),
            lent: lent.is_some(),
            keep_alive: self.run.spec.sandbox.keep_alive(),
            reclaim: None,
        };
        let reused = self.run.spec.sandbox.lifecycle.reuse == Reuse::Thread;
        let instance = loop {
            self.guard()?;
            if let Some(bound) = self.run.instance_id.clone() {
                break bound;
            }
            let attempt = async {
                if reused && let Some(found) = self.host.store.find_instance(&key, machine.as_deref()).await?
                {
                    // An instance that vanished from the outside is of no use; a new one takes its place.
                    if provider.exists(&found.instance_id).await.unwrap_or(false) {
                        self.host.store.use_instance(&self.held.token, &found.instance_id).await?;
                        return Ok(found.instance_id);
                    }
                }
                self.host.store.create_instance(&self.held.token, &intent).await?;
                Ok::<_, InstanceError>(intent.instance_id.clone())
            };
            fail::point("ensure.bind.before");
            match attempt.await {
                Ok(instance) => {
                    fail::point("ensure.bind.after");
                    hold.done();
                    break instance;
                }
                Err(InstanceError::Store(error)) => hold.wait(error).await.map_err(DriveEnd::Store)?,
                Err(InstanceError::Destroying(_) | InstanceError::NotFound(_)) => {}
                Err(error) => return Err(self.superseded(&error)),
            }
        };
        self.run.instance_id = Some(instance.clone());
        self.run.machine = machine;
        self.run.phase = Phase::Launching;
        let mut attempts = 1;
        while let Err(error) = provider.create(&instance, lent.as_deref()).await {
            if attempts == CREATE_ATTEMPTS {
                return Ok(Err(error.message));
            }
            tracing::warn!(%error, run = %self.run.run_id, attempts, "the sandbox could not be made");
            attempts += 1;
            self.host.ports.clock.sleep(Duration::from_secs(1)).await;
            self.guard()?;
        }
        fail::point("ensure.created");
        // An instance that is there already has what its runs have left in it.
        if self.only_intended().await?
            && let Err(message) = self.host.restore_into(&self.run, &instance).await
        {
            return Ok(Err(message));
        }
        self.guard()?;
        fail::point("ensure.restored");
        // Before anything is launched in it: from now on its absence means that it is gone, not that it is to be made.
        loop {
            match self.host.store.instance_created(&instance).await {
                Ok(()) => break,
                Err(InstanceError::Store(error)) => hold.wait(error).await.map_err(DriveEnd::Store)?,
                Err(error) => return Err(self.superseded(&error)),
            }
        }
        hold.done();
        Ok(Ok(instance))
    }

    /// Whether the run's instance is one of which only the intent is recorded.
    async fn only_intended(&self) -> Result<bool, DriveEnd> {
        let instance = self.instance()?;
        let mut hold = self.host.hold_reads();
        loop {
            match self.host.store.instance(&instance).await {
                Ok(row) => return Ok(row.is_some_and(|row| row.state == InstanceState::Creating)),
                Err(error) => hold.wait(error).await.map_err(DriveEnd::Store)?,
            }
        }
    }

    /// What to start, in this instance.
    async fn order(&self, instance: &InstanceId) -> Result<Result<LaunchOrder, String>, DriveEnd> {
        let run = &self.run;
        let spec = &run.spec;
        let Conversation { deployment, history, session } = self.conversation(&run.thread_id).await?;
        let plan = self.agent.plan(&LaunchRequest {
            deployment: &deployment,
            run_id: run.run_id.as_str(),
            thread_id: run.thread_id.as_str(),
            spec,
            history: &history,
            session: session.as_deref(),
            as_root: rustix::process::geteuid().is_root(),
        });
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(error.0)),
        };
        let lent = spec.workspace.as_ref().map(|workspace| workspace.path.as_str());
        let paths = self.host.provider.paths(instance, lent);
        let workspace = paths.workspace.to_string_lossy().into_owned();
        let env = self.host.environment.for_agent(
            &plan.env,
            &spec.env,
            &spec.needed_env,
            &[
                ("OUTLAST_RUN_ID", run.run_id.as_str()),
                ("OUTLAST_THREAD_ID", run.thread_id.as_str()),
                ("OUTLAST_WORKSPACE", &workspace),
            ],
        );
        let cwd = spec
            .cwd
            .as_ref()
            .map_or_else(|| paths.workspace.clone(), |cwd| paths.workspace.join(PathBuf::from(cwd)));
        Ok(Ok(LaunchOrder {
            instance: instance.clone(),
            run: run.run_id.clone(),
            secret: run.exit_secret.clone(),
            argv: plan.argv,
            prompt: plan.prompt,
            prompt_on_stdin: spec.prompt_on_stdin,
            fallback: plan.fallback.map(|fallback| (fallback.markers, fallback.argv, fallback.prompt)),
            env,
            cwd,
            fence: spec.sandbox.fence,
            limits: spec.sandbox.limits,
        }))
    }

    async fn conversation(&self, thread: &ThreadId) -> Result<Conversation, DriveEnd> {
        let host = self.host;
        let mut hold = host.hold_reads();
        loop {
            let attempt = async {
                let rows = host.whole_thread(thread).await?;
                let kind = &self.run.spec.kind;
                let mut session =
                    host.store.last_agent_session(&host.tenant, thread, kind, &self.run.run_id).await?;
                // A session knows the conversation only if nobody else had a turn since: otherwise the agent starts
                // afresh from the stored transcript.
                if let Some(last) = rows.iter().rev().find(|row| row.run_id != self.run.run_id) {
                    let last = host.store.run(&host.tenant, &last.run_id).await?;
                    let known =
                        last.filter(|last| last.spec.kind == *kind).and_then(|last| last.agent_session);
                    session = session.filter(|session| known.as_ref() == Some(session));
                }
                Ok((host.store.deployment_id().await?, rows, session))
            };
            match attempt.await {
                Ok((deployment, rows, session)) => {
                    hold.done();
                    let others = rows.into_iter().filter(|row| row.run_id != self.run.run_id);
                    let history = others.map(|row| row.message).collect();
                    return Ok(Conversation { deployment, history, session });
                }
                Err(error) => hold.wait(error).await.map_err(DriveEnd::Store)?,
            }
        }
    }

    /// Records that the latch is taken, with the event that tells viewers.
    async fn record_launched(&mut self) -> Result<(), DriveEnd> {
        let started = Event::RunStarted {
            thread_id: self.run.thread_id.as_str().into(),
            run_id: self.run.run_id.as_str().into(),
        };
        let events = vec![NewEvent::new(Origin::Host, started.chunk())];
        let mut hold = self.host.hold();
        loop {
            self.guard()?;
            fail::point("launched.before");
            match self.host.store.launched(&self.held.token, self.tail, events.clone()).await {
                Ok(appended) => {
                    fail::point("launched.after");
                    hold.done();
                    self.tail = appended.tail;
                    self.run.phase = Phase::Launched;
                    self.host.notices.tell(Notice::Launched { run_id: self.run.run_id.clone() });
                    return Ok(());
                }
                Err(AppendError::Store(error)) => hold.wait(error).await.map_err(DriveEnd::Store)?,
                Err(error) => return Err(self.superseded(&error)),
            }
        }
    }
}
