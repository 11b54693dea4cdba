//! What agents outlive: a service of systemd, a container. No systemd is started: what `systemctl` answers is scripted,
//! but the cgroup and the PID namespace are real.

use std::fs;
use std::io::{Read, Write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use outlast_shim::fence::cgroup::memory_places;
use rustix::process::Signal;

use super::report::Report;
use crate::support::{Bench, Marker, Proc, eventually, skipped};

/// The kernel's number of the PID namespace that the machine booted with.
const OF_THE_MACHINE: u64 = 0xEFFF_FFFC;

/// A cgroup with the name of a service, removed when dropped.
struct Service {
    slice: PathBuf,
}

impl Service {
    /// None, visibly, where none can be made or entered, or the test runs in a container.
    fn new(bench: &Bench) -> Option<Service> {
        let inode = fs::metadata("/proc/self/ns/pid").expect("namespace").st_ino();
        if inode != OF_THE_MACHINE {
            skipped("units of systemd: the test runs in a container");
            return None;
        }
        let text = |path: &str| fs::read_to_string(path).expect("/proc");
        let [place, _] = memory_places(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
        let name = bench.path().file_name().expect("name").to_string_lossy().into_owned();
        let slice = place.map(|place| place.mount.join(format!("{name}.slice")));
        let made = slice.clone().and_then(|slice| fs::create_dir_all(slice.join("outlast.service")).ok());
        let (Some(slice), Some(())) = (slice, made) else {
            skipped("units of systemd: no cgroup (v2) can be made");
            return None;
        };
        let service = Service { slice };
        match service.command(bench, &["--version"]).output() {
            Ok(output) if output.status.success() => Some(service),
            other => {
                skipped(&format!("units of systemd: a process cannot be put into one: {other:?}"));
                None
            }
        }
    }

    fn cgroup(&self) -> PathBuf {
        self.slice.join("outlast.service")
    }

    /// The program in that cgroup, on a machine that says that systemd manages it.
    fn command(&self, bench: &Bench, args: &[&str]) -> Command {
        let outlast = bench.command(args);
        // A file system of its own only for this process: what others see in /run stays.
        let script = "mount -t tmpfs none /run && mkdir -p /run/systemd/system && echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(self.cgroup()).arg(outlast.get_program());
        command.args(outlast.get_args()).current_dir(bench.path());
        for (name, value) in outlast.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let path = std::env::var("PATH").expect("PATH");
        command.env("PATH", format!("{}:{path}", bench.path().display()));
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for cgroup in [self.cgroup(), self.slice.clone()] {
            if !std::thread::panicking() {
                eventually("an empty cgroup", || fs::remove_dir(&cgroup).ok());
            }
        }
    }
}

/// A `systemctl` that writes down what it was asked, and then does this.
fn systemctl(bench: &Bench, then: &str) {
    let script = format!("#!/bin/sh\necho \"$@\" >> {}/asked\n{then}\n", bench.path().display());
    let file = bench.path().join("systemctl");
    fs::write(&file, script).expect("systemctl");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("mode");
}

fn says(kill_mode: &str) -> String {
    format!("printf 'LoadState=loaded\\nKillMode={kill_mode}\\nSendSIGKILL=yes\\nPrivateTmp=no\\n'")
}

fn asked(bench: &Bench) -> Option<String> {
    fs::read_to_string(bench.path().join("asked")).ok()
}

#[test]
fn how_the_service_is_stopped() {
    let bench = Bench::new();
    let Some(service) = Service::new(&bench) else { return };
    for (then, level, finding) in [
        (
            says("control-group"),
            "warning",
            "KillMode=control-group: a stop or restart of outlast.service ends every",
        ),
        (says("mixed"), "warning", "KillMode=mixed: "),
        (says("process"), "ok", "KillMode=process: "),
        (
            "printf 'LoadState=not-found\\nKillMode=control-group\\n'".to_owned(),
            "warning",
            "could not tell: ",
        ),
        ("echo 'Failed to connect to bus' >&2; exit 1".to_owned(), "warning", "could not tell: "),
        ("exec sleep 60".to_owned(), "warning", "could not tell: "),
    ] {
        systemctl(&bench, &then);
        let proc = Proc::new(service.command(&bench, &["doctor", "--json"]).spawn().expect("spawn"));
        let finished = proc.finish();
        let report = Report::of(&finished);
        let (found_level, found, advice) = report.check("service");
        assert_eq!(found_level, level, "{then}: {found}");
        assert!(found.starts_with(finding), "{then}: {found}");
        assert_eq!(advice.contains("KillMode"), level != "ok", "{advice}");
    }
    let asked = asked(&bench).expect("asked");
    let question =
        "--system --no-pager show --property=LoadState,KillMode,SendSIGKILL,PrivateTmp -- outlast.service";
    assert!(asked.lines().all(|line| line == question), "{asked}");
}

#[test]
fn a_service_that_runs_meanwhile_is_looked_at_from_a_terminal() {
    let bench = Bench::new();
    let Some(service) = Service::new(&bench) else { return };
    systemctl(&bench, &says("control-group"));
    let mut serve = Proc::new(
        service.command(&bench, &["serve", "--listen", "127.0.0.1:0", "--json"]).spawn().expect("spawn"),
    );
    serve.wait_for("listening");
    // This one is not in the unit.
    let mut doctor = Command::new("unshare");
    let script = "mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec \"$0\" doctor --json";
    doctor.args(["--mount", "sh", "-c", script]).arg(env!("CARGO_BIN_EXE_outlast"));
    doctor.env("OUTLAST_DATA_DIR", bench.data_dir()).current_dir(bench.path());
    doctor.env("PATH", format!("{}:{}", bench.path().display(), std::env::var("PATH").expect("PATH")));
    let output = doctor.output().expect("doctor");
    let finished = crate::support::Finished {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let report = Report::of(&finished);
    let (level, finding, _) = report.about("service", Some("outlast.service"));
    assert_eq!(level, "warning", "{finding}");
    assert!(
        finding.contains(&format!("({})", serve.pid())) && finding.contains("KillMode=control-group"),
        "{finding}"
    );
    serve.signal(Signal::TERM);
    assert_eq!(serve.finish().code(), 0);
}

#[test]
fn serve_warns_once_where_agents_would_end_with_the_service() {
    for (kill_mode, warnings) in [("control-group", 1), ("process", 0)] {
        let bench = Bench::new();
        let Some(service) = Service::new(&bench) else { return };
        systemctl(&bench, &says(kill_mode));
        let mut command = service.command(&bench, &["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut serve = Proc::new(command.spawn().expect("spawn"));
        serve.wait_for("listening");
        let count = |text: &str| text.matches("KillMode=").count().min(text.matches("WARN").count());
        if warnings == 0 {
            eventually("the question to systemd", || asked(&bench));
        } else {
            eventually("the warning", || (count(&serve.stderr()) > 0).then_some(()));
        }
        serve.signal(Signal::TERM);
        let finished = serve.finish();
        let lines = finished.stderr.lines().filter(|line| line.contains("WARN")).count();
        assert_eq!((finished.code(), lines), (0, warnings), "{kill_mode}: {}", finished.stderr);
    }
}

#[test]
fn serve_answers_while_systemd_does_not() {
    let bench = Bench::new();
    let Some(service) = Service::new(&bench) else { return };
    // It never answers by itself and is given up after two seconds, which a slow machine may take for the request: then
    // this shows nothing, and is tried again.
    systemctl(&bench, "echo $$ > pid; while :; do sleep 0.02; done");
    let shown = (0..5).any(|_| {
        let mut command = service.command(&bench, &["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut serve = Proc::new(command.spawn().expect("spawn"));
        serve.wait_for("listening");
        let pid = eventually("the question to systemd", || {
            fs::read_to_string(bench.path().join("pid")).ok().filter(|pid| pid.ends_with('\n'))
        });
        assert!(health(&serve.stdout()).starts_with("HTTP/1.1 200"));
        let waits = fs::exists(format!("/proc/{}", pid.trim())).expect("/proc");
        serve.signal(Signal::TERM);
        assert_eq!(serve.finish().code(), 0);
        fs::remove_file(bench.path().join("pid")).expect("pid");
        // A `systemctl` whose server has ended goes on until it is killed.
        let _ = Command::new("kill").args(["-9", pid.trim()]).output();
        waits
    });
    assert!(shown, "in five tries nothing was served while systemctl was at work");
}

/// What `/health` of the server that has announced itself answers.
fn health(announced: &str) -> String {
    let announced: serde_json::Value =
        serde_json::from_str(announced.lines().next().expect("a line")).expect("json");
    let address =
        announced["listening"].as_str().expect("listening").trim_start_matches("http://").to_owned();
    let mut stream = std::net::TcpStream::connect(&address).expect("connect");
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answer");
    answer
}

/// The program as PID 1 of a PID namespace, as in a container; it ends with what is returned.
fn in_a_container(bench: &Bench, args: &[&str]) -> Option<Command> {
    let mut command = bench.command(args);
    let wrapped = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let allowed = Command::new("unshare").args(wrapped).arg("true").output();
    if !allowed.as_ref().is_ok_and(|output| output.status.success()) {
        skipped(&format!("containers: no PID namespace can be made: {allowed:?}"));
        return None;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(wrapped).arg(command.get_program()).args(command.get_args()).current_dir(bench.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    unshare.stdin(std::process::Stdio::null());
    unshare.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command = unshare;
    Some(command)
}

#[test]
fn a_container_ends_its_agents() {
    let bench = Bench::new();
    let Some(mut doctor) = in_a_container(&bench, &["doctor", "--json"]) else { return };
    let finished = Proc::new(doctor.spawn().expect("spawn")).finish();
    let report = Report::of(&finished);
    let (level, finding, advice) = report.check("container");
    assert_eq!(level, "warning");
    assert!(finding.contains("this program is its PID 1"), "{finding}");
    assert!(advice.contains("docs/operations.md"), "{advice}");

    let Some(mut serve) = in_a_container(&bench, &["serve", "--listen", "127.0.0.1:0", "--json"]) else {
        return;
    };
    let serve = Proc::new(serve.spawn().expect("spawn"));
    eventually("the warning", || {
        let stderr = serve.stderr();
        stderr
            .lines()
            .any(|line| line.contains("WARN") && line.contains("end with the container"))
            .then_some(())
    });
    serve.kill9();

    // What it says is so: a shim is in a session of its own, and yet dies with PID 1.
    let marker = Marker::new("container");
    let agent = format!(": {}; echo up; while :; do sleep 0.05; done", marker.0);
    let Some(mut run) = in_a_container(&bench, &["run", "--run-id", "r", "--", "sh", "-c", &agent]) else {
        return;
    };
    let mut run = Proc::new(run.spawn().expect("spawn"));
    run.wait_for("up");
    assert!(!marker.alive().is_empty());
    run.kill9();
    marker.wait_until_gone(std::time::Duration::from_secs(20));
}
