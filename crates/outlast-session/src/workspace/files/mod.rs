//! Files relative to open directories: nothing here follows a symbolic link or leaves the directory.

mod beneath;
mod hash;
mod list;
mod modes;
mod remove;
mod stat;
mod walk;

pub(super) use beneath::{NOT_FOLLOWED, open_beneath, open_root};
pub(super) use hash::{HashFailed, Hashed, hash_file};
pub(super) use list::names;
pub(super) use modes::{open_directory_for_change, rename_new};
pub(super) use remove::remove_tree;
pub(super) use stat::FileStat;
pub(super) use walk::{Found, FoundKind, Limits, WalkError, Walked, walk};
