//! What becomes of agents with the container around them.

use super::place::{Namespace, Place};
use super::survival::Verdict;
use super::unit;

const ADVICE: &str = "end no container with live runs (`outlast ps` lists them), or run outlast on the machine itself: \
                      docs/operations.md";

/// What ends agents besides their runs' own end: PID 1 of a PID namespace takes everything in it along.
pub fn judge(place: &Place) -> Verdict {
    match place.pid_namespace {
        Namespace::Machine => beside_the_machine(place),
        Namespace::Own => inside(place),
        Namespace::Unknown => Verdict::unknown(
            format!("/proc does not tell in which PID namespace this is{}", marks(place)),
            ADVICE.to_owned(),
        ),
    }
}

/// The PIDs are the machine's own: not in a container, or in one that shares them.
fn beside_the_machine(place: &Place) -> Verdict {
    let shared = |runtime: &str| {
        Verdict::die(
            format!(
                "in a container ({runtime}) that shares the machine's PIDs: whoever stops it kills every process of it, \
                 so the agents end with the container"
            ),
            ADVICE.to_owned(),
        )
    };
    let runtime = unit::path(&place.cgroup).and_then(unit::container);
    match (runtime, place.cgroup_namespace) {
        (Some(runtime), _) => shared(runtime),
        (None, Namespace::Own) if !place.marks.is_empty() => shared(place.marks[0]),
        (None, Namespace::Own) => Verdict::unknown(
            "whether this is a container: its PIDs are the machine's, its cgroups are not".to_owned(),
            ADVICE.to_owned(),
        ),
        // A machine whose file system was a container's image has its marks.
        (None, _) => Verdict::outlive("in no container: the PIDs are the machine's own".to_owned()),
    }
}

fn inside(place: &Place) -> Verdict {
    let init = place.init.as_deref().unwrap_or("a process");
    let marks = marks(place);
    let die = |what: String| {
        Verdict::die(
            format!("in a container{marks}: {what}, so the agents end with the container"),
            ADVICE.to_owned(),
        )
    };
    match (place.pid, place.parent) {
        (1, _) => {
            die("this program is its PID 1, and when that ends, the kernel kills every process".to_owned())
        }
        _ if init == "systemd" => Verdict::outlive(format!(
            "in a container{marks} with a systemd of its own: agents end when the whole of it is stopped"
        )),
        (_, 1) => die(format!("its PID 1, {init}, is this program's parent and usually ends with it")),
        (_, 0) => die("this program was started into it from outside and has no say over its end".to_owned()),
        _ => die(format!("its PID 1 is {init}, and when that ends, the kernel kills every process")),
    }
}

fn marks(place: &Place) -> String {
    if place.marks.is_empty() { String::new() } else { format!(" ({})", place.marks.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::super::place::tests::plain;
    use super::super::survival::Fate;
    use super::*;

    fn inside(pid: i32, parent: i32, init: &str) -> Place {
        let place = plain();
        Place {
            pid,
            parent,
            init: Some(init.to_owned()),
            pid_namespace: Namespace::Own,
            systemd: false,
            ..place
        }
    }

    fn beside(cgroup: &str, cgroup_namespace: Namespace, marks: &[&'static str]) -> Place {
        Place { cgroup: format!("0::{cgroup}\n"), cgroup_namespace, marks: marks.to_vec(), ..plain() }
    }

    #[test]
    fn containers_of_every_kind() {
        const MARK: &[&str] = &["/.dockerenv"];
        let unknown = Place { pid_namespace: Namespace::Unknown, marks: MARK.to_vec(), ..plain() };
        for (what, place, fate, says) in [
            ("a shell of the machine", plain(), Fate::Outlive, "no container"),
            (
                "a machine made from an image",
                beside("/", Namespace::Machine, MARK),
                Fate::Outlive,
                "no container",
            ),
            ("docker run", inside(1, 0, "outlast"), Fate::Die, "is its PID 1"),
            (
                "docker run --init",
                inside(7, 1, "docker-init"),
                Fate::Die,
                "docker-init, is this program's parent",
            ),
            ("docker exec", inside(30, 0, "sleep"), Fate::Die, "from outside"),
            ("a supervisor in a container", inside(30, 20, "s6-svscan"), Fate::Die, "s6-svscan"),
            ("a container with systemd", inside(30, 1, "systemd"), Fate::Outlive, "of its own"),
            (
                "--pid=host, cgroups shared",
                beside("/docker/01", Namespace::Machine, &[]),
                Fate::Die,
                "Docker",
            ),
            ("--pid=host, own cgroups", beside("/", Namespace::Own, MARK), Fate::Die, "/.dockerenv"),
            ("unshare --cgroup", beside("/", Namespace::Own, &[]), Fate::Unknown, "cgroups are not"),
            ("no /proc", unknown, Fate::Unknown, "/.dockerenv"),
        ] {
            let verdict = judge(&place);
            assert_eq!(verdict.fate, fate, "{what}: {verdict:?}");
            assert!(verdict.finding.contains(says), "{what}: {verdict:?}");
            assert_eq!(verdict.advice.is_some(), fate != Fate::Outlive, "{what}");
        }
    }
}
