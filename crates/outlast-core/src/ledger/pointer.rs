//! Where an off-loaded body is.

use serde::{Deserialize, Serialize};

use super::{MAX_BODY_BYTES, SessionId};

/// Names a body in object storage. Valid only within its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pointer {
    /// `sessions/<session id>/blobs/<hex SHA-256 of the body>`.
    pub key: String,
    /// The body's size in bytes.
    pub size: u64,
}

/// Why a pointer cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// It leads out of its session.
    #[error("the pointer {key:?} leads out of its session ({prefix}/…)")]
    OutsideSession {
        /// Where it leads.
        key: String,
        /// Where it may.
        prefix: String,
    },
    /// Its last part is no digest.
    #[error("the pointer {key:?} does not end in the 64 hex digits of a digest")]
    NoDigest {
        /// Where it leads.
        key: String,
    },
    /// What it says of the size is more than any body has.
    #[error("the pointer {key:?} tells of {size} bytes, more than the {max} that a body may have")]
    TooLarge {
        /// Where it leads.
        key: String,
        /// What it tells.
        size: u64,
        /// The bound.
        max: u64,
    },
    /// What it leads to is itself a pointer.
    #[error("the pointer {key:?} leads to another pointer")]
    Nested {
        /// Where it leads.
        key: String,
    },
    /// There is no body.
    #[error("the body {key:?} is missing")]
    Missing {
        /// Where it should be.
        key: String,
    },
    /// The body is not what it was.
    #[error("the body {key:?} is damaged: {what}")]
    Damaged {
        /// Where it is.
        key: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Pointer {
    /// The pointer to a body of this digest.
    pub fn new(session: &SessionId, sha256: &[u8], size: u64) -> Pointer {
        Pointer { key: format!("{}/{}", session.blobs_prefix(), crate::hex::encode(sha256)), size }
    }

    /// The digest that the body must have, if this pointer may be followed within the session. What is asked for before
    /// anything is fetched.
    pub fn check(&self, session: &SessionId) -> Result<&str, PointerError> {
        let prefix = session.blobs_prefix();
        let name = self.key.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('/'));
        let Some(name) = name.filter(|name| !name.contains('/')) else {
            return Err(PointerError::OutsideSession { key: self.key.clone(), prefix });
        };
        if !is_digest(name) {
            return Err(PointerError::NoDigest { key: self.key.clone() });
        }
        let max = MAX_BODY_BYTES as u64;
        if self.size > max {
            return Err(PointerError::TooLarge { key: self.key.clone(), size: self.size, max });
        }
        Ok(name)
    }
}

/// Whether a name is 64 lower-case hex digits.
fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
