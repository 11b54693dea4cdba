//! Accepting a run.

use std::time::Duration;

use outlast_core::decide::AcceptRefusal;
use outlast_core::event::{Event, RUN_ACCEPTED};
use outlast_core::run::{LaunchSpec, OnDisconnect, RunRecord, SandboxSpec, request_digest};
use outlast_core::transcript::{Message, Role};
use outlast_core::{ErrorCode, RunId, ThreadId};
use outlast_store::{Accept, AcceptError, Accepted, NewMessage, StoreError};

use crate::claim::Held;
use crate::{Host, fail};

/// A run that somebody wants.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its id, chosen by the caller.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Whether the caller chose the thread, so that another one under the same run id is another request.
    pub thread_chosen: bool,
    /// What to launch. Variables of the kind that are set in this host's environment are added to `needed_env`.
    pub spec: LaunchSpec,
    /// How long it may go on without a viewer; none: for ever.
    pub detached_ttl: Option<Duration>,
    /// What happens when the last viewer leaves.
    pub on_disconnect: OnDisconnect,
    /// The turn's new messages. None: the prompt, as the user's message.
    pub messages: Option<Vec<Message>>,
    /// What must be equal, besides the thread, for a request under the same run id to be the same one: a digest of what
    /// was asked in the caller's own form. None: the spec's ([`request_digest`]).
    pub request: Option<String>,
}

/// What became of it.
#[derive(Debug)]
pub struct Started {
    /// The run.
    pub run: RunRecord,
    /// Whether this call recorded it. Otherwise the same request was made before, and this is its run.
    pub new: bool,
    pub(crate) held: Option<Held>,
}

/// Why nothing was recorded.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// The run id, the thread or the workspace is taken.
    #[error(transparent)]
    Refused(#[from] AcceptRefusal),
    /// The request makes no sense.
    #[error("{message}")]
    Invalid {
        /// What is wrong and what to do.
        message: String,
    },
    /// A variable that the agent's definition names is not set.
    #[error("the agent {agent:?} needs the environment variable {name}, which is not set here")]
    EnvMissing {
        /// The agent.
        agent: String,
        /// The variable.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StartError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            StartError::Refused(AcceptRefusal::RunIdConflict { .. }) => ErrorCode::RunIdConflict,
            StartError::Refused(AcceptRefusal::ThreadDeleted { .. }) => ErrorCode::SessionDeleted,
            StartError::Refused(_) => ErrorCode::ThreadBusy,
            StartError::Invalid { .. } => ErrorCode::InvalidRequest,
            StartError::EnvMissing { .. } => ErrorCode::LaunchEnvMissing,
            StartError::Store(error) => error.code(),
        }
    }
}

impl Start {
    /// A run of a command on this machine, with the defaults of everything else.
    pub fn command(
        run_id: RunId,
        thread_id: ThreadId,
        argv: impl IntoIterator<Item = impl Into<String>>,
    ) -> Start {
        let sandbox = SandboxSpec { provider: "local".to_owned(), ..SandboxSpec::default() };
        let spec = LaunchSpec::command(argv.into_iter().map(Into::into).collect(), sandbox);
        Start {
            run_id,
            thread_id,
            thread_chosen: true,
            spec,
            detached_ttl: Some(Duration::from_secs(24 * 3600)),
            on_disconnect: OnDisconnect::Detach,
            messages: None,
            request: None,
        }
    }
}

impl Host {
    /// Records the run, with the claim of its producer, before anything exists outside the store. The same request
    /// again is answered with its run. The caller hands the answer to [`Host::keep`] or [`Host::launch_only`].
    pub async fn start(&self, start: Start) -> Result<Started, StartError> {
        let host = &self.inner;
        let mut spec = start.spec;
        let digest = start.request.unwrap_or_else(|| request_digest(&spec));
        let agent = (host.agents)(&spec.kind).ok_or_else(|| StartError::Invalid {
            message: format!("there is no kind of agent {:?}", spec.kind),
        })?;
        // The same request again is shown its run also where this host could not launch it.
        if let Some(name) = host.environment.missing(&spec.needed_env)
            && host.run(&start.run_id).await?.is_none()
        {
            return Err(StartError::EnvMissing { agent: spec.agent, name: name.to_owned() });
        }
        for name in agent.usual_env() {
            if host.environment.get(name).is_some() && !spec.needed_env.iter().any(|needed| needed == name) {
                spec.needed_env.push((*name).to_owned());
            }
        }
        let messages = start.messages.unwrap_or_else(|| {
            let id = format!("{}-user", start.run_id);
            spec.prompt.clone().map(|prompt| Message::text(id, Role::User, prompt)).into_iter().collect()
        });
        let input = NewMessage::input(messages);
        let mut request = Accept {
            tenant: host.tenant.clone(),
            run_id: start.run_id,
            thread_id: start.thread_id,
            thread_chosen: start.thread_chosen,
            messages: Vec::new(),
            barrier: None,
            spec,
            digest,
            owner: host.owner.clone(),
            nonce: host.ports.entropy.nonce(),
            lease: host.options.lease,
            detached_ttl: start.detached_ttl,
            on_disconnect: start.on_disconnect,
            events: vec![Event::Custom { name: RUN_ACCEPTED.into(), value: serde_json::json!({}) }.chunk()],
        };
        let mut hold = host.hold();
        let mut salt = None;
        loop {
            let (run_id, thread_id) = (&request.run_id, &request.thread_id);
            match host.lighten_input(run_id, thread_id, &input, salt.as_ref()).await {
                Ok((messages, barrier)) => (request.messages, request.barrier) = (messages, barrier),
                Err(error) => {
                    hold.wait(error).await?;
                    continue;
                }
            }
            fail::point("accept.before");
            let asked_at = host.ports.clock.boot_ms();
            match host.store.accept(request.clone()).await {
                Ok(Accepted::New(claimed)) => {
                    fail::point("accept.after");
                    hold.done();
                    let (held, run) = host.held(*claimed, asked_at);
                    return Ok(Started { run, new: true, held: Some(held) });
                }
                Ok(Accepted::Existing(run)) => {
                    hold.done();
                    return Ok(Started { run: *run, new: false, held: None });
                }
                Err(AcceptError::Refused(refusal)) => return Err(refusal.into()),
                Err(AcceptError::Bodies(refusal)) => host.put_again(refusal, &mut salt)?,
                Err(AcceptError::Store(error)) => hold.wait(error).await?,
            }
        }
    }
}
