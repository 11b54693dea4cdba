//! The destination holds the snapshot and nothing else.

use std::os::fd::AsFd;

use super::RestoreError;
use super::apply::{Apply, failed};
use crate::workspace::files::names;

/// Puts everything aside that is there, and moves everything in. The directory itself stays: somebody may work in it.
pub(super) fn apply(apply: &mut Apply<'_>) -> Result<(), RestoreError> {
    let root =
        apply.root.try_clone().map_err(|error| RestoreError::Internal { message: error.to_string() })?;
    let fail = |error| failed("read", apply.target.path(), error);
    let (there, staged) =
        (names(root.as_fd()).map_err(fail)?, names(apply.staging.directory.as_fd()).map_err(fail)?);
    for name in there {
        apply.put_aside((root.as_fd(), &name), &name)?;
    }
    for name in staged {
        apply.move_in((apply.staging.directory.as_fd(), &name), (root.as_fd(), &name), &name)?;
    }
    Ok(())
}
