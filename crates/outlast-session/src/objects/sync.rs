//! Making files of a directory durable.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

/// Up to so many objects are made durable one by one, more of them with all else that is on the file system.
///
/// One by one, each costs a wait for the disk; all at once, one pays for whatever other programs have written, which next
/// to a build can be gigabytes.
const ONE_BY_ONE: usize = 100;

/// Makes the files of these keys durable, and that they are there.
pub(super) fn sync(directory: &Path, keys: &[String]) -> io::Result<()> {
    if keys.len() > ONE_BY_ONE {
        return Ok(rustix::fs::syncfs(File::open(directory)?)?);
    }
    let mut above = BTreeSet::new();
    for key in keys {
        File::open(directory.join(key))?.sync_all()?;
        above.extend(Path::new(key).ancestors().skip(1));
    }
    above.into_iter().try_for_each(|path| File::open(directory.join(path))?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_looked_up_one_by_one_and_one_that_is_gone_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        for key in ["a/b/c", "a/d", "e"] {
            std::fs::write(dir.path().join(key), "x").unwrap();
        }
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        sync(dir.path(), &keys(&["a/b/c", "a/d", "e"])).unwrap();
        sync(dir.path(), &[]).unwrap();
        let error = sync(dir.path(), &keys(&["e", "a/b/gone"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        sync(dir.path(), &vec!["e".to_owned(); ONE_BY_ONE + 1]).unwrap();
        sync(&dir.path().join("no-such"), &vec![String::new(); ONE_BY_ONE + 1]).unwrap_err();
    }
}
