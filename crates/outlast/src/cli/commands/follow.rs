//! Following a run at a terminal, or in a pipe.

use std::io::Write;

use outlast_core::RunId;
use outlast_core::run::{CancelReason, OnDisconnect, RunRecord, Status};
use outlast_runtime::{Host, KeepEnd, Keeper, Presence, Seen, Viewer};
use outlast_store::ReadError;

use super::run::quote;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::Output;
use crate::cli::signals::{Leave, Signals};
use crate::{ErrorCode, Offset};

/// What is followed.
pub struct Follow<'a> {
    pub run_id: &'a RunId,
    pub from: Offset,
    pub on_disconnect: OnDisconnect,
}

/// Why the following ended.
enum End {
    Closed,
    Left(Leave),
    /// Whoever reads our output is gone: the same as a closed terminal.
    PipeClosed,
    Stuck(KeepEnd),
}

/// How long a viewer that leaves waits for a cancel that it has asked for.
const CANCEL_PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// Prints the log from the offset on until it is closed or the viewer leaves, while the keeper sees to it that somebody
/// drives the run.
pub async fn follow(
    context: &Context,
    host: &Host,
    what: Follow<'_>,
    mut keeper: Option<Keeper>,
    presence: impl Into<Option<Presence>>,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let presence = presence.into();
    let mut viewer = host.view(what.run_id, what.from).await.map_err(read_failure)?;
    let mut output = Output::stream(context.json);
    let end = watch(&mut viewer, &mut output, &mut keeper, signals).await;
    let end = match end {
        Ok(end) => end,
        Err(failure) => {
            leave(keeper, presence).await;
            return Err(failure);
        }
    };
    match end {
        End::Closed => {
            leave(keeper, presence).await;
            let run = host.run(what.run_id).await?.ok_or_else(|| Failure::not_found(what.run_id))?;
            output.summary(&run);
            Ok(exit_status(&run))
        }
        End::Stuck(end) => {
            leave(None, presence).await;
            Err(stuck(end, what.run_id))
        }
        End::Left(_) | End::PipeClosed => {
            let status = match end {
                End::Left(leave) => leave.status(),
                _ => 141,
            };
            output.interrupted();
            leave(keeper, presence).await;
            if what.on_disconnect == OnDisconnect::Cancel {
                eprintln!("outlast: the last viewer left; cancelling the run");
                host.cancel(what.run_id, CancelReason::Disconnect, CANCEL_PATIENCE)
                    .await
                    .map_err(|error| Failure::new(error.code(), error))?;
            } else {
                let run = quote(what.run_id.as_str());
                eprintln!(
                    "outlast: detached, the agent works on. `outlast attach {run}` comes back, `outlast cancel {run}` stops it."
                );
            }
            Ok(status)
        }
    }
}

async fn watch(
    viewer: &mut Viewer,
    output: &mut Output,
    keeper: &mut Option<Keeper>,
    signals: &mut Signals,
) -> Result<End, Failure> {
    loop {
        let written = match viewer.next().await.map_err(read_failure)? {
            Seen::Events(page) => {
                let written = page.events.iter().try_for_each(|event| output.event(event));
                // Between two pages a replay of a long log still heeds a signal.
                if let Some(leave) = poll_now(signals).await {
                    return Ok(End::Left(leave));
                }
                written
            }
            Seen::Closed => return output.flush().map_or_else(closed_pipe, |()| Ok(End::Closed)),
            Seen::Expired => {
                return Err(Failure::new(
                    ErrorCode::CursorExpired,
                    "the run's events have aged out; `outlast show RUN --messages` has its transcript",
                ));
            }
            Seen::CaughtUp => {
                let flushed = output.flush();
                if flushed.is_ok() {
                    tokio::select! {
                        biased;
                        leave = signals.next() => return Ok(End::Left(leave)),
                        end = ended(keeper) => if let Some(end) = end { return Ok(End::Stuck(end)) },
                        () = viewer.wait() => {}
                    }
                }
                flushed
            }
        };
        if let Err(error) = written {
            return closed_pipe(error);
        }
    }
}

fn closed_pipe(error: std::io::Error) -> Result<End, Failure> {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Ok(End::PipeClosed),
        _ => Err(Failure::new(ErrorCode::Internal, format!("cannot write to standard output: {error}"))),
    }
}

/// A signal that has already come.
async fn poll_now(signals: &mut Signals) -> Option<Leave> {
    tokio::select! {
        biased;
        leave = signals.next() => Some(leave),
        () = tokio::task::yield_now() => None,
    }
}

/// Waits for a keeper that stops by itself. None: the run has ended, and the log will say so.
async fn ended(keeper: &mut Option<Keeper>) -> Option<KeepEnd> {
    match keeper {
        Some(waiting) => waiting.ended().await,
        None => std::future::pending().await,
    }
    match keeper.take() {
        Some(keeper) => match keeper.end().await {
            KeepEnd::Ended(_) => None,
            other => Some(other),
        },
        None => None,
    }
}

async fn leave(keeper: Option<Keeper>, presence: Option<Presence>) {
    if let Some(keeper) = keeper {
        keeper.hand_over().await;
    }
    if let Some(presence) = presence {
        presence.leave().await;
    }
    let _ = std::io::stdout().flush();
}

fn stuck(end: KeepEnd, run_id: &RunId) -> Failure {
    match end {
        KeepEnd::CannotDrive { code, message } => Failure::new(code, message),
        KeepEnd::Store(error) => error.into(),
        KeepEnd::Interrupted => Failure::new(ErrorCode::InterruptedRun, "the run waits for a person"),
        KeepEnd::NotFound | KeepEnd::Ended(_) => Failure::not_found(run_id),
    }
}

fn read_failure(error: ReadError) -> Failure {
    match error {
        ReadError::RunNotFound(run_id) => Failure::not_found(run_id),
        ReadError::OffsetAhead { .. } => Failure::new(ErrorCode::OffsetAhead, error),
        ReadError::Store(error) => error.into(),
    }
}

/// The agent's own status. A run that failed although its agent exited with 0 must not look like a success to a script;
/// one that was stopped looks like a process that was.
fn exit_status(run: &RunRecord) -> u8 {
    let own = run.exit_code.and_then(|code| u8::try_from(code & 0xff).ok());
    match (run.status, own) {
        (Status::Aborted, _) => 143,
        (Status::Failed, None | Some(0)) => 1,
        (_, Some(code)) => code,
        (_, None) => 0,
    }
}
