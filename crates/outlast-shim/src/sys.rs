//! The system calls that no safe library offers.
//!
//! The shim has one thread, so a forked child may do whatever its parent may: no lock can be held by a thread that
//! does not exist in the child.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

/// Which of the two processes came back from a fork.
pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Forks, with new namespaces for the child where `namespaces` (`CLONE_NEW…`) are given. Only the child enters them.
pub(crate) fn fork(namespaces: libc::c_int) -> io::Result<Forked> {
    let pid = if namespaces == 0 {
        // SAFETY: the process is single-threaded, so the child may go on as if it were the parent.
        i64::from(unsafe { libc::fork() })
    } else {
        let flags = i64::from(namespaces | libc::SIGCHLD);
        // SAFETY: without CLONE_VM and with a null stack this is a fork: the child runs on its copy of the stack. The
        // arguments after the flags are pointers that these flags do not use. The process is single-threaded.
        #[allow(clippy::useless_conversion, reason = "c_long is not i64 everywhere")]
        unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }.into()
    };
    match pid {
        0 => Ok(Forked::Child),
        -1 => Err(io::Error::last_os_error()),
        pid => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(Forked::Parent)
            .ok_or_else(|| io::Error::other("fork gave no pid")),
    }
}

/// Ends the process at once, running nothing of what its parent has registered for its own end.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` only ends the process.
    unsafe { libc::_exit(status) }
}

/// Blocks the signals and returns a descriptor from which they are read instead.
pub(crate) fn signal_fd(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by `sigemptyset` before any other use and outlives the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Whether any signal has arrived since the last call.
pub(crate) fn take_signals(signal_fd: impl AsFd) -> bool {
    let mut buffer = [0; 16 * size_of::<libc::signalfd_siginfo>()];
    let mut any = false;
    while let Ok(read) = rustix::io::read(&signal_fd, &mut buffer) {
        any |= read > 0;
        if read < buffer.len() {
            break;
        }
    }
    any
}

/// Ignores a signal.
pub(crate) fn ignore_signal(signal: libc::c_int) {
    // SAFETY: installs no handler, only a disposition.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Gives every signal its default action and then unblocks them all. In this order: a signal that came while it was
/// blocked now ends the process, instead of being lost.
pub(crate) fn reset_signals() {
    // The kernel's `sigaction`: null handler (the default), no flags, empty mask, on every architecture. The C library's
    // own call refuses the two signals that it uses itself, and those are inherited as ignored like any other.
    const SIGNALS: libc::c_int = 64;
    let default = [0_u64; 4];
    for signal in 1..=SIGNALS {
        // SAFETY: the structure is as large as the kernel's, its mask has the given eight bytes, and nothing is
        // written back. Installs no handler.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<u64>(), 8);
        }
    }
    // SAFETY: the set is initialised by `sigemptyset` and outlives the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Closes every descriptor from 3 on but those. The numbers that are closed may belong to values of the caller's
/// parent, so this is for processes that never return to code that owns them.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<RawFd> = keep.to_vec();
    keep.sort_unstable();
    let mut from: RawFd = 3;
    for fd in keep.iter().copied().filter(|fd| *fd >= 3) {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: closing descriptors touches no memory; the callers own none of them any more.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done == 0 {
        return;
    }
    // Kernels before 5.9.
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| (first..=last).contains(fd))
        .collect();
    for fd in open {
        // SAFETY: as above; the directory's own descriptor is closed already, which is an error that means nothing.
        unsafe { libc::close(fd) };
    }
}

/// Replaces the process. Returns only on failure, with the reason.
pub(crate) fn execve(
    program: &std::ffi::CStr,
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> io::Error {
    debug_assert!(
        argv.last().is_some_and(|end| end.is_null()) && env.last().is_some_and(|end| end.is_null())
    );
    // SAFETY: both arrays end with a null pointer and hold pointers to C strings that outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Milliseconds on a clock that stands still while the machine sleeps: graces are given to running processes.
pub(crate) fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Waits until one of the descriptors is readable (or its other end is gone), or for so many milliseconds; which of
/// them are.
pub(crate) fn wait_readable<const N: usize>(
    fds: [Option<&OwnedFd>; N],
    timeout_ms: Option<u64>,
) -> io::Result<[bool; N]> {
    // A negative descriptor is skipped by the kernel, so the array keeps its shape.
    let mut set = fds.map(|fd| libc::pollfd {
        fd: fd.map_or(-1, AsRawFd::as_raw_fd),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = timeout_ms.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
    // SAFETY: the array outlives the call and its length is given; the descriptors are borrowed for its time.
    let ready = unsafe { libc::poll(set.as_mut_ptr(), N as libc::nfds_t, timeout) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok([false; N]) } else { Err(error) };
    }
    Ok(set.map(|entry| entry.revents != 0))
}
