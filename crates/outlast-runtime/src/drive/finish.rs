//! The end of a run, in one transaction.

use outlast_agents::{AgentExit, Ended, Translation};
use outlast_core::ErrorCode;
use outlast_core::decide::{Ending, end};
use outlast_core::event::{Chunk, Event, Origin};
use outlast_core::journal::exit::ExitRecord;
use outlast_core::run::{CancelReason, EndReason, RunError};
use outlast_core::transcript::Update;
use outlast_sandbox::KillOutcome;
use outlast_store::{Finish, FinishError, NewEvent};
use serde_json::json;

use super::driver::{DriveEnd, Driver, message};
use crate::fail;

/// How much of the agent's standard error goes into the cause of a failure.
pub(crate) const STDERR_TAIL_BYTES: usize = 4096;

/// What became of the agent.
#[derive(Debug)]
pub(super) enum Exit {
    /// It ended, and its shim recorded how.
    Exited { status: i32, record: Option<ExitRecord> },
    /// It and its shim are dead and left nothing behind.
    Lost { rebooted: bool },
    /// It was never started, and never will be.
    NeverLaunched,
    /// It could not be started.
    LaunchFailed { message: String },
    /// The sandbox is gone.
    SandboxGone,
    /// The journal is shorter than what was read of it before.
    Diverged { position: u64, size: u64 },
    /// Nobody who lives reaches the sandbox.
    Unreachable,
    /// It ended, and its journal could not be delivered in time.
    NoProgress,
}

/// What the driver saw of the end.
struct Seen<'a> {
    exit: &'a Exit,
    ended: &'a Ended,
    /// Why it could not be verified that nothing of a lost agent lives.
    leftovers: Option<&'a str>,
}

impl Exit {
    fn status(&self) -> Option<i32> {
        match self {
            Exit::Exited { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Exit statuses of an agent that SIGTERM or SIGKILL has ended: what a kill leaves behind.
const KILLED: [i32; 2] = [128 + 15, 128 + 9];

/// The end that the driver proposes. Pure.
fn ending(exit: &Exit, killed: Option<&KillOutcome>, ended: &Ended, cancel: Option<CancelReason>) -> Ending {
    let failed =
        |code, message: String, reason| Ending::Failed { error: RunError::new(code, message), reason };
    if let Some(killed) = killed {
        return Ending::Stopped { verified: !matches!(killed, KillOutcome::Unverified { .. }) };
    }
    match exit {
        // Killed by a predecessor, who did not live to say so. An agent that ended in another way keeps its own end.
        Exit::Exited { status, .. } if cancel == Some(CancelReason::Ttl) && KILLED.contains(status) => {
            Ending::Stopped { verified: true }
        }
        Exit::Exited { record: Some(ExitRecord { cause: Some(cause), .. }), .. } => {
            let reason = match cause.code {
                ErrorCode::OutputLimit => EndReason::OutputLimit,
                ErrorCode::LaunchFailed => EndReason::LaunchFailed,
                // The shim itself failed.
                _ => EndReason::AgentLost,
            };
            failed(cause.code, cause.message.clone(), reason)
        }
        Exit::Exited { .. } => match &ended.failure {
            Some(error) => Ending::Failed { error: error.clone(), reason: EndReason::AgentFailed },
            None => Ending::Completed,
        },
        Exit::Lost { rebooted: true } => failed(
            ErrorCode::AgentLost,
            "the machine was restarted while the agent worked".to_owned(),
            EndReason::AgentLost,
        ),
        Exit::Lost { rebooted: false } => failed(
            ErrorCode::AgentLost,
            "the agent and its shim were killed (by SIGKILL, or because memory ran out) and left no exit status behind"
                .to_owned(),
            EndReason::AgentLost,
        ),
        Exit::NeverLaunched if cancel.is_some() => Ending::Stopped { verified: true },
        // A predecessor took the latch because it could not launch, and did not live to say so.
        Exit::NeverLaunched => failed(
            ErrorCode::LaunchFailed,
            "the agent could not be started".to_owned(),
            EndReason::LaunchFailed,
        ),
        Exit::LaunchFailed { message } => failed(ErrorCode::LaunchFailed, message.clone(), EndReason::LaunchFailed),
        Exit::Unreachable => failed(
            ErrorCode::SandboxUnreachable,
            "no live host reaches the run's sandbox, and its time is up".to_owned(),
            EndReason::SandboxUnreachable,
        ),
        Exit::NoProgress => failed(
            ErrorCode::BudgetExceeded,
            "the agent has ended, and what it had printed could not be delivered in the time that there is for it".to_owned(),
            EndReason::BudgetExceeded,
        ),
        Exit::SandboxGone => failed(
            ErrorCode::SandboxGone,
            "the run's sandbox is gone, and its journal with it".to_owned(),
            EndReason::SandboxGone,
        ),
        Exit::Diverged { position, size } => failed(
            ErrorCode::ReplayDiverged,
            format!(
                "the run's journal is not the one that its log was made from: {position} bytes of it were read, and it \
                 holds {size}"
            ),
            EndReason::ReplayDiverged,
        ),
    }
}

impl Driver<'_> {
    /// Closes what is open, and ends the run: the last events, the log, the status and the transcript in one
    /// transaction, so that no crash leaves one without the others.
    pub(super) async fn finish(&mut self, translation: &mut Translation, exit: Exit) -> DriveEnd {
        let mut leftovers = None;
        if matches!(exit, Exit::Lost { .. } | Exit::Diverged { .. }) && self.killed.is_none() {
            // Without its shim a weak fence may have let orphans escape: nothing of a lost agent may work on. Nor of one
            // whose output nobody will read.
            leftovers = self.kill_leftovers().await;
        }
        let agent_exit = self.agent_exit(&exit).await;
        let mut closing: Vec<(Origin, Chunk)> = Vec::new();
        let ended = translation.finish(&agent_exit, &mut closing);
        let seen = Seen { exit: &exit, ended: &ended, leftovers: leftovers.as_deref() };
        let mut hold = self.host.hold();
        let mut whole = self.prepare_finish(translation, &closing, &seen);
        let mut salt = None;
        loop {
            if let Err(end) = self.guard() {
                return end;
            }
            let append = match self.host.lighten(&self.run, &whole.append, salt.as_ref()).await {
                Ok(append) => append,
                Err(error) => match hold.wait(error).await {
                    Ok(()) => continue,
                    Err(error) => return DriveEnd::Store(error),
                },
            };
            let finish = Finish { append, ..whole.clone() };
            fail::point("finish.before");
            // The same one again where its outcome is not known: the store knows it by its batch.
            match self.host.store.finish(finish).await {
                Ok(finished) => {
                    fail::point("finish.after");
                    hold.done();
                    return DriveEnd::Ended(Box::new(finished.run));
                }
                Err(FinishError::Cancelled(cancel)) => {
                    self.set_cancel(cancel);
                    whole = self.prepare_finish(translation, &closing, &seen);
                }
                Err(FinishError::Bodies(refusal)) => {
                    if let Err(error) = self.host.put_again(refusal, &mut salt) {
                        return DriveEnd::Store(error);
                    }
                }
                Err(FinishError::Store(error)) => {
                    if let Err(error) = hold.wait(error).await {
                        return DriveEnd::Store(error);
                    }
                }
                Err(error @ (FinishError::Fenced(_) | FinishError::TailMoved { .. })) => {
                    return self.superseded(&error);
                }
            }
        }
    }

    /// The end of the run, as the cancel that is known by now makes it.
    fn prepare_finish(
        &mut self,
        translation: &Translation,
        closing: &[(Origin, Chunk)],
        seen: &Seen<'_>,
    ) -> Finish {
        let Seen { exit, ended, leftovers } = seen;
        let cancel = self.known_cancel().map(|cancel| cancel.reason);
        let mut ending = ending(exit, self.killed.as_ref(), ended, cancel);
        if let (Some(cause), Ending::Failed { error, .. }) = (leftovers, &mut ending) {
            error.message.push_str(&format!("; processes of it may still live: {cause}"));
        }
        let verdict = end(cancel, &ending);
        // It may be prepared a second time, from the same place.
        let fold = self.fold.clone();
        let session = translation.session();
        let (mut append, _) = self.prepare_append(closing.to_vec(), |fold| translation.cursor(fold), session);
        // What no event has closed is closed by the end of the log.
        let mut rest: Vec<Update> = Vec::new();
        self.fold.finish(&mut rest);
        self.fold = fold;
        append.messages.extend(rest.into_iter().map(message));
        let run = &self.run;
        let terminal = match &verdict.error {
            None => Event::RunFinished {
                thread_id: run.thread_id.as_str().into(),
                run_id: run.run_id.as_str().into(),
                result: ended.result.clone(),
                usage: ended.usage.as_slice().into(),
                metadata: Some(json!({"tanstack": {"finishReason": "stop"}})),
            },
            Some(error) => Event::RunError {
                message: error.message.as_str().into(),
                code: error.code.as_str().into(),
                usage: ended.usage.as_slice().into(),
            },
        };
        append.events.push(NewEvent::new(Origin::Host, terminal.chunk()));
        Finish { append, verdict, cancel, exit_code: exit.status(), usage: ended.usage.clone() }
    }

    async fn agent_exit(&self, exit: &Exit) -> AgentExit {
        let signal = match exit {
            Exit::Exited { record, .. } => record.as_ref().and_then(|record| record.signal),
            _ => None,
        };
        let stderr_tail = match (&self.run.instance_id, exit.status()) {
            (Some(instance), status) if status != Some(0) => {
                let tail =
                    self.host.provider.stderr_tail(instance, &self.run.run_id, STDERR_TAIL_BYTES).await;
                tail.unwrap_or_default()
            }
            _ => String::new(),
        };
        AgentExit { status: exit.status(), signal, stderr_tail }
    }

    /// Kills what a lost agent has left; why that could not be verified, if it could not.
    async fn kill_leftovers(&self) -> Option<String> {
        let instance = self.run.instance_id.as_ref()?;
        match self.host.provider.kill(instance, &self.run.run_id, std::time::Duration::ZERO).await {
            Ok(KillOutcome::Dead | KillOutcome::NeverStarted) => None,
            Ok(KillOutcome::Unverified { cause }) => Some(cause),
            Err(error) => Some(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::ExitSecret;
    use outlast_core::journal::exit::ExitCause;

    fn exited(status: i32, cause: Option<ErrorCode>) -> Exit {
        let record = ExitRecord {
            exit: status,
            signal: None,
            stdout_bytes: 0,
            nonce: ExitSecret::from_bytes([0; 16]),
            cause: cause.map(|code| ExitCause { code, message: "m".into() }),
        };
        Exit::Exited { status, record: Some(record) }
    }

    #[test]
    fn endings() {
        let fine = Ended::default();
        let failure = Some(RunError { code: "api_error".into(), message: "m".into() });
        let reported = Ended { failure, ..Ended::default() };
        let reason = |exit: &Exit, killed: Option<&KillOutcome>, ended: &Ended| match ending(
            exit,
            killed,
            ended,
            Some(CancelReason::Ttl),
        ) {
            Ending::Completed => "completed".to_owned(),
            Ending::Failed { error, reason } => format!("{} {reason}", error.code),
            Ending::Stopped { verified } => format!("stopped {verified}"),
        };
        assert_eq!(reason(&exited(0, None), None, &fine), "completed");
        assert_eq!(reason(&exited(0, None), None, &reported), "api_error agent_failed");
        assert_eq!(
            reason(&exited(1, Some(ErrorCode::OutputLimit)), None, &reported),
            "output_limit output_limit"
        );
        assert_eq!(
            reason(&exited(127, Some(ErrorCode::LaunchFailed)), None, &fine),
            "launch_failed launch_failed"
        );
        assert_eq!(reason(&Exit::Lost { rebooted: true }, None, &fine), "agent_lost agent_lost");
        assert_eq!(reason(&Exit::SandboxGone, None, &fine), "sandbox_gone sandbox_gone");
        assert_eq!(reason(&exited(0, None), Some(&KillOutcome::Dead), &fine), "stopped true");
        let unverified = KillOutcome::Unverified { cause: "c".into() };
        assert_eq!(reason(&exited(0, None), Some(&unverified), &fine), "stopped false");
        assert_eq!(reason(&Exit::NeverLaunched, None, &fine), "stopped true");
        for status in [143, 137] {
            assert_eq!(reason(&exited(status, None), None, &reported), "stopped true");
            assert!(matches!(ending(&exited(status, None), None, &reported, None), Ending::Failed { .. }));
        }
        assert!(matches!(
            ending(&Exit::NeverLaunched, None, &fine, None),
            Ending::Failed { reason: EndReason::LaunchFailed, .. }
        ));
    }
}
