//! The machine's name: a random id that lies beside the instances.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use outlast_store::Entropy;

use super::errors::{Attempting, failed};
use super::layout::sync_dir;
use crate::ProviderError;

const FILE: &str = ".machine";

/// Reads the id, drawing one where there is none. The file gets its name only when it is whole and synced, and only
/// if there is no other, so that all processes agree, whichever comes first and whenever one dies.
pub(super) fn identify(root: &Path, entropy: &dyn Entropy) -> Result<String, ProviderError> {
    let path = root.join(FILE);
    let attempt = || format!("cannot name this machine in {}", path.display());
    if let Some(id) = read(&path)? {
        return Ok(id);
    }
    let id = entropy.hex_id();
    let draft = root.join(format!("{FILE}-{id}"));
    let mut file =
        fs::File::options().write(true).create_new(true).mode(0o600).open(&draft).attempting(attempt)?;
    let linked = file
        .write_all(id.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        })
        .and_then(|()| sync_dir(root));
    let removed = fs::remove_file(&draft);
    linked.and(removed).attempting(attempt)?;
    read(&path)?.ok_or_else(|| failed(format!("{} has vanished", path.display())))
}

fn read(path: &Path) -> Result<Option<String>, ProviderError> {
    match fs::read_to_string(path) {
        Ok(text) if text.is_empty() => Err(failed(format!("{} is empty: remove it", path.display()))),
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(format!("cannot read {}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use outlast_store::SystemEntropy;

    use super::*;

    #[test]
    fn racing_processes_agree() {
        let dir = tempfile::tempdir().expect("dir");
        let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| identify(dir.path(), &SystemEntropy).expect("id"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("thread")).collect()
        });
        assert_eq!(ids.len(), 1);
        assert_eq!(fs::read_dir(dir.path()).expect("dir").count(), 1, "no draft is left");
    }
}
