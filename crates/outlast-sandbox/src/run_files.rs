//! What lies in an instance's runs directory.

use std::collections::BTreeMap;

use outlast_core::RunId;
use outlast_core::decide::FilesAge;
use outlast_core::journal::files;

/// A file of a runs directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFile {
    /// Its name, in whatever bytes.
    pub name: Vec<u8>,
    /// When it was written last, in milliseconds since 1970 on the sandbox's clock; none where that cannot be told. A clock
    /// that knows seconds only tells the end of the second: a file is never taken for older than it is.
    pub mtime: Option<u64>,
}

/// Whether a sandbox tells how old its files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeGate {
    /// It does.
    Available,
    /// It does not, so no file of it counts as old.
    Unavailable,
}

/// A runs directory as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunListing {
    /// Its files by name.
    pub files: Vec<RunFile>,
    /// The sandbox's clock, in milliseconds since 1970; none where it cannot be told.
    pub now: Option<u64>,
    /// Whether ages are told.
    pub age_gate: AgeGate,
    /// What went wrong with the listing, where the ages (or all of it) are missing for that.
    pub trouble: Option<String>,
}

/// The files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunGroup {
    /// The run; none for a file whose name does not decode, which stands for itself.
    pub run: Option<RunId>,
    /// The files' names, for people.
    pub names: Vec<String>,
    /// How old they are.
    pub age: FilesAge,
}

impl RunListing {
    /// The files by run, in the order of their ids; then each whose name is no run's.
    ///
    /// A launch latch that stands alone is left out: it is what remains of a run whose files are deleted (see
    /// [`crate::Provider::remove_run`]), or of one that was cancelled before there were any.
    pub fn groups(&self) -> Vec<RunGroup> {
        let mut runs: BTreeMap<RunId, Vec<&RunFile>> = BTreeMap::new();
        let mut strangers = Vec::new();
        for file in &self.files {
            match files::run_of(&file.name) {
                Some(run) => runs.entry(run).or_default().push(file),
                None => strangers.push(self.group(None, &[file])),
            }
        }
        let latch = files::LATCH.as_bytes();
        let more = |of: &[&RunFile]| !matches!(of, [one] if one.name.ends_with(latch));
        let groups = runs.into_iter().filter(|(_, of)| more(of)).map(|(run, of)| self.group(Some(run), &of));
        groups.chain(strangers).collect()
    }

    fn group(&self, run: Option<RunId>, of: &[&RunFile]) -> RunGroup {
        let newest = of.iter().map(|file| file.mtime).try_fold(0, |newest, at| at.map(|at| at.max(newest)));
        let age = match (self.age_gate, self.now, newest) {
            (AgeGate::Unavailable, _, _) | (_, None, _) => FilesAge::Unavailable,
            (AgeGate::Available, Some(_), None) => FilesAge::MissingEntry,
            (AgeGate::Available, Some(now), Some(newest)) => FilesAge::Known { newest, now },
        };
        let names = of.iter().map(|file| String::from_utf8_lossy(&file.name).into_owned()).collect();
        RunGroup { run, names, age }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(files: &[(&str, Option<u64>)], now: Option<u64>, age_gate: AgeGate) -> RunListing {
        let file =
            |(name, mtime): &(&str, Option<u64>)| RunFile { name: name.as_bytes().into(), mtime: *mtime };
        RunListing { files: files.iter().map(file).collect(), now, age_gate, trouble: None }
    }

    #[test]
    fn files_of_a_run_belong_together_and_lone_latches_are_left_out() {
        let files = [
            ("b.ndjson", Some(3)),
            ("a.start", Some(9)),
            ("a.lock", Some(5)),
            ("gone.start", Some(1)),
            ("stray", Some(2)),
            ("stray2", None),
            ("c.exit", None),
            ("c.err", Some(8)),
        ];
        let groups = listing(&files, Some(10), AgeGate::Available).groups();
        let told: Vec<_> = groups
            .iter()
            .map(|group| (group.run.as_ref().map(RunId::as_str), group.names.join(" "), group.age))
            .collect();
        let known = |newest| FilesAge::Known { newest, now: 10 };
        assert_eq!(
            told,
            [
                (Some("a"), "a.start a.lock".to_owned(), known(9)),
                (Some("b"), "b.ndjson".to_owned(), known(3)),
                (Some("c"), "c.exit c.err".to_owned(), FilesAge::MissingEntry),
                (None, "stray".to_owned(), known(2)),
                (None, "stray2".to_owned(), FilesAge::MissingEntry),
            ]
        );
        for (now, gate) in [(None, AgeGate::Available), (Some(10), AgeGate::Unavailable)] {
            let groups = listing(&files, now, gate).groups();
            assert!(groups.iter().all(|group| group.age == FilesAge::Unavailable), "{now:?} {gate:?}");
        }
    }
}
