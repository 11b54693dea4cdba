//! Listing a runs directory through a shell, for providers that reach their sandboxes by running commands in them. The
//! local provider looks for itself, and the suite holds one against the other.
//!
//! The trap is the empty answer. Tools differ: BusyBox's `find` does not know `-printf`, says so on standard error and
//! prints nothing; read as a listing, that would be "no file is young", and everything would be deleted. So the script
//! uses nothing but what BusyBox and coreutils have in common, begins with a line of its own that says whether ages are
//! told, and ends with another one. What comes without the first is no listing; what comes without the second tells no
//! ages, since the file that is missing may be the young one.

use crate::{AgeGate, RunFile, RunListing};

/// For `sh -c SCRIPT sh RUNS_DIRECTORY`. Names come as they are, whatever their bytes, each ended by a NUL, which no name
/// contains; one `stat` for each file, so that one that vanishes meanwhile takes no other's age along.
pub const SCRIPT: &str = r#"
LC_ALL=C
export LC_ALL
cd "$1" || exit 3
number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }
ages=unavailable
number "$(stat -c %Y . 2>/dev/null)" && ages=available
now=$(date +%s 2>/dev/null)
number "$now" || now=
printf 'outlast-run-files 1\0%s\0%s\0' "$ages" "$now"
for name in .* *; do
    case $name in . | ..) continue ;; esac
    [ -e "./$name" ] || [ -L "./$name" ] || continue
    mtime=
    if [ "$ages" = available ]; then
        mtime=$(stat -c %Y "./$name" 2>/dev/null)
        number "$mtime" || mtime=
    fi
    printf '%s\0%s\0' "$mtime" "$name"
done
printf 'end\0'
"#;

const WITNESS: &[u8] = b"outlast-run-files 1";
const END: &[u8] = b"end";

/// Reads what the script has printed.
pub fn parse(printed: &[u8]) -> RunListing {
    let mut listing =
        RunListing { files: Vec::new(), now: None, age_gate: AgeGate::Unavailable, trouble: None };
    let trouble = |what: &str| Some(format!("the sandbox's listing {what}"));
    // Without a NUL at its end a field may be a part of one.
    let mut fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    fields.pop();
    let mut fields = fields.into_iter();
    let (Some(WITNESS), Some(ages), Some(now)) = (fields.next(), fields.next(), fields.next()) else {
        listing.trouble = trouble("is not what the script prints");
        return listing;
    };
    let now = number(now).map(|seconds| seconds.saturating_mul(1000));
    let mut whole = false;
    while let Some(mtime) = fields.next() {
        if mtime == END {
            whole = fields.next().is_none();
            break;
        }
        let Some(name) = fields.next() else { break };
        // The end of the second: the file may have been written then.
        let mtime = number(mtime).map(|seconds| seconds.saturating_mul(1000).saturating_add(999));
        listing.files.push(RunFile { name: name.to_vec(), mtime });
    }
    listing.files.sort_by(|a, b| a.name.cmp(&b.name));
    if !whole {
        listing.files.iter_mut().for_each(|file| file.mtime = None);
        listing.trouble = trouble("is cut off");
    } else if ages == b"available" && now.is_some() {
        listing.now = now;
        listing.age_gate = AgeGate::Available;
    }
    listing
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use outlast_store::Clock;

    use super::*;

    /// A shell and its tools: the directory that holds them, and the shell in it.
    struct Tools {
        name: &'static str,
        shell: &'static str,
        bin: tempfile::TempDir,
    }

    fn which(program: &str) -> PathBuf {
        let path = std::env::var_os("PATH").expect("PATH");
        std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .find(|path| path.is_file())
            .unwrap_or_else(|| panic!("{program} is not installed: scripts/test installs it"))
    }

    /// Nothing but these links is in the shell's PATH, so that BusyBox cannot borrow from coreutils.
    fn tools(name: &'static str, shell: &'static str, links: &[(&str, &str)]) -> Tools {
        let bin = tempfile::tempdir().expect("dir");
        for (link, program) in links {
            std::os::unix::fs::symlink(which(program), bin.path().join(link)).expect("link");
        }
        Tools { name, shell, bin }
    }

    fn busybox() -> Tools {
        tools("busybox", "sh", &[("sh", "busybox"), ("stat", "busybox"), ("date", "busybox")])
    }

    fn everywhere() -> Vec<Tools> {
        let mut all = vec![busybox()];
        for shell in ["dash", "bash"] {
            all.push(tools(shell, "sh", &[("sh", shell), ("stat", "stat"), ("date", "date")]));
        }
        all
    }

    impl Tools {
        fn run(&self, script: &str, dir: &Path) -> std::process::Output {
            let mut command = Command::new(self.bin.path().join(self.shell));
            command.args([OsStr::new("-c"), OsStr::new(script), OsStr::new("sh"), dir.as_os_str()]);
            command.env_clear().env("PATH", self.bin.path()).env("LC_ALL", "C.UTF-8");
            command.output().expect("the shell runs")
        }

        fn list(&self, dir: &Path) -> RunListing {
            parse(&self.run(SCRIPT, dir).stdout)
        }
    }

    fn touch(path: &Path, at: u64) {
        std::fs::write(path, "x").expect("file");
        let status = Command::new("touch")
            .arg("-d")
            .arg(format!("@{at}"))
            .arg("--")
            .arg(path)
            .status()
            .expect("touch");
        assert!(status.success());
    }

    #[test]
    fn names_and_ages_are_exact() {
        let now = outlast_store::SystemClock::new().wall_ms() / 1000;
        let names: [&[u8]; 16] = [
            b"plain.ndjson",
            b"two\nlines.ndjson",
            b"\n",
            b"trailing\n",
            b"not \xff\xfe utf-8.err",
            b"quotes'\"`$(reboot)`.start",
            b"  blanks  ",
            b"-rf",
            b"--help",
            b"*",
            b"?[a]\\",
            b".hidden",
            b"..two",
            b"end",
            b"\x01\x7f\x1b[2J",
            b"%s%n\\0.lock",
        ];
        for tools in everywhere() {
            let dir = tempfile::tempdir().expect("dir");
            // Long ago, now, and in a future that a clock which was set back makes.
            let times = [1, now - 7200, now, now + 86_400];
            let mut expected = BTreeMap::new();
            for (n, name) in names.iter().enumerate() {
                let at = times[n % times.len()];
                touch(&dir.path().join(OsStr::from_bytes(name)), at);
                expected.insert(name.to_vec(), Some(at * 1000 + 999));
            }
            std::os::unix::fs::symlink("/nowhere", dir.path().join("dangling")).expect("link");
            let mut listing = tools.list(dir.path());
            let dangling = listing.files.iter().position(|file| file.name == b"dangling");
            let dangling = listing.files.remove(dangling.expect("a link that leads nowhere is a name"));
            assert!(dangling.mtime.is_some_and(|at| at / 1000 >= now), "its own age: {dangling:?}");
            let found: BTreeMap<_, _> =
                listing.files.iter().map(|file| (file.name.clone(), file.mtime)).collect();
            assert_eq!(found, expected, "{}", tools.name);
            assert_eq!((listing.age_gate, &listing.trouble), (AgeGate::Available, &None), "{}", tools.name);
            assert!(listing.now.is_some_and(|at| at >= now * 1000 && at < now * 1000 + 600_000));
        }
    }

    #[test]
    fn an_empty_directory_is_one_and_an_absent_one_is_not() {
        for tools in everywhere() {
            let dir = tempfile::tempdir().expect("dir");
            let listing = tools.list(dir.path());
            assert_eq!((listing.files.len(), listing.age_gate), (0, AgeGate::Available), "{}", tools.name);
            let listing = tools.list(&dir.path().join("absent"));
            assert_eq!((listing.age_gate, listing.now), (AgeGate::Unavailable, None), "{}", tools.name);
            assert!(listing.trouble.is_some(), "{}", tools.name);
        }
    }

    /// What the script must not be: with an option that BusyBox does not know it prints nothing and says so by its status.
    #[test]
    fn nothing_printed_is_no_listing() {
        let dir = tempfile::tempdir().expect("dir");
        touch(&dir.path().join("r.ndjson"), 1);
        let tools = tools("busybox", "sh", &[("sh", "busybox"), ("find", "busybox")]);
        let output = tools.run(r#"cd "$1" && find . -printf '%T@ %p\0'"#, dir.path());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let listing = parse(&output.stdout);
        assert_eq!((listing.age_gate, listing.now), (AgeGate::Unavailable, None));
        assert!(listing.trouble.is_some());
    }

    #[test]
    fn without_the_tools_names_come_without_ages() {
        for (links, gate) in [
            (&[("sh", "busybox"), ("date", "busybox")][..], AgeGate::Unavailable),
            (&[("sh", "busybox"), ("stat", "busybox")][..], AgeGate::Unavailable),
        ] {
            let dir = tempfile::tempdir().expect("dir");
            touch(&dir.path().join("r.ndjson"), 1);
            // Debian's BusyBox prefers the PATH to its own; another one may not.
            let bin = tools("busybox", "sh", links);
            let stub = ["stat", "date"].into_iter().find(|tool| !bin.bin.path().join(tool).exists());
            let stub = bin.bin.path().join(stub.expect("one is missing"));
            std::os::unix::fs::symlink(which("false"), stub).expect("link");
            let listing = bin.list(dir.path());
            assert_eq!((listing.files.len(), listing.age_gate), (1, gate));
        }
    }

    #[test]
    fn what_is_cut_off_tells_no_ages() {
        let dir = tempfile::tempdir().expect("dir");
        for name in ["a.ndjson", "b.ndjson", "end.start"] {
            touch(&dir.path().join(name), 1);
        }
        let printed = busybox().run(SCRIPT, dir.path()).stdout;
        assert_eq!(parse(&printed).age_gate, AgeGate::Available);
        for cut in 0..printed.len() {
            let listing = parse(&printed[..cut]);
            assert_eq!((listing.age_gate, listing.now), (AgeGate::Unavailable, None), "cut at {cut}");
            assert!(listing.files.iter().all(|file| file.mtime.is_none()), "cut at {cut}");
            let whole = |file: &RunFile| {
                ["a.ndjson", "b.ndjson", "end.start"].map(str::as_bytes).contains(&&*file.name)
            };
            assert!(listing.files.iter().all(whole), "no part of a name is a name: cut at {cut}");
        }
        // Somebody else's words before or after it are no part of it.
        for noise in [[&b"motd\n"[..], &printed].concat(), [&printed, &b"x\0"[..]].concat()] {
            assert_eq!(parse(&noise).age_gate, AgeGate::Unavailable);
        }
    }
}
