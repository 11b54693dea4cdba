//! The unit that is shipped for systemd.

use std::fs;
use std::process::Command;

use super::report::Report;
use crate::support::{Ordinary, skipped};

const UNIT: &str = include_str!("../../../../../dist/systemd/outlast.service");

/// The values of a key of `[Service]`.
fn values(key: &str) -> Vec<&'static str> {
    let section =
        UNIT.split_once("[Service]\n").expect("section").1.split_once("\n[Install]").expect("end").0;
    section.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn agents_outlive_it() {
    for (key, value) in [
        ("KillMode", "process"),
        ("OOMPolicy", "continue"),
        ("Restart", "always"),
        ("SendSIGKILL", "yes"),
        ("Delegate", "yes"),
    ] {
        assert_eq!(values(key), [value], "{key}");
    }
    // Each of these ends agents at a restart, takes a fence away, or lets an agent see other processes.
    for key in [
        "DynamicUser",
        "PrivateTmp",
        "RestrictNamespaces",
        "ProtectControlGroups",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "ProcSubset",
        "RuntimeMaxSec",
        "ExecStopPost",
    ] {
        assert_eq!(values(key), [""; 0], "{key}");
    }
}

#[test]
fn it_starts_what_there_is() {
    let [start] = values("ExecStart")[..] else { panic!("one ExecStart") };
    let mut words = start.split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/outlast"));
    let command: Vec<&str> = words.collect();
    assert_eq!(command, ["serve"]);
    let known =
        Command::new(env!("CARGO_BIN_EXE_outlast")).args(&command).arg("--help").output().expect("help");
    assert!(known.status.success(), "{known:?}");
    // Where the state is said to be is where systemd makes it.
    assert_eq!(values("StateDirectory"), ["outlast"]);
    assert_eq!(values("Environment"), ["OUTLAST_DATA_DIR=/var/lib/outlast"]);
}

#[test]
fn systemd_understands_it() {
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("outlast.service");
    // The program must be there.
    fs::write(&file, UNIT.replace("/usr/local/bin/outlast", env!("CARGO_BIN_EXE_outlast"))).expect("unit");
    let verified = match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("systemd-analyze cannot be started: {error}")),
    };
    // Keys that it does not know it only tells.
    let told = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && told.trim().is_empty(), "{told}");
}

/// What the unit takes from the service is taken from its agents too; they get the same fence, and see only themselves.
#[test]
fn its_hardening_breaks_no_fence() {
    let Some(ordinary) = Ordinary::new() else { return };
    assert_eq!(values("NoNewPrivileges"), ["yes"]);
    assert_eq!(values("CapabilityBoundingSet"), [""]);
    let bench = ordinary.bench("");
    let agent = ["run", "--", "sh", "-c", "ls /proc | grep -c '^[0-9]'"];
    let seen = |args: &[&str], wrap: &[&str]| {
        let plain = bench.command(args);
        let mut words = plain.get_args().map(ToOwned::to_owned).collect::<Vec<_>>();
        let at = words.iter().position(|word| word == "--").expect("the end of setpriv's arguments");
        words.splice(at..at, wrap.iter().map(Into::into));
        let mut command = Command::new(plain.get_program());
        command.args(words).current_dir(bench.path()).env("OUTLAST_DATA_DIR", bench.data_dir());
        let output = command.output().expect("output");
        crate::support::Finished {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    };
    let hardened = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"];
    let fence = |wrap: &[&str]| Report::of(&seen(&["doctor", "--json"], wrap)).check("fence").1.to_owned();
    assert_eq!(fence(&hardened), fence(&[]));
    assert_eq!(seen(&agent, &hardened).ok(), seen(&agent, &[]).ok(), "the processes that an agent sees");
}
