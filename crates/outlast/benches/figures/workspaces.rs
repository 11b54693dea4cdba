//! Snapshots of workspaces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::machine::{Place, timed};
use crate::report::figure;

const FILES: usize = 10_000;
const TREE_BYTES: usize = 500 << 20;

/// Ten thousand files of 500 MB, half of it as good as random, in a hundred directories.
fn make_tree(root: &Path) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let size = TREE_BYTES / FILES;
    for n in 0..FILES {
        let dir = root.join(format!("d{}", n % 100));
        fs::create_dir_all(&dir).expect("directory");
        fs::write(dir.join(format!("f{n}")), content(&mut state, size)).expect("file");
    }
}

fn content(state: &mut u64, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
        bytes.extend_from_slice(b"        ");
    }
    bytes.truncate(size);
    bytes
}

fn change(root: &Path, part: usize) {
    let mut state = 0xD1B5_4A32_D192_ED03_u64;
    for n in (0..FILES).step_by(part) {
        let path = root.join(format!("d{}/f{n}", n % 100));
        fs::write(path, content(&mut state, TREE_BYTES / FILES)).expect("file");
    }
}

/// None pays for what the one before has written and not waited for.
fn run(command: &mut Command) -> Duration {
    rustix::fs::sync();
    let (status, took) =
        timed(|| command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("runs"));
    assert!(status.success(), "{command:?}: {status}");
    took
}

/// A tree's first snapshot, the same again, and with one file in a hundred changed: side by side with what people use.
pub fn workspaces() {
    let place = Place::new();
    let tree = place.path().join("tree");
    make_tree(&tree);
    let archive = place.path().join("tree.tar.zst");
    let tar = || {
        let script = format!(
            "tar -C {} -cf - . | zstd -q -3 -T0 -f -o {1} && sync {1}",
            tree.display(),
            archive.display()
        );
        run(Command::new("sh").args(["-c", &script]))
    };
    let restic = Command::new("restic").arg("version").output().is_ok();
    let repository = place.path().join("restic");
    let backup = || {
        run(Command::new("restic")
            .args(["backup", "--quiet", "-r"])
            .args([&repository, &tree])
            .env("RESTIC_PASSWORD", "x")
            .env("RESTIC_CACHE_DIR", place.path().join("restic-cache")))
    };
    if restic {
        run(Command::new("restic")
            .args(["init", "--quiet", "-r"])
            .arg(&repository)
            .env("RESTIC_PASSWORD", "x"));
    }
    // By the program, its start included, as the others are.
    let checkpoint = || {
        let dir = tree.to_str().expect("utf-8");
        run(&mut place.outlast(["workspace", "checkpoint", "bench", "--dir", dir]))
    };
    for (what, aim) in [("first", ""), ("unchanged", "<= 0.3 s"), ("1 % changed", "")] {
        if what == "1 % changed" {
            change(&tree, 100);
        }
        figure(
            &format!("workspace of 10000 files, 500 MB, {what}: checkpoint"),
            checkpoint().as_secs_f64(),
            "s",
            aim,
        );
        figure(&format!("    {what}: tar | zstd -3, then sync"), tar().as_secs_f64(), "s", "");
        if restic {
            figure(&format!("    {what}: restic backup"), backup().as_secs_f64(), "s", "");
        }
    }
    let into = place.path().join("restored");
    let reference =
        place.outlast(["workspace", "checkpoint", "bench", "--dir", tree.to_str().expect("utf-8")]);
    let mut reference = reference;
    let printed = reference.stderr(Stdio::null()).output().expect("runs").stdout;
    let reference = String::from_utf8(printed).expect("text");
    let restore =
        ["workspace", "restore", "bench", reference.trim(), "--into", into.to_str().expect("utf-8")];
    figure("    restore", run(&mut place.outlast(restore)).as_secs_f64(), "s", "");
}
