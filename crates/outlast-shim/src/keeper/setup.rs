//! Making a keeper and putting it into its place.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::channel::{Channel, Report};
use super::{exec::ExecPlan, reap};
use crate::latch::NULL_DEVICE;
use crate::sys::{self, Forked};

/// For how long a keeper may take to get into its place.
const PATIENCE_MS: u64 = 10_000;

/// What encloses the keeper's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enclosure {
    /// A PID namespace, whose init the keeper is, and a mount namespace; in a user namespace where the caller may not
    /// make them otherwise.
    Namespaces { user: bool },
    /// Nothing of the keeper's own: it adopts the tree's orphans.
    Adoption,
}

/// What a keeper needs.
pub(crate) struct Orders<'a> {
    pub(crate) enclosure: Enclosure,
    pub(crate) hide: &'a [String],
    /// The agent, and what to start instead of it.
    pub(crate) plans: &'a [ExecPlan],
    pub(crate) stdout: &'a OwnedFd,
    pub(crate) stderr: &'a OwnedFd,
}

/// What may fail while a keeper gets into its place.
pub(super) const STEPS: &[&str] = &[
    "preparing a process",
    "mapping the user into a user namespace",
    "detaching the mounts of a mount namespace",
    "adopting orphans",
];

/// A step's index in [`STEPS`], and why it failed.
type Failure = (i32, io::Error);

/// Forks a keeper into its enclosure. It waits for its first command. If the shim dies meanwhile, the keeper leaves.
///
/// # Errors
///
/// Why this enclosure cannot be had, for people. No process is left.
pub(crate) fn spawn(orders: &Orders<'_>) -> Result<(Pid, Channel), String> {
    let (ours, theirs) = Channel::pair().map_err(|error| error.to_string())?;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let namespaces = match orders.enclosure {
        Enclosure::Namespaces { user } => {
            libc::CLONE_NEWPID | libc::CLONE_NEWNS | if user { libc::CLONE_NEWUSER } else { 0 }
        }
        Enclosure::Adoption => 0,
    };
    let pid = match sys::fork(namespaces) {
        Err(error) => return Err(format!("making a process: {error}")),
        Ok(Forked::Parent(pid)) => pid,
        Ok(Forked::Child) => {
            // Nothing may unwind into what the parent would do next.
            let status = std::panic::catch_unwind(AssertUnwindSafe(|| be_keeper(orders, &theirs, uid, gid)));
            sys::exit_now(status.unwrap_or(70));
        }
    };
    drop(theirs);
    let answer = match sys::wait_readable([Some(&ours.0)], Some(PATIENCE_MS)) {
        Ok([true]) => ours.receive_report(),
        Ok([false]) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        Err(error) => Err(error),
    };
    let cause = match answer {
        Ok(Some(Report::Ready)) => return Ok((pid, ours)),
        Ok(Some(Report::Unfit { step, errno })) => {
            let step = usize::try_from(step).ok().and_then(|step| STEPS.get(step)).unwrap_or(&STEPS[0]);
            format!("{step}: {}", io::Error::from_raw_os_error(errno))
        }
        Ok(_) => "the process died".to_owned(),
        Err(error) => error.to_string(),
    };
    end(pid);
    Err(cause)
}

/// Kills and reaps a keeper. In a PID namespace this kills everything in it and returns after all of it is dead.
pub(crate) fn end(keeper: Pid) {
    let _ = rustix::process::kill_process(keeper, Signal::KILL);
    let _ = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(keeper), WaitOptions::empty()));
}

/// The keeper's life.
fn be_keeper(orders: &Orders<'_>, channel: &Channel, uid: u32, gid: u32) -> i32 {
    if let Err((step, error)) = take_place(orders, channel, uid, gid) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = channel.send_report(Report::Unfit { step, errno });
        return 1;
    }
    let signals = match sys::signal_fd(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP]) {
        Ok(signals) => signals,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = channel.send_report(Report::Unfit { step: 0, errno });
            return 1;
        }
    };
    reap::watch(orders, channel, &signals)
}

fn take_place(orders: &Orders<'_>, channel: &Channel, uid: u32, gid: u32) -> Result<(), Failure> {
    fn step<T, E: Into<io::Error>>(number: i32, result: Result<T, E>) -> Result<T, Failure> {
        result.map_err(|error| (number, error.into()))
    }
    // The shim's death kills the keeper. A shim that died before this line has closed its end of the channel, and the
    // first command is awaited there, so no look at the parent is needed (in a PID namespace it could not be seen).
    step(0, rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))?;
    // First of all the lock's copy must go: the lock says that the shim lives, not that its keeper does. The host's
    // pipes must go as well, or the host would wait for this process where it waits for the shim.
    let keep = [channel.0.as_raw_fd(), orders.stdout.as_raw_fd(), orders.stderr.as_raw_fd()];
    sys::close_all_but(&keep);
    step(0, occupy_standard_streams())?;
    let _ = rustix::thread::set_name(c"outlast-keeper");
    match orders.enclosure {
        Enclosure::Adoption => {
            step(3, rustix::process::set_child_subreaper(Some(rustix::process::getpid())))?;
        }
        Enclosure::Namespaces { user } => {
            if user {
                step(1, map_user(uid, gid))?;
            }
            // Before any mount: otherwise the mounts below would appear outside.
            let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
            step(2, rustix::mount::mount_change("/", private))?;
            mount_views(orders.hide);
        }
    }
    step(0, rustix::process::chdir("/"))?;
    // The request's secret is in this process's memory, which an agent of the same user could read otherwise. The map
    // files of a user namespace cannot be written any more after this.
    step(0, rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable))
}

/// Standard input, output and error become the null device.
pub(crate) fn occupy_standard_streams() -> io::Result<()> {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open(NULL_DEVICE, flags, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// In the new user namespace the user stays who they are.
fn map_user(uid: u32, gid: u32) -> io::Result<()> {
    // Without this a group map may not be written; kernels before 3.19 do not ask for it.
    match std::fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))
}

/// Shows the tree its own processes, and nothing in the hidden directories. Both are conveniences and guards against
/// accidents; what holds the tree together does not depend on them, so where the machine refuses, the agent runs
/// without.
fn mount_views(hide: &[String]) {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = rustix::mount::mount("proc", "/proc", "proc", flags, None);
    let options = CString::new("size=4k,mode=0555").ok();
    for directory in hide {
        let flags = flags | MountFlags::RDONLY;
        let _ = rustix::mount::mount("none", directory.as_str(), "tmpfs", flags, options.as_deref());
    }
}
