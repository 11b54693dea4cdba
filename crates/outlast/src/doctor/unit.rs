//! What a path of a cgroup tells: the unit of systemd, or the container, that a process belongs to.

/// A unit that holds processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Whose systemd it belongs to; none: the machine's.
    pub user: Option<u32>,
}

impl Unit {
    /// Whether systemd started its processes, so that it also stops and restarts them.
    pub fn is_service(&self) -> bool {
        self.name.ends_with(".service")
    }

    /// Whether it is a log-in.
    pub fn is_session(&self) -> bool {
        self.user.is_none() && self.name.starts_with("session-") && self.name.ends_with(".scope")
    }
}

/// The path in the hierarchy that systemd keeps, given `/proc/PID/cgroup`: one that version 1 names, else that of
/// version 2.
pub fn path(cgroup: &str) -> Option<&str> {
    let line = |wanted: &str| {
        cgroup.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            (controllers == wanted).then_some(path)
        })
    };
    line("name=systemd").filter(|path| *path != "/").or_else(|| line(""))
}

/// The path as the systemd that is PID 1 sees it: in a container whose cgroups are not in a namespace of their own,
/// everything lies below the container's.
pub fn below_init<'a>(own: &'a str, init: &str) -> &'a str {
    let root = init.strip_suffix("/init.scope").unwrap_or_default();
    own.strip_prefix(root).filter(|rest| rest.starts_with('/')).unwrap_or(own)
}

/// The unit at the path.
pub fn unit(path: &str) -> Option<Unit> {
    let mut names = path.split('/').map(|name| name.strip_prefix('_').unwrap_or(name));
    let mut next = || {
        let name = names.find(|name| !name.is_empty() && !name.ends_with(".slice"))?;
        (name.ends_with(".service") || name.ends_with(".scope")).then(|| name.to_owned())
    };
    let name = next()?;
    let user = name.strip_prefix("user@").and_then(|rest| rest.strip_suffix(".service")?.parse().ok());
    match (user, name.as_str()) {
        (_, "init.scope") => None,
        (Some(uid), _) => match next() {
            Some(inner) => Some(Unit { name: inner, user: Some(uid) }),
            None => Some(Unit { name, user: None }),
        },
        (None, _) => Some(Unit { name, user: None }),
    }
}

/// What runs the container whose cgroup this is.
pub fn container(path: &str) -> Option<&'static str> {
    const ANYWHERE: &[(&str, &str)] = &[
        ("docker-", "Docker"),
        ("libpod-", "Podman"),
        ("cri-containerd-", "containerd"),
        ("crio-", "CRI-O"),
        ("kubepods", "Kubernetes"),
        ("lxc.payload", "LXC"),
    ];
    const FOLLOWED: &[(&str, &str)] = &[("docker", "Docker"), ("lxc", "LXC"), ("containerd", "containerd")];
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        // `docker-ID.scope`, but not `docker-proxy.service`.
        let found = ANYWHERE.iter().find(|(start, _)| name.starts_with(start) && !name.ends_with(".service"));
        let followed = FOLLOWED.iter().find(|(whole, _)| *whole == name && names.peek().is_some());
        if let Some((_, runtime)) = found.or(followed) {
            return Some(runtime);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_counts() {
        for (text, expected) in [
            ("0::/system.slice/outlast.service\n", Some("/system.slice/outlast.service")),
            ("9:name=systemd:/system.slice/a.service\n4:memory:/x\n0::/y\n", Some("/system.slice/a.service")),
            ("9:name=systemd:/\n0::/y\n", Some("/y")),
            ("9:name=systemd:/\n", None),
            ("4:memory:/x\n", None),
            ("0::/with:colon\n", Some("/with:colon")),
            ("", None),
        ] {
            assert_eq!(path(text), expected, "{text:?}");
        }
    }

    #[test]
    fn units() {
        let user = "/user.slice/user-1000.slice/user@1000.service";
        for (path, name, uid) in [
            ("/system.slice/outlast.service", "outlast.service", None),
            ("/system.slice/outlast.service/below", "outlast.service", None),
            ("/system.slice/system-outlast.slice/outlast@a.service", "outlast@a.service", None),
            ("/agents.slice/_outlast.service", "outlast.service", None),
            ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope", None),
            (&format!("{user}/app.slice/outlast.service"), "outlast.service", Some(1000)),
            (&format!("{user}/app.slice/app-term.slice/tab.scope"), "tab.scope", Some(1000)),
            (&format!("{user}/init.scope"), "init.scope", Some(1000)),
            (user, "user@1000.service", None),
        ] {
            assert_eq!(unit(path), Some(Unit { name: name.to_owned(), user: uid }), "{path}");
        }
        for path in ["/", "", "/init.scope", "/system.slice", "/docker/0123", "/process_api/66da"] {
            assert_eq!(unit(path), None, "{path}");
        }
        let of = |path: &str| unit(path).expect("a unit");
        assert!(of("/user.slice/session-3.scope").is_session());
        assert!(!of(&format!("{user}/session-3.scope")).is_session());
        assert!(!of("/a.slice/run-1.scope").is_session() && !of("/a.slice/run-1.scope").is_service());
    }

    #[test]
    fn paths_below_a_container_of_systemd() {
        for (own, init, expected) in [
            ("/lxc/a/system.slice/o.service", "/lxc/a/init.scope", "/system.slice/o.service"),
            ("/system.slice/o.service", "/init.scope", "/system.slice/o.service"),
            ("/system.slice/o.service", "/", "/system.slice/o.service"),
            ("/lxc/ab/o.service", "/lxc/a/init.scope", "/lxc/ab/o.service"),
        ] {
            assert_eq!(below_init(own, init), expected, "{own} {init}");
        }
    }

    #[test]
    fn containers() {
        for (path, runtime) in [
            ("/docker/0123abcd", Some("Docker")),
            ("/system.slice/docker-0123.scope", Some("Docker")),
            ("/machine.slice/libpod-0123.scope/container", Some("Podman")),
            ("/kubepods/burstable/pod1/0123", Some("Kubernetes")),
            ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-0123.scope", Some("Kubernetes")),
            ("/system.slice/crio-0123.scope", Some("CRI-O")),
            ("/lxc/a", Some("LXC")),
            ("/lxc.payload.a/system.slice", Some("LXC")),
            ("/system.slice/docker.service", None),
            ("/system.slice/docker-proxy.service", None),
            ("/system.slice/containerd.service", None),
            ("/docker", None),
            ("/", None),
        ] {
            assert_eq!(container(path), runtime, "{path}");
        }
    }
}
