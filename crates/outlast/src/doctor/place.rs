//! Where a process of Outlast lives: facts of `/proc` and of its environment.

use std::path::Path;

use super::unit::{self, Unit};

/// Which namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// The one that the machine booted with.
    Machine,
    /// Another one.
    Own,
    /// `/proc` does not tell.
    Unknown,
}

/// The kernel gives the namespaces that it boots with fixed numbers (`PROC_PID_INIT_INO`, `PROC_CGROUP_INIT_INO`).
const PID_NAMESPACE: u64 = 0xEFFF_FFFC;
const CGROUP_NAMESPACE: u64 = 0xEFFF_FFFB;

/// What is known of this process's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As its PID namespace counts.
    pub pid: i32,
    /// Its parent; 0 where that is outside of the namespace.
    pub parent: i32,
    /// The user.
    pub uid: u32,
    /// The name of PID 1.
    pub init: Option<String>,
    /// `/proc/self/cgroup`.
    pub cgroup: String,
    /// The same of PID 1.
    pub init_cgroup: String,
    pub pid_namespace: Namespace,
    pub cgroup_namespace: Namespace,
    /// What containers leave in their file systems and environments.
    pub marks: Vec<&'static str>,
    /// Whether systemd manages the machine or the container that this process sees.
    pub systemd: bool,
    /// Whether systemd says that it started this very process.
    pub started_by_systemd: bool,
}

impl Place {
    /// Of this process.
    pub fn of_this_process() -> Place {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let mut marks: Vec<&'static str> = ["/.dockerenv", "/run/.containerenv"]
            .into_iter()
            .filter(|path| Path::new(path).exists())
            .collect();
        let variables = ["KUBERNETES_SERVICE_HOST", "container"];
        marks.extend(variables.into_iter().filter(|name| std::env::var_os(name).is_some()));
        let init = Some(text("/proc/1/comm").trim_end().to_owned()).filter(|name| !name.is_empty());
        let exec_pid = std::env::var("SYSTEMD_EXEC_PID").ok().and_then(|pid| pid.parse().ok());
        Place {
            pid,
            parent: rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
            uid: rustix::process::geteuid().as_raw(),
            systemd: init.as_deref() == Some("systemd") || Path::new("/run/systemd/system").is_dir(),
            init,
            cgroup: text("/proc/self/cgroup"),
            init_cgroup: text("/proc/1/cgroup"),
            pid_namespace: namespace("/proc/self/ns/pid", PID_NAMESPACE),
            cgroup_namespace: namespace("/proc/self/ns/cgroup", CGROUP_NAMESPACE),
            marks,
            started_by_systemd: exec_pid == Some(pid),
        }
    }

    /// Whether the systemd whose units the cgroups name can be asked: in a container that has none of its own they are
    /// those of the machine around it.
    pub fn has_systemd(&self) -> bool {
        self.systemd && (self.pid_namespace != Namespace::Own || self.init.as_deref() == Some("systemd"))
    }

    /// The unit of the process with this `/proc/PID/cgroup`.
    pub fn unit_of(&self, cgroup: &str) -> Option<Unit> {
        if !self.has_systemd() {
            return None;
        }
        let init = unit::path(&self.init_cgroup).unwrap_or("/");
        unit::unit(unit::below_init(unit::path(cgroup)?, init))
    }
}

fn namespace(link: &str, of_the_machine: u64) -> Namespace {
    match rustix::fs::stat(link) {
        Ok(facts) if facts.st_ino == of_the_machine => Namespace::Machine,
        Ok(_) => Namespace::Own,
        Err(_) => Namespace::Unknown,
    }
}

/// `/proc/PID/cgroup` of every other process that is `outlast serve`.
pub fn serving() -> Vec<(i32, String)> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != own)
        .filter_map(|pid| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
            is_serve(&arguments).then_some((pid, cgroup))
        })
        .collect()
}

/// Whether `/proc/PID/cmdline` is that of `outlast serve`.
fn is_serve(arguments: &[u8]) -> bool {
    let mut arguments = arguments.split(|byte| *byte == 0);
    let program = arguments.next().unwrap_or_default();
    let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name == b"outlast" && arguments.any(|argument| argument == b"serve")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A process that a shell of the machine started.
    pub fn plain() -> Place {
        Place {
            pid: 500,
            parent: 400,
            uid: 1000,
            init: Some("systemd".to_owned()),
            cgroup: "0::/\n".to_owned(),
            init_cgroup: "0::/init.scope\n".to_owned(),
            pid_namespace: Namespace::Machine,
            cgroup_namespace: Namespace::Machine,
            marks: Vec::new(),
            systemd: true,
            started_by_systemd: false,
        }
    }

    #[test]
    fn units_are_those_of_a_systemd_that_can_be_asked() {
        let cgroup = "0::/system.slice/outlast.service\n";
        let name = |place: &Place| place.unit_of(cgroup).map(|unit| unit.name);
        assert_eq!(name(&plain()).as_deref(), Some("outlast.service"));
        assert_eq!(name(&Place { systemd: false, ..plain() }), None);
        let inside = Place { pid_namespace: Namespace::Own, ..plain() };
        assert_eq!(
            name(&inside).as_deref(),
            Some("outlast.service"),
            "a container with a systemd of its own"
        );
        let without = Place { init: Some("sh".to_owned()), ..inside };
        assert_eq!(name(&without), None, "the machine's unit, which cannot be asked from here");
    }

    #[test]
    fn servers_by_their_arguments() {
        for (arguments, expected) in [
            (&b"/usr/local/bin/outlast\0serve\0"[..], true),
            (b"outlast\0--data-dir\0/x\0serve\0--json\0", true),
            (b"outlast\0run\0", false),
            (b"outlast\0__shim\0/x\0serve-1\0", false),
            (b"vim\0serve\0", false),
            (b"", false),
        ] {
            assert_eq!(is_serve(arguments), expected, "{}", String::from_utf8_lossy(arguments));
        }
    }

    #[test]
    fn this_process_has_a_place() {
        let place = Place::of_this_process();
        assert!(place.pid > 0 && place.parent >= 0 && place.init.is_some(), "{place:?}");
        assert_ne!(place.pid_namespace, Namespace::Unknown);
    }
}
