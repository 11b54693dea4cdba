//! What can go wrong with object storage.

/// Of the operations on [`super::Objects`].
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// The place is none, or not one that this program reaches.
    #[error("{place:?} is no place for objects: {reason}")]
    Place {
        /// What was given.
        place: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// There is no such object.
    #[error("there is no object {key:?}")]
    NotFound {
        /// Its key.
        key: String,
    },
    /// The object is larger than the caller takes.
    #[error("object {key:?} is larger than {max} bytes")]
    TooLarge {
        /// Its key.
        key: String,
        /// The bound in bytes.
        max: u64,
    },
    /// The storage failed; the same operation may succeed later and is safe to repeat.
    #[error("cannot {what} {key:?}: {message}")]
    Failed {
        /// What was tried: `write`, `read`, `list`, `delete`, `copy`.
        what: &'static str,
        /// The key, or the beginning of the keys.
        key: String,
        /// What is wrong, for people.
        message: String,
    },
}
