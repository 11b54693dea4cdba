//! The memory that agents share with this program.

use std::path::{Path, PathBuf};

use outlast_shim::fence::cgroup::{Place, memory_places};

use super::check::{Check, show_bytes};

/// A limit of a cgroup that holds this program and its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    pub bytes: u64,
    /// Where it is set.
    pub cgroup: PathBuf,
    /// Whether the kernel kills every process of the cgroup where the memory does not suffice, and not just one.
    pub kills_all: bool,
}

/// From this size on a limit of version 1 is none.
const ENDLESS: u64 = 1 << 60;

/// The smallest limit at or above the places of version 2 and version 1; the error: neither shows any.
fn smallest(
    [unified, legacy]: &[Option<Place>; 2],
    read: impl Fn(&Path) -> Option<String>,
) -> Result<Option<Limit>, ()> {
    let (mut limits, mut known) = (Vec::new(), false);
    let mut kills_all = false;
    for cgroup in above(unified.as_ref()) {
        kills_all |= read(&cgroup.join("memory.oom.group")).is_some_and(|text| text.trim() == "1");
        // The root of all has no such file.
        if let Some(text) = read(&cgroup.join("memory.max")) {
            known = true;
            if let Ok(bytes) = text.trim().parse() {
                limits.push(Limit { bytes, cgroup: cgroup.to_owned(), kills_all });
            }
        } else if unified.as_ref().is_some_and(|place| place.mount == cgroup) {
            known |= read(&cgroup.join("cgroup.controllers")).is_some_and(|text| text.contains("memory"));
        }
    }
    for cgroup in above(legacy.as_ref()) {
        let bytes = read(&cgroup.join("memory.limit_in_bytes")).and_then(|text| text.trim().parse().ok());
        known |= bytes.is_some();
        if let Some(bytes) = bytes.filter(|bytes| *bytes < ENDLESS) {
            limits.push(Limit { bytes, cgroup: cgroup.to_owned(), kills_all: false });
        }
    }
    if known { Ok(limits.into_iter().min_by_key(|limit| limit.bytes)) } else { Err(()) }
}

/// The cgroup and those above it, as far as they are shown.
fn above(place: Option<&Place>) -> impl Iterator<Item = &Path> {
    place.into_iter().flat_map(|place| {
        place.directory.ancestors().take_while(|directory| directory.starts_with(&place.mount))
    })
}

/// Looks at this process's cgroups.
pub fn check() -> Check {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let places = memory_places(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
    judge(smallest(&places, |path| std::fs::read_to_string(path).ok()))
}

fn judge(limit: Result<Option<Limit>, ()>) -> Check {
    match limit {
        Err(()) => {
            Check::unknown("memory", "no cgroup shows a limit of this process's memory, nor that it has none")
        }
        Ok(None) => Check::ok("memory", "no limit: agents share the machine's memory with everything on it"),
        Ok(Some(Limit { bytes, cgroup, kills_all })) => {
            let (size, cgroup) = (show_bytes(bytes), cgroup.display());
            let kills = if kills_all {
                "the kernel kills all of them at once (memory.oom.group)"
            } else {
                "the kernel kills one of them, an agent or this program"
            };
            Check::warning(
                "memory",
                format!("agents and this program share {size} ({cgroup}): when it is used up, {kills}"),
                "give it room for as many agents as work at once ([serve] max_runs bounds them)",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::check::Level;
    use super::*;

    fn place(mount: &str, directory: &str) -> Option<Place> {
        Some(Place { mount: mount.into(), directory: directory.into() })
    }

    #[test]
    fn the_smallest_limit_counts() {
        let unified = [place("/c", "/c/a/b"), None];
        let legacy = [None, place("/m", "/m/a")];
        let root = [place("/c", "/c"), None];
        for (what, places, files, expected) in [
            ("nothing is shown", &unified, &[][..], Err(())),
            ("no hierarchy", &[None, None], &[("/c/a/memory.max", "1")][..], Err(())),
            ("the root without the controller", &root, &[("/c/cgroup.controllers", "cpu")][..], Err(())),
            ("the root", &root, &[("/c/cgroup.controllers", "cpu memory")][..], Ok(None)),
            ("none", &unified, &[("/c/a/b/memory.max", "max\n"), ("/c/a/memory.max", "max\n")][..], Ok(None)),
            (
                "above",
                &unified,
                &[("/c/a/b/memory.max", "max"), ("/c/a/memory.max", "4096\n")][..],
                Ok(Some((4096, "/c/a", false))),
            ),
            (
                "two",
                &unified,
                &[("/c/a/b/memory.max", "10"), ("/c/a/memory.max", "20")][..],
                Ok(Some((10, "/c/a/b", false))),
            ),
            (
                "all at once",
                &unified,
                &[("/c/a/b/memory.oom.group", "1\n"), ("/c/a/memory.max", "20")][..],
                Ok(Some((20, "/c/a", true))),
            ),
            (
                "all at once, but further up than the limit",
                &unified,
                &[("/c/a/memory.oom.group", "1"), ("/c/a/b/memory.max", "20"), ("/c/a/memory.max", "30")][..],
                Ok(Some((20, "/c/a/b", false))),
            ),
            ("not beyond the mount", &root, &[("/memory.max", "1"), ("/c/memory.max", "max")][..], Ok(None)),
            (
                "version 1",
                &legacy,
                &[("/m/a/memory.limit_in_bytes", "7\n")][..],
                Ok(Some((7, "/m/a", false))),
            ),
            (
                "version 1, none",
                &legacy,
                &[("/m/a/memory.limit_in_bytes", "9223372036854771712")][..],
                Ok(None),
            ),
        ] {
            let files: BTreeMap<&str, &str> = files.iter().copied().collect();
            let found = smallest(places, |path| files.get(path.to_str()?).map(|text| (*text).to_owned()));
            let expected = expected.map(|limit| {
                limit.map(|(bytes, cgroup, kills_all): (u64, &str, bool)| Limit {
                    bytes,
                    cgroup: cgroup.into(),
                    kills_all,
                })
            });
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn a_limit_is_worth_a_warning() {
        let limit = |kills_all| Ok(Some(Limit { bytes: 2 << 30, cgroup: "/c".into(), kills_all }));
        assert_eq!(judge(Ok(None)).level, Level::Ok);
        assert_eq!(judge(Err(())).level, Level::Warning);
        let (one, all) = (judge(limit(false)), judge(limit(true)));
        assert_eq!((one.level, all.level), (Level::Warning, Level::Warning));
        assert!(one.finding.contains("2 GiB") && one.finding.contains("kills one"), "{one:?}");
        assert!(all.finding.contains("all of them"), "{all:?}");
    }
}
