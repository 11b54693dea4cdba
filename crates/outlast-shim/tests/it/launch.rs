//! From the request to the agent's first instruction.

use std::os::fd::AsRawFd;

use outlast_core::journal::files;
use outlast_core::journal::latch::{Latch, LatchState};
use outlast_core::shim::{FenceChoice, ShimReport};
use rustix::process::Signal;

use crate::bench::{Bench, Shim, fences, now_ms, until};

#[test]
fn half_a_request_is_nothing() {
    let bench = Bench::new();
    let line = serde_json::to_vec(&bench.request("true", FenceChoice::Auto)).expect("json");
    for bytes in [&b""[..], &line[..20], &line] {
        let mut shim = Shim::spawn(bench.command());
        shim.send(bytes);
        shim.listen();
        assert_eq!(shim.report, None);
        shim.wait();
        assert_eq!(std::fs::read_dir(bench.runs()).expect("runs").count(), 0);
    }
}

#[test]
fn nonsense_is_refused_and_not_repeated() {
    let bench = Bench::new();
    let mut shim = Shim::spawn(bench.command());
    shim.send(b"{\"secret\":\"hush\",\"command\":7}\n");
    shim.listen();
    let Some(ShimReport::Refused { message }) = &shim.report else { panic!("{:?}", shim.report) };
    assert!(!message.contains("hush"), "{message}");
    for enc in ["..", "a/b", "", "_zz"] {
        let bench = Bench { enc: enc.into(), ..Bench::new() };
        let shim = bench.start(&bench.request("true", FenceChoice::Auto));
        assert!(matches!(shim.report, Some(ShimReport::Refused { .. })), "{enc}: {:?}", shim.report);
    }
}

#[test]
fn no_directory_is_made() {
    let bench = Bench::new();
    std::fs::remove_dir(bench.runs()).expect("remove");
    let shim = bench.start(&bench.request("true", FenceChoice::Auto));
    assert!(matches!(shim.report, Some(ShimReport::SandboxGone { .. })), "{:?}", shim.report);
    shim.wait();
    assert!(!bench.runs().exists());
}

#[test]
fn a_taken_latch_is_respected() {
    let bench = Bench::new();
    outlast_shim::latch::take_cancelled(&bench.runs(), &bench.enc).expect("cancel");
    let shim = bench.start(&bench.request("touch started", FenceChoice::Auto));
    assert_eq!(shim.report, Some(ShimReport::AlreadyLatched));
    shim.wait();
    assert_eq!(bench.latch(), LatchState::Taken(Latch::Cancelled));
    assert!(!bench.dir.path().join("started").exists());
    assert!(!bench.file(files::JOURNAL).exists());

    let bench = Bench::new();
    std::fs::write(bench.file(files::LATCH), "").expect("torn");
    let shim = bench.start(&bench.request("touch started", FenceChoice::Auto));
    assert_eq!(shim.report, Some(ShimReport::AlreadyLatched));
}

/// Holds a run's lock as another shim would.
fn rival(bench: &Bench) -> std::fs::File {
    let path = bench.file(files::LOCK);
    let file = std::fs::File::options().create(true).append(true).open(path).expect("lock");
    // SAFETY: plain integers, and a descriptor that is open.
    let done = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as libc::c_short;
        libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock)
    };
    assert_eq!(done, 0);
    file
}

fn until_at_the_lock(bench: &Bench, shim: &Shim) {
    let fds = format!("/proc/{}/fd", shim.pid());
    until("the shim at the lock", || {
        let mut open = std::fs::read_dir(&fds).into_iter().flatten().flatten();
        open.any(|fd| std::fs::read_link(fd.path()).is_ok_and(|path| path == bench.file(files::LOCK)))
    });
}

#[test]
fn a_rival_that_dies_is_succeeded() {
    let bench = Bench::new();
    let rival = rival(&bench);
    let mut line = serde_json::to_vec(&bench.request("true", FenceChoice::Auto)).expect("json");
    line.push(b'\n');
    let mut shim = Shim::spawn(bench.command());
    shim.send(&line);
    until_at_the_lock(&bench, &shim);
    assert_eq!(bench.latch(), LatchState::Free);
    drop(rival);
    shim.listen();
    assert_eq!(shim.report, Some(ShimReport::Launched));
    shim.wait();
}

#[test]
fn a_sandbox_that_is_moved_away_is_gone() {
    let bench = Bench::new();
    let rival = rival(&bench);
    let mut line = serde_json::to_vec(&bench.request("touch started", FenceChoice::Auto)).expect("json");
    line.push(b'\n');
    let mut shim = Shim::spawn(bench.command());
    shim.send(&line);
    until_at_the_lock(&bench, &shim);
    let trash = bench.dir.path().join("trash");
    std::fs::rename(bench.runs(), &trash).expect("move");
    std::fs::create_dir(bench.runs()).expect("another of the same name");
    drop(rival);
    shim.listen();
    assert!(matches!(shim.report, Some(ShimReport::SandboxGone { .. })), "{:?}", shim.report);
    shim.wait();
    for dir in [bench.runs(), trash] {
        assert_eq!(outlast_shim::latch::read(&dir, &bench.enc).expect("latch"), LatchState::Free);
    }
}

#[test]
fn a_rival_that_is_frozen_is_left_alone() {
    let bench = Bench::new();
    let _rival = rival(&bench);
    let shim = bench.start(&bench.request("true", FenceChoice::Auto));
    assert!(matches!(shim.report, Some(ShimReport::Refused { .. })), "{:?}", shim.report);
    shim.wait();
    assert_eq!(bench.latch(), LatchState::Free);
}

#[test]
fn who_it_is_is_written_before_the_report() {
    for fence in fences() {
        let bench = Bench::new();
        let shim = bench.launch("sleep 1000", fence);
        let launch = bench.launched();
        assert_eq!(launch.boot_id, outlast_shim::process::boot_id().expect("boot"));
        assert_eq!(launch.pid_ns, outlast_shim::process::pid_ns().expect("namespace"));
        assert_eq!(launch.shim.pid, shim.pid());
        assert!(outlast_shim::process::alive(launch.shim));
        assert!(outlast_shim::process::alive(bench.keeper()));
        assert!(bench.is_locked());
        shim.signal(Signal::TERM);
        bench.ended(shim);
        assert!(!bench.is_locked());
    }
}

#[test]
fn a_fence_that_cannot_be_had_refuses() {
    let bench = Bench::new();
    let mut request = bench.request("touch started", FenceChoice::Cgroup);
    request.cwd = "/".into();
    let mut command = bench.command();
    if rustix::process::geteuid().is_root() {
        for path in [bench.dir.path().to_owned(), bench.runs()] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
                .expect("mode");
        }
        let shim = bench.dir.path().join("shim");
        std::fs::copy(crate::bench::SHIM, &shim).expect("copy");
        command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(shim);
        command.arg(bench.runs()).arg(&bench.enc);
    }
    let shim = Shim::start(command, &request);
    if shim.report == Some(ShimReport::Launched) {
        eprintln!("skipped: this user may make cgroups");
        return;
    }
    let Some(ShimReport::Refused { message }) = &shim.report else { panic!("{:?}", shim.report) };
    assert!(message.contains("cgroup"), "{message}");
    shim.wait();
    assert_eq!(bench.latch(), LatchState::Free);
    assert!(!bench.is_locked());
}

#[test]
fn the_agent_inherits_nothing() {
    for fence in fences() {
        let bench = Bench::new();
        // A descriptor that a careless host has left open for its children.
        let leak = std::fs::File::open("/proc/version").expect("file");
        let leak = rustix::io::fcntl_dupfd_cloexec(&leak, 50).expect("dup");
        rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).expect("setfd");
        let script = "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> .*/\\1/p'\n\
                      grep -E '^Sig(Ign|Blk)' /proc/self/status\n\
                      read -r pid _ _ ppid pgrp sid _ < /proc/$$/stat; [ $pid = $sid ] && echo session\n\
                      touch up; while ! [ -e go ]; do sleep 0.01; done";
        let mut command = bench.command();
        command.env("SECRET_OF_THE_HOST", "1");
        let shim = Shim::start(command, &bench.request(script, fence));
        bench.until_file("up");
        for pid in [shim.pid(), bench.keeper().pid] {
            let open: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| std::fs::read_link(entry.path()).ok())
                .collect();
            assert!(!open.iter().any(|path| path.ends_with("version")), "{pid}: {open:?}");
        }
        std::fs::write(bench.dir.path().join("go"), "").expect("go");
        let (printed, _) = bench.ended(shim);
        let expected = "0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nsession\n";
        assert_eq!(String::from_utf8_lossy(&printed), expected, "{fence:?}");
    }
}

#[test]
fn a_stop_at_any_moment_of_the_launch_ends_it() {
    for fence in fences() {
        for _ in 0..10 {
            let bench = Bench::new();
            let shim = bench.launch("while :; do sleep 1; done", fence);
            let before = now_ms();
            shim.signal(Signal::TERM);
            let (_, exit) = bench.ended(shim);
            assert_eq!((exit.exit, exit.signal), (143, Some(15)), "{fence:?}");
            assert!(now_ms() - before < 4_000, "{fence:?}: asked too early to be heard");
            assert!(bench.census().is_empty());
        }
    }
}
