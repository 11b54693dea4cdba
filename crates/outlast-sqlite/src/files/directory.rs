//! The data directory and the empty database in it.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use outlast_core::OwnerId;
use outlast_store::StoreError;

use crate::failure::unavailable;

/// The database's name in the data directory.
pub(crate) const DATABASE: &str = "outlast.db";

/// File systems on which locks or shared memory do not work between machines, by the number that the kernel gives.
const NETWORK: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB2"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "CephFS"),
    (0x0BD0_0BD0, "Lustre"),
    (0x564C, "NCP"),
    (0x7375_7245, "Coda"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
];

/// Makes the directory and those above it, for the user only, since records hold secrets.
pub(crate) fn make_directory(path: &Path) -> Result<(), StoreError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| unavailable(format!("cannot make the directory {}: {error}", path.display())))
}

/// Refuses a data directory on a network file system.
pub(crate) fn refuse_network(path: &Path) -> Result<(), StoreError> {
    let name = network_file_system(path)
        .map_err(|error| unavailable(format!("cannot examine {}: {error}", path.display())))?;
    match name {
        None => Ok(()),
        Some(name) => Err(StoreError::Unusable {
            message: format!(
                "the data directory {} is on a network file system ({name}), where SQLite cannot keep two machines \
                 apart: choose a directory on a local disk (--data-dir, OUTLAST_DATA_DIR)",
                path.display()
            ),
        }),
    }
}

/// The name of the network file system that the path is on; none where it is on a local one.
///
/// # Errors
///
/// The path cannot be examined.
pub fn network_file_system(path: &Path) -> std::io::Result<Option<&'static str>> {
    Ok(network_name(rustix::fs::statfs(path)?.f_type as u64))
}

fn network_name(magic: u64) -> Option<&'static str> {
    // The kernel's field is signed on some machines, so only the low 32 bits mean something.
    NETWORK.iter().find(|(number, _)| *number == magic & 0xFFFF_FFFF).map(|(_, name)| *name)
}

/// Makes an empty database file that only its user may read, unless there is one. SQLite would make it readable for
/// all; and a file that this process has opened and closes again would take SQLite's own locks on it away, so it is
/// made under another name.
pub(crate) fn make_database(data_dir: &Path, owner: &OwnerId) -> Result<(), StoreError> {
    let file = data_dir.join(DATABASE);
    if file.exists() {
        return Ok(());
    }
    let fresh = data_dir.join(format!(".{DATABASE}.{}", outlast_core::encoding::encode(owner.as_str())));
    let made = (|| {
        drop(std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?);
        let placed = place(&fresh, &file);
        let _ = std::fs::remove_file(&fresh);
        placed
    })();
    made.map_err(|error| unavailable(format!("cannot make {}: {error}", file.display())))
}

/// Gives the file its name, unless a process that was faster has: its file is never replaced, since it is in use.
fn place(fresh: &Path, file: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    // Not every file system has links, nor every one renames that replace nothing.
    let placed = std::fs::hard_link(fresh, file).or_else(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(renameat_with(CWD, fresh, CWD, file, RenameFlags::NOREPLACE)?),
    });
    match placed {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_number() {
        for (magic, name) in [
            (0x6969, Some("NFS")),
            (0xFF53_4D42, Some("CIFS")),
            (0xFFFF_FFFF_FF53_4D42, Some("CIFS")),
            (0x0102_1997, Some("9P")),
            (0xEF53, None),
            (0x0102_1994, None),
            (0x794C_7630, None),
        ] {
            assert_eq!(network_name(magic), name, "{magic:x}");
        }
    }
}
