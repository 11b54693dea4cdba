//! Any tree.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use outlast_session::workspace::{RestoreMode, RestoreOptions, SnapshotOptions};
use proptest::prelude::*;
use proptest::sample::Index;

use super::support::*;

#[derive(Debug, Clone)]
enum Thing {
    Directory(u32),
    File(u32, Vec<u8>),
    Link(Vec<u8>),
}

fn tree() -> impl Strategy<Value = Vec<(Index, Vec<u8>, Thing)>> {
    // Few names, so that trees of different shape meet.
    let name = prop_oneof![
        proptest::sample::select(vec![b"a".to_vec(), b"b".to_vec(), b"a-".to_vec(), b"\xff".to_vec()]),
        proptest::collection::vec(1u8.., 1..4)
            .prop_filter("a name", |name| !name.contains(&b'/') && name != b"." && name != b".."),
    ];
    let thing = prop_oneof![
        proptest::sample::select(vec![0o755, 0o700, 0o555, 0o500, 0o777]).prop_map(Thing::Directory),
        (
            proptest::sample::select(vec![0o644, 0o600, 0o755, 0o444]),
            proptest::collection::vec(any::<u8>(), 0..50)
        )
            .prop_map(|(mode, content)| Thing::File(mode, content)),
        proptest::collection::vec(1u8.., 1..6).prop_map(Thing::Link),
    ];
    proptest::collection::vec((any::<Index>(), name, thing), 0..12)
}

fn build(root: &Path, tree: &[(Index, Vec<u8>, Thing)]) {
    std::fs::create_dir(root).unwrap();
    let mut directories: Vec<(PathBuf, u32)> = vec![(root.to_owned(), 0o755)];
    for (at, name, thing) in tree {
        let path = directories[at.index(directories.len())].0.join(OsString::from_vec(name.clone()));
        if std::fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        match thing {
            Thing::Directory(mode) => {
                std::fs::create_dir(&path).unwrap();
                directories.push((path, *mode));
            }
            Thing::File(mode, content) => {
                std::fs::write(&path, content).unwrap();
                set_mode(&path, *mode);
            }
            Thing::Link(target) => {
                std::os::unix::fs::symlink(OsString::from_vec(target.clone()), &path).unwrap();
            }
        }
    }
    for (path, mode) in directories.iter().rev() {
        set_mode(path, *mode);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Over any other tree, exactly or as an overlay.
    #[test]
    fn any_tree_survives(tree in tree(), other in tree()) {
        let world = World::new();
        run_as_nobody(async || {
            let all = SnapshotOptions { include_secrets: true, ..SnapshotOptions::default() };
            let root = world.path("tree");
            build(&root, &tree);
            let snapshot = world.workspaces.snapshot(&root, &all).await.unwrap();
            assert!(snapshot.skipped.is_empty(), "{:?}", snapshot.skipped);
            for mode in [RestoreMode::Exact, RestoreMode::Overlay] {
                let copy = world.path(&format!("{mode:?}"));
                build(&copy, &other);
                let before = read_tree(&copy);
                let options = RestoreOptions { mode, ..RestoreOptions::new(NOW) };
                let restored = world.workspaces.restore(&snapshot.reference, &copy, &options).await.unwrap();
                let (wanted, found) = (read_tree(&root), read_tree(&copy));
                let aside = restored.aside.map(|aside| read_tree(&aside)).unwrap_or_default();
                match mode {
                    RestoreMode::Exact => assert_eq!(found, wanted),
                    RestoreMode::Overlay => assert!(wanted.iter().all(|(path, entry)| found.get(path) == Some(entry))),
                }
                for (path, entry) in &before {
                    let alike = |there: Option<&(char, u32, Vec<u8>)>| {
                        there.is_some_and(|there| (there.0, &there.2) == (entry.0, &entry.2))
                    };
                    assert!(alike(found.get(path)) || alike(aside.get(path)), "{path:?} is lost");
                }
                assert!(world.workspaces.restore(&snapshot.reference, &copy, &options).await.unwrap().unchanged);
            }
        });
    }
}
