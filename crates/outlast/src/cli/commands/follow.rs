//! Following a run at a terminal, or in a pipe.

use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::{CancelReason, OnDisconnect, RunRecord, Status};
use outlast_runtime::{Host, KeepEnd, Keeper, Presence, Seen, Viewer};
use outlast_store::{Clock, ReadError, SystemClock};

use crate::ErrorCode;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::Output;
use crate::cli::say::tell;
use crate::cli::signals::{Leave, Signals, unless_left};

/// What is followed.
pub struct Follow<'a> {
    pub run_id: &'a RunId,
    /// The reader, at the place from which on events are shown.
    pub viewer: Viewer,
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
const CANCEL_PATIENCE: Duration = Duration::from_secs(15);
/// How long a viewer that leaves waits until what it has shown is read.
const READ_PATIENCE: Duration = Duration::from_millis(500);

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
    let mut viewer = what.viewer;
    let mut output = Output::stream(context.json)?;
    let end = watch(&mut viewer, &mut output, &mut keeper, signals).await;
    let end = match end {
        Ok(end) => end,
        Err(failure) => {
            leave(keeper, presence).await;
            drain(&mut output, signals).await;
            return Err(failure);
        }
    };
    match end {
        End::Closed => {
            let run = host.run(what.run_id).await?.ok_or_else(|| Failure::not_found(what.run_id))?;
            output.summary(&run);
            // Whoever drove the run snapshots the workspace now. Who does not want to wait for that, leaves: it is done
            // before the sandbox is destroyed at the latest.
            if let Some(waiting) = &mut keeper {
                let _ = unless_left(signals, waiting.ended()).await;
            }
            leave(keeper, presence).await;
            Ok(exit_status(&run))
        }
        End::Stuck(end) => {
            leave(None, presence).await;
            drain(&mut output, signals).await;
            Err(stuck(end, what.run_id))
        }
        End::Left(_) | End::PipeClosed => {
            let status = match end {
                End::Left(leave) => leave.status(),
                _ => 141,
            };
            leave(keeper, presence).await;
            let clock = SystemClock::new();
            tokio::select! {
                biased;
                _ = output.finish() => {}
                () = clock.sleep(READ_PATIENCE) => {}
            }
            if what.on_disconnect == OnDisconnect::Cancel {
                let report = host
                    .cancel(what.run_id, CancelReason::Disconnect, CANCEL_PATIENCE)
                    .await
                    .map_err(|error| Failure::new(error.code(), error))?;
                if !report.watched {
                    tell!("outlast: the last viewer left, so the run is cancelled ({})", report.run.status);
                    return Ok(status);
                }
            }
            let attach = context.again.command("attach", what.run_id);
            let cancel = context.again.command("cancel", what.run_id);
            tell!("outlast: detached, the agent works on. `{attach}` comes back, `{cancel}` stops it.");
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
        let seen = match unless_left(signals, viewer.next()).await {
            Ok(seen) => seen.map_err(read_failure)?,
            Err(leave) => return Ok(End::Left(leave)),
        };
        match &seen {
            Seen::Events(page) => page.events.iter().for_each(|event| output.event(event)),
            Seen::Expired => {
                return Err(Failure::new(
                    ErrorCode::CursorExpired,
                    "the run's events have aged out; `outlast show RUN --messages` has its transcript",
                ));
            }
            Seen::Closed | Seen::CaughtUp => {}
        }
        // Only this reader waits for whoever reads its output.
        let closed = seen == Seen::Closed;
        let printed = async { if closed { output.finish().await } else { output.flush().await } };
        match unless_left(signals, printed).await {
            Ok(Ok(())) if closed => return Ok(End::Closed),
            Ok(Ok(())) => {}
            Ok(Err(error)) => return closed_pipe(error),
            Err(leave) => return Ok(End::Left(leave)),
        }
        if seen == Seen::CaughtUp {
            tokio::select! {
                biased;
                leave = signals.next() => return Ok(End::Left(leave)),
                end = ended(keeper) => if let Some(end) = end { return Ok(End::Stuck(end)) },
                () = viewer.wait() => {}
            }
        }
    }
}

/// Waits until everything that was shown is read, or the viewer leaves.
async fn drain(output: &mut Output, signals: &mut Signals) {
    // What comes after it is another failure, which is reported.
    let _ = unless_left(signals, output.finish()).await;
}

fn closed_pipe(error: std::io::Error) -> Result<End, Failure> {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Ok(End::PipeClosed),
        // What a terminal answers that is gone.
        _ if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(End::PipeClosed),
        _ => Err(Failure::new(ErrorCode::Internal, format!("cannot write to standard output: {error}"))),
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
}

fn stuck(end: KeepEnd, run_id: &RunId) -> Failure {
    match end {
        KeepEnd::CannotDrive { code, message } => Failure::new(code, message),
        KeepEnd::Store(error) => error.into(),
        KeepEnd::Interrupted => Failure::new(ErrorCode::InterruptedRun, "the run waits for a person"),
        KeepEnd::NotFound | KeepEnd::Ended(_) => Failure::not_found(run_id),
    }
}

pub(super) fn read_failure(error: ReadError) -> Failure {
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
