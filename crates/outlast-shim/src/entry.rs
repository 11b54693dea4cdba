//! The shim from its first instruction to its last. The order is what makes a launch happen at most once; each step
//! says why it stands where it stands.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use outlast_core::ErrorCode;
use outlast_core::journal::exit::ExitCause;
use outlast_core::journal::files;
use outlast_core::journal::latch::{Latch, LaunchLatch};
use outlast_core::shim::{ShimReport, ShimRequest};
use rustix::fs::OFlags;

use crate::exit::{self, Ending};
use crate::fence::active::ActiveFence;
use crate::files::{RunFiles, RunsDir};
use crate::keeper::{Enclosure, ExecPlan, Orders};
use crate::latch::{TakeError, Taking};
use crate::lock::Attempt;
use crate::{fence, keeper, latch, lock, process, pump, request, sys};

/// For how long a shim waits for another one that is at work on the same run. That one either takes the latch or dies,
/// unless it is frozen.
const RIVAL_PATIENCE_MS: u64 = 5_000;
/// How often it looks.
const RIVAL_POLL_MS: u64 = 5;

/// Runs the shim: arguments are the runs directory (absolute) and the encoded run id; the request comes on standard
/// input and one report goes to standard output. Returns when the agent's end is recorded, or nothing was started.
///
/// Must be called before the process has started any thread, and not return to anything but the process's end.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    let [runs_dir, enc] = args.as_slice() else {
        request::report(&refused("usage: RUNS_DIRECTORY ENCODED_RUN_ID"));
        return ExitCode::from(2);
    };
    // Before anything can be waited for: a session of its own, so that neither a closing terminal nor Ctrl-C reaches
    // it. It fails only where the shim leads a group already, which is as good.
    let _ = rustix::process::setsid();
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGXFSZ] {
        sys::ignore_signal(signal);
    }
    // Whatever the host had open and forgot to close stays the host's: a database's file, say, or another lock.
    sys::close_all_but(&[]);
    let _ = rustix::process::chdir("/");
    let request = match request::read() {
        // Nothing has happened, and nobody waits for a word.
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(request)) => request,
        Err(error) => {
            request::report(&refused(error.to_string()));
            return ExitCode::from(2);
        }
    };
    match enc.to_str() {
        // The name becomes a file name; only one that the encoding has made is safe as that.
        Some(enc) if outlast_core::encoding::decode(enc).is_some() => {
            if let Err(report) = run(Path::new(runs_dir), enc, &request) {
                request::report(&report);
            }
        }
        _ => request::report(&refused("the run id is not an encoded one")),
    }
    ExitCode::SUCCESS
}

fn refused(message: impl Into<String>) -> ShimReport {
    ShimReport::Refused { message: message.into() }
}

/// Everything after the request. An error is what is to be reported: nothing was started.
fn run(runs_dir: &Path, enc: &str, request: &ShimRequest) -> Result<(), ShimReport> {
    let gone = || ShimReport::SandboxGone { message: format!("{} does not exist", runs_dir.display()) };
    let dir = RunsDir::open(runs_dir, enc).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => gone(),
        _ => refused(format!("cannot open {}: {error}", runs_dir.display())),
    })?;
    // The lock comes before the latch: so a latch that is taken by a shim while the lock is free means, at any time and
    // for any observer, that this shim is dead.
    let lock = dir.file(files::LOCK, OFlags::WRONLY).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => gone(),
        _ => refused(format!("cannot open the run's lock: {error}")),
    })?;
    wait_for_lock(&dir, &lock)?;
    if latch::is_taken(dir.fd(), enc).map_err(|error| refused(error.to_string()))? {
        return Err(ShimReport::AlreadyLatched);
    }
    // The files come before the latch: a disk that cannot hold them is a reason to try again, not to lose the run.
    let run_files =
        dir.create_files().map_err(|error| refused(format!("cannot make the run's files: {error}")))?;
    let failed = |error: std::io::Error| refused(format!("cannot prepare the launch: {error}"));
    // From here on a request to stop is read when there is something to stop. Before, it simply ends the shim.
    let stop = sys::signal_fd(&[libc::SIGTERM]).map_err(failed)?;
    let (stdout, agent_stdout) = pump::pipe().map_err(failed)?;
    let (stderr, agent_stderr) = pump::pipe().map_err(failed)?;
    let plans = plans(request);
    let mut orders = Orders {
        enclosure: Enclosure::Adoption,
        hide: &request.hide,
        plans: plans.as_deref().unwrap_or_default(),
        stdout: &agent_stdout,
        stderr: &agent_stderr,
    };
    // The fence comes before the latch, with a process inside that waits: so the latch names, before there is an agent,
    // everything that is needed to kill it. If this shim dies now, that process leaves and the latch is free.
    let name = format!("outlast-{enc}-{}", rustix::process::getpid().as_raw_nonzero());
    let mut fence = fence::choose(request.fence, &name, &mut orders).map_err(refused)?;
    drop((agent_stdout, agent_stderr));
    // The request's secret is in this process's memory.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let ending = match take_latch(&dir, &fence) {
        Err(report) => {
            fence.dismantle();
            return Err(report);
        }
        // The latch is this shim's for ever and nobody else will start the agent, so that it was not started is how
        // the run ends.
        Ok(Err(message)) => not_started(126, message),
        Ok(Ok(())) => match &plans {
            Err(message) => not_started(126, message.clone()),
            Ok(plans) => {
                // The host is told before the agent starts: it waits for nothing else, and may be dead already.
                request::report(&ShimReport::Launched);
                let _ = keeper::occupy_standard_streams();
                let scene = pump::Scene {
                    files: &run_files,
                    limits: request.limits,
                    secret: &request.secret,
                    plans,
                    fallback: request.fallback.as_ref(),
                    stop: &stop,
                    stdout,
                    stderr,
                };
                match pump::run(scene, &mut fence) {
                    Ok(ending) => ending,
                    Err(error) => lost(&run_files, &mut fence, &error),
                }
            }
        },
    };
    conclude(&run_files, request, fence, ending);
    drop(lock);
    Ok(())
}

fn conclude(run_files: &RunFiles, request: &ShimRequest, fence: ActiveFence, ending: Ending) {
    // The tree is gone; the keeper goes too before the end is told, so that a sentinel means what it says.
    fence.dismantle();
    exit::record(run_files, &request.secret, ending);
}

/// Takes the lock, or finds out that another shim has decided. One that holds the lock is on its way to the latch, or
/// will die; one that is frozen there is left alone, and the caller may try again.
fn wait_for_lock(dir: &RunsDir, lock: &impl std::os::fd::AsFd) -> Result<(), ShimReport> {
    let deadline = sys::now_ms() + RIVAL_PATIENCE_MS;
    loop {
        match lock::try_take(lock) {
            Ok(Attempt::Taken) if dir.in_place() => return Ok(()),
            Ok(Attempt::Taken) => {
                let message = "the sandbox is being destroyed".to_owned();
                return Err(ShimReport::SandboxGone { message });
            }
            Ok(Attempt::Held) => {}
            Err(error) => return Err(refused(format!("cannot lock the run: {error}"))),
        }
        if latch::is_taken(dir.fd(), dir.enc()).map_err(|error| refused(error.to_string()))? {
            return Err(ShimReport::AlreadyLatched);
        }
        if sys::now_ms() >= deadline {
            return Err(refused("another shim is at work on this run and does not get on"));
        }
        let nothing: [Option<&std::os::fd::OwnedFd>; 0] = [];
        let _ = sys::wait_readable(nothing, Some(RIVAL_POLL_MS));
    }
}

/// The agent, and what to start instead of it.
fn plans(request: &ShimRequest) -> Result<Vec<ExecPlan>, String> {
    let commands = [Some(&request.command), request.fallback.as_ref().map(|fallback| &fallback.command)];
    commands.into_iter().flatten().map(|command| ExecPlan::new(command, &request.env, &request.cwd)).collect()
}

/// Takes the latch. The outer error: it is not this shim's. The inner one: it is, and still nothing may be started.
fn take_latch(dir: &RunsDir, fence: &ActiveFence) -> Result<Result<(), String>, ShimReport> {
    let failed = |error: std::io::Error| refused(format!("cannot describe the launch: {error}"));
    let vanished = || refused("a process of the launch has vanished");
    let keeper = fence.keeper.ok_or_else(vanished)?;
    let content = LaunchLatch {
        boot_id: process::boot_id().map_err(failed)?,
        pid_ns: process::pid_ns().map_err(failed)?,
        shim: process::identify(rustix::process::getpid().as_raw_nonzero().get()).ok_or_else(vanished)?,
        fence: fence.describe(process::identify(keeper.as_raw_nonzero().get()).ok_or_else(vanished)?),
    };
    match latch::take(dir.fd(), dir.enc(), &Latch::Launch(content)) {
        Ok(Taking::Taken) => Ok(Ok(())),
        Ok(Taking::TakenBefore) => Err(ShimReport::AlreadyLatched),
        Err(TakeError::NotTaken(error)) => Err(refused(format!("cannot take the launch latch: {error}"))),
        Err(TakeError::Unsafe(error)) => Ok(Err(format!("the launch latch cannot be made durable: {error}"))),
    }
}

/// The end of a run whose latch was taken and whose agent was not started.
fn not_started(exit: i32, message: String) -> Ending {
    request::report(&ShimReport::Launched);
    let cause = Some(ExitCause { code: ErrorCode::LaunchFailed, message });
    Ending { exit, signal: None, stdout_bytes: 0, cause }
}

/// The loop itself failed, which no known machine does. The tree is killed; what was printed is in the journal.
fn lost(run_files: &RunFiles, fence: &mut ActiveFence, error: &std::io::Error) -> Ending {
    fence.strike();
    while !fence.is_gone() {
        let nothing: [Option<&std::os::fd::OwnedFd>; 0] = [];
        let _ = sys::wait_readable(nothing, Some(RIVAL_POLL_MS));
        fence.strike();
    }
    let cause = ExitCause { code: ErrorCode::Internal, message: format!("the shim failed: {error}") };
    let size = rustix::fs::fstat(&run_files.journal).map_or(0, |stat| stat.st_size);
    let stdout_bytes = u64::try_from(size).unwrap_or(0);
    Ending { exit: 128 + libc::SIGKILL, signal: Some(libc::SIGKILL), stdout_bytes, cause: Some(cause) }
}
