//! Asking a program of the machine.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outlast_store::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags};

/// How long a program may take: whoever asks waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What it finds its way with; keys of this process are none of its business.
const VARIABLES: &[&str] = &["PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// What the program prints, at most as much as a pipe holds. None where it cannot be started, fails, or takes longer
/// than two seconds. Blocks for as long.
pub fn ask(clock: &dyn Clock, program: &str, arguments: &[&str]) -> Option<String> {
    let variables = VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(variables)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    if !ends_in_time(clock, &child) {
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    let mut output = child.stdout.take()?;
    // A process that the program has left behind may hold the pipe open.
    rustix::io::ioctl_fionbio(&output, true).ok()?;
    let mut text = Vec::new();
    let _ = output.read_to_end(&mut text);
    status.success().then(|| String::from_utf8(text).ok())?
}

fn ends_in_time(clock: &dyn Clock, child: &Child) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(Ok(handle)) = pid.map(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty())) else {
        return false;
    };
    let deadline = clock.boot_ms() + outlast_core::duration::millis(PATIENCE);
    loop {
        let left = deadline.saturating_sub(clock.boot_ms());
        let Ok(left) = Timespec::try_from(Duration::from_millis(left)) else {
            return false;
        };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(ended) => return ended > 0,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_store::SystemClock;

    use super::*;

    fn shell(script: &str) -> (Option<String>, u64) {
        let clock = SystemClock::new();
        let start = clock.boot_ms();
        let answer = ask(&clock, "sh", &["-c", script]);
        (answer, clock.boot_ms() - start)
    }

    #[test]
    fn answers_and_failures() {
        assert_eq!(shell("echo a; echo b").0.as_deref(), Some("a\nb\n"));
        assert_eq!(shell("echo a; exit 1").0, None);
        assert_eq!(shell("kill -9 $$").0, None);
        assert_eq!(ask(&SystemClock::new(), "there-is-no-such-program", &[]), None);
        let (answer, _) = shell("printf %s \"${CARGO_MANIFEST_DIR-nothing}\"");
        assert_eq!(answer.as_deref(), Some("nothing"), "the environment stays here");
    }

    #[test]
    fn nobody_waits_for_one_that_hangs() {
        let (answer, took) = shell("echo a; exec sleep 60");
        assert_eq!(answer, None);
        assert!((2_000..20_000).contains(&took), "{took} ms");
        // It ended, but a process of its has the pipe.
        let (answer, took) = shell("sleep 60 & echo a");
        assert_eq!(answer.as_deref(), Some("a\n"));
        assert!(took < 20_000, "{took} ms");
    }
}
