//! The data directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, statfs, statvfs};

use super::check::{Check, Level, show_bytes};

/// What is known of the data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryFacts {
    pub path: PathBuf,
    pub there: There,
    /// Who looks.
    pub uid: u32,
    /// Whether this user may make files in it (or, where it is missing, in the nearest directory that is there).
    pub writable: Result<(), String>,
    pub network: Option<&'static str>,
    /// Whether what is on it is gone after a restart of the machine.
    pub in_memory: bool,
    /// Whether it is on the layers of a container.
    pub layered: bool,
    /// Free bytes for this user; none where that is not told.
    pub free: Option<u64>,
    /// All bytes of the file system; none where that is not told.
    pub size: Option<u64>,
    /// Free inodes; none where that is not told, or there is no such limit.
    pub free_files: Option<u64>,
}

/// What is at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    /// The directory.
    Directory { owner: u32, mode: u32 },
    /// Nothing; the nearest directory above that exists.
    Nothing { nearest: PathBuf },
    /// Something else, or it cannot be looked at: why.
    Other(String),
}

/// Below this a run's journal or the database soon finds the disk full.
const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 100 << 20;
/// The same as a part of the file system, in percent.
const LITTLE_PERCENT: u128 = 5;
const FEW_FILES: u64 = 1000;

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58F6;
const OVERLAY: u64 = 0x794C_7630;

impl DirectoryFacts {
    pub fn of(path: &Path) -> DirectoryFacts {
        let there = look(path);
        let near = match &there {
            There::Nothing { nearest } => nearest.as_path(),
            _ => path,
        };
        let kind = statfs(near).map_or(0, |facts| facts.f_type as u64 & 0xFFFF_FFFF);
        let space = statvfs(near).ok();
        DirectoryFacts {
            path: path.to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            writable: accessat(CWD, near, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
                .map_err(|error| std::io::Error::from(error).to_string()),
            network: outlast_sqlite::network_file_system(near).ok().flatten(),
            in_memory: matches!(kind, TMPFS | RAMFS),
            layered: kind == OVERLAY,
            free: space.as_ref().map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
            size: space
                .as_ref()
                .map(|space| space.f_blocks.saturating_mul(space.f_frsize))
                .filter(|size| *size > 0),
            free_files: space.as_ref().filter(|space| space.f_files > 0).map(|space| space.f_favail),
            there,
        }
    }

    /// Why nothing that lies in the directory can be looked at without doing harm; none where it can.
    pub fn hindrance(&self) -> Option<String> {
        match (&self.there, &self.writable) {
            (There::Other(why), _) => Some(why.clone()),
            // Files of another user's would be left in it.
            (There::Directory { owner, .. }, _) if *owner != self.uid => {
                Some(format!("the data directory belongs to user {owner}, and this is user {}", self.uid))
            }
            (_, Err(_)) => Some("the data directory cannot be written".to_owned()),
            (_, Ok(())) => None,
        }
    }

    pub fn exists(&self) -> bool {
        matches!(self.there, There::Directory { .. })
    }
}

fn look(path: &Path) -> There {
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => There::Directory { owner: facts.uid(), mode: facts.mode() },
        Ok(_) => There::Other(format!("{} is no directory", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let nearest =
                path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or_else(|| Path::new("/"));
            There::Nothing { nearest: nearest.to_owned() }
        }
        Err(error) => There::Other(format!("cannot look at {}: {error}", path.display())),
    }
}

/// What to say of it. `embedded`: whether the database lies in it too.
pub fn judge(facts: &DirectoryFacts, embedded: bool) -> Check {
    let path = facts.path.display();
    let mut said: Vec<(Level, String, Option<String>)> = Vec::new();
    let mut say = |level, finding: String, advice: Option<String>| said.push((level, finding, advice));
    let choose = "choose another with --data-dir or OUTLAST_DATA_DIR";
    match &facts.there {
        There::Other(why) => say(Level::Problem, why.clone(), Some(choose.to_owned())),
        There::Nothing { nearest } => {
            let finding = format!("{path} does not exist yet");
            match &facts.writable {
                Ok(()) => say(Level::Ok, format!("{finding}; the first run makes it"), None),
                Err(error) => say(
                    Level::Problem,
                    format!("{finding} and cannot be made in {}: {error}", nearest.display()),
                    Some(format!("make it for user {}, or {choose}", facts.uid)),
                ),
            }
        }
        There::Directory { owner, mode } => {
            if *owner != facts.uid {
                let finding = format!("{path} belongs to user {owner}, and this is user {}", facts.uid);
                let advice = format!("ask as the user who runs outlast: `sudo -u '#{owner}' outlast doctor`");
                let level = if facts.writable.is_ok() { Level::Warning } else { Level::Problem };
                say(level, finding, Some(advice));
            } else if let Err(error) = &facts.writable {
                say(
                    Level::Problem,
                    format!("{path} cannot be written: {error}"),
                    Some(format!("make it writable, or {choose}")),
                );
            } else {
                say(Level::Ok, format!("{path} can be written"), None);
            }
            if mode & 0o077 != 0 {
                let finding = "other users may look into it, where prompts and outputs lie".to_owned();
                say(Level::Warning, finding, Some(format!("chmod 700 {path}")));
            }
        }
    }
    if let Some(name) = facts.network {
        let level = if embedded { Level::Problem } else { Level::Warning };
        let why = if embedded {
            "where SQLite refuses to be"
        } else {
            "where locks and journals of sandboxes may fail"
        };
        say(
            level,
            format!("on a network file system ({name}), {why}"),
            Some("choose a local disk".to_owned()),
        );
    }
    if facts.in_memory {
        let finding = "in memory: everything is gone after a restart of the machine".to_owned();
        say(Level::Warning, finding, Some("choose a disk".to_owned()));
    }
    if facts.layered {
        let finding = "on a container's own layer: everything is gone with the container".to_owned();
        say(Level::Warning, finding, Some("mount a volume there".to_owned()));
    }
    match facts.free {
        None => say(Level::Warning, "could not tell how much space is free".to_owned(), None),
        Some(free) => {
            let part = facts.size.map(|size| u128::from(free) * 100 / u128::from(size.max(1)));
            let (level, advice) = if free < TOO_LITTLE {
                (Level::Problem, Some("make room: a full disk holds up every run".to_owned()))
            } else if free < LITTLE || part.is_some_and(|part| part < LITTLE_PERCENT) {
                (Level::Warning, Some("make room: journals and logs grow".to_owned()))
            } else {
                (Level::Ok, None)
            };
            let part = part.map_or_else(String::new, |part| format!(" ({part} %)"));
            say(level, format!("{} free{part}", show_bytes(free)), advice);
        }
    }
    if let Some(files) = facts.free_files.filter(|files| *files < FEW_FILES) {
        let advice = Some("make room: every run takes about ten".to_owned());
        say(Level::Warning, format!("only {files} more files fit on it"), advice);
    }
    let level = said.iter().map(|(level, ..)| *level).max().unwrap_or(Level::Ok);
    let finding = said.iter().map(|(_, finding, _)| finding.as_str()).collect::<Vec<_>>().join("; ");
    let advice: Vec<&str> = said.iter().filter_map(|(.., advice)| advice.as_deref()).collect();
    let advice = (!advice.is_empty()).then(|| advice.join("; "));
    Check { level, advice, ..Check::ok("data_directory", finding) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine() -> DirectoryFacts {
        DirectoryFacts {
            path: "/d".into(),
            there: There::Directory { owner: 7, mode: 0o40700 },
            uid: 7,
            writable: Ok(()),
            network: None,
            in_memory: false,
            layered: false,
            free: Some(5 << 30),
            size: Some(50 << 30),
            free_files: Some(1 << 20),
        }
    }

    #[test]
    fn every_fault_is_told_and_the_worst_counts() {
        let nothing = || There::Nothing { nearest: "/".into() };
        let denied = || Err("Permission denied".to_owned());
        let open = There::Directory { owner: 7, mode: 0o40755 };
        for (facts, embedded, level, says) in [
            (fine(), true, Level::Ok, "/d can be written; 5 GiB free (10 %)"),
            (DirectoryFacts { there: nothing(), ..fine() }, true, Level::Ok, "the first run makes it"),
            (
                DirectoryFacts { there: nothing(), writable: denied(), ..fine() },
                true,
                Level::Problem,
                "in /: Perm",
            ),
            (DirectoryFacts { writable: denied(), ..fine() }, true, Level::Problem, "cannot be written"),
            (
                DirectoryFacts { there: There::Other("no directory".into()), ..fine() },
                true,
                Level::Problem,
                "no dir",
            ),
            (
                DirectoryFacts { uid: 0, ..fine() },
                true,
                Level::Warning,
                "belongs to user 7, and this is user 0",
            ),
            (
                DirectoryFacts { uid: 8, writable: denied(), ..fine() },
                true,
                Level::Problem,
                "belongs to user 7",
            ),
            (DirectoryFacts { there: open, ..fine() }, true, Level::Warning, "other users"),
            (DirectoryFacts { network: Some("NFS"), ..fine() }, true, Level::Problem, "SQLite"),
            (DirectoryFacts { network: Some("NFS"), ..fine() }, false, Level::Warning, "sandboxes"),
            (DirectoryFacts { in_memory: true, ..fine() }, true, Level::Warning, "in memory"),
            (DirectoryFacts { layered: true, ..fine() }, true, Level::Warning, "layer"),
            (DirectoryFacts { free: None, ..fine() }, true, Level::Warning, "could not tell"),
            (DirectoryFacts { free: Some(LITTLE), size: None, ..fine() }, true, Level::Ok, "1 GiB free"),
            (DirectoryFacts { size: Some(101 << 30), ..fine() }, true, Level::Warning, "5 GiB free (4 %)"),
            (DirectoryFacts { size: Some(100 << 30), ..fine() }, true, Level::Ok, "5 GiB free (5 %)"),
            (DirectoryFacts { free: Some(LITTLE - 1), ..fine() }, true, Level::Warning, "free"),
            (DirectoryFacts { free: Some(TOO_LITTLE - 1), ..fine() }, true, Level::Problem, "free"),
            (DirectoryFacts { free_files: Some(3), ..fine() }, true, Level::Warning, "only 3 more files"),
            (DirectoryFacts { free_files: None, ..fine() }, true, Level::Ok, "free"),
        ] {
            let check = judge(&facts, embedded);
            assert_eq!(check.level, level, "{facts:?}: {check:?}");
            assert!(check.finding.contains(says), "{says:?}: {check:?}");
            assert!(check.level == Level::Ok || check.advice.is_some() || facts.free.is_none(), "{check:?}");
        }
    }

    #[test]
    fn nothing_is_written_into_a_directory_of_somebody_else() {
        assert_eq!(fine().hindrance(), None);
        assert!(DirectoryFacts { uid: 0, ..fine() }.hindrance().is_some());
        assert!(DirectoryFacts { writable: Err(String::new()), ..fine() }.hindrance().is_some());
        let missing = There::Nothing { nearest: "/".into() };
        assert_eq!(DirectoryFacts { there: missing, uid: 0, ..fine() }.hindrance(), None);
    }

    #[test]
    fn what_is_there() {
        let dir = tempfile::tempdir().expect("dir");
        let facts = DirectoryFacts::of(dir.path());
        assert!(facts.exists() && facts.writable.is_ok() && facts.free.is_some(), "{facts:?}");
        let below = DirectoryFacts::of(&dir.path().join("a/b"));
        assert_eq!(below.there, There::Nothing { nearest: dir.path().to_owned() });
        fs::write(dir.path().join("file"), "").expect("file");
        for name in ["file", "file/below"] {
            let facts = DirectoryFacts::of(&dir.path().join(name));
            assert!(matches!(facts.there, There::Other(_)), "{facts:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).expect("dir").count(), 1, "nothing was made");
    }
}
