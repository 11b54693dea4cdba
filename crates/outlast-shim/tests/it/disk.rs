//! Full disks: a small file system of its own, where the tests may mount one.

use std::path::PathBuf;

use outlast_core::ErrorCode;
use outlast_core::journal::files;
use outlast_core::journal::latch::LatchState;
use outlast_core::shim::{FenceChoice, ShimReport};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::bench::{Bench, now_ms, until};

/// A runs directory of 256 KiB.
struct Small(PathBuf);

impl Small {
    fn mount(bench: &Bench) -> Option<Small> {
        let mounted =
            rustix::mount::mount("none", bench.runs(), "tmpfs", MountFlags::empty(), Some(c"size=256k"));
        match mounted {
            Ok(()) => Some(Small(bench.runs())),
            Err(error) => {
                eprintln!("skipped: cannot mount a small file system: {error}");
                None
            }
        }
    }

    fn fill(&self) {
        let filler = std::fs::File::create(self.0.join("filler")).expect("filler");
        let full = std::io::copy(&mut std::io::repeat(0), &mut &filler).expect_err("must become full");
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn clear(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("clear");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_disk_that_stays_full_ends_the_run_and_the_exit_is_recorded() {
    let bench = Bench::new();
    let Some(_small) = Small::mount(&bench) else { return };
    let before = now_ms();
    let shim = bench.launch("setsid sleep 1000 & yes", FenceChoice::Auto);
    shim.wait();
    let took = now_ms() - before;
    assert!((9_000..20_000).contains(&took), "{took} ms");
    let record = bench.exit().expect("the exit file has its block since before the launch");
    let cause = record.cause.expect("cause");
    assert_eq!((record.exit, cause.code), (137, ErrorCode::OutputLimit));
    assert!(cause.message.contains("full") && cause.message.contains("No space left"), "{}", cause.message);
    let journal = std::fs::metadata(bench.file(files::JOURNAL)).expect("journal").len();
    assert!(record.stdout_bytes > 0 && record.stdout_bytes <= journal);
    assert!(bench.census().is_empty());
}

#[test]
fn a_disk_that_gets_room_again_loses_nothing() {
    let bench = Bench::new();
    let Some(small) = Small::mount(&bench) else { return };
    let script = "touch up; while ! [ -e go ]; do sleep 0.01; done; seq 1 30000; touch printed";
    let shim = bench.launch(script, FenceChoice::Auto);
    bench.until_file("up");
    small.fill();
    std::fs::write(bench.dir.path().join("go"), "").expect("go");
    // The agent stands still: what it prints is more than a pipe holds.
    let held = now_ms();
    until("a second without room", || now_ms() > held + 1_000);
    assert!(!bench.dir.path().join("printed").exists());
    small.clear();
    let (printed, record) = bench.ended(shim);
    let expected: String = (1..=30_000).map(|n| format!("{n}\n")).collect();
    assert!(printed == expected.as_bytes(), "{} of {}", printed.len(), expected.len());
    assert_eq!((record.exit, record.cause), (0, None));
}

#[test]
fn a_stop_does_not_wait_for_a_full_disk() {
    let bench = Bench::new();
    let Some(small) = Small::mount(&bench) else { return };
    let shim = bench.launch("touch up; while ! [ -e go ]; do sleep 0.01; done; yes", FenceChoice::Auto);
    bench.until_file("up");
    small.fill();
    std::fs::write(bench.dir.path().join("go"), "").expect("go");
    let before = now_ms();
    until("bytes that wait", || now_ms() > before + 500);
    shim.signal(rustix::process::Signal::TERM);
    shim.wait();
    assert!(now_ms() - before < 5_000);
    assert_eq!(bench.exit().expect("exit").exit, 143);
}

#[test]
fn a_full_disk_before_the_launch_is_a_refusal() {
    let bench = Bench::new();
    let Some(small) = Small::mount(&bench) else { return };
    small.fill();
    let shim = bench.start(&bench.request("touch started", FenceChoice::Auto));
    assert!(matches!(shim.report, Some(ShimReport::Refused { .. })), "{:?}", shim.report);
    shim.wait();
    assert_eq!(bench.latch(), LatchState::Free);
    small.clear();
    let (_, record) = bench.ended(bench.launch("true", FenceChoice::Auto));
    assert_eq!(record.exit, 0, "another attempt succeeds");
}
