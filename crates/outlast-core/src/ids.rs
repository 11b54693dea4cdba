//! Ids that callers choose, and ids that Outlast mints.

use serde::{Deserialize, Serialize};

use crate::encoding;

/// Why an id was refused. Nothing was written when one of these is returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The id has no characters.
    #[error("{what} must not be empty")]
    Empty {
        /// Which id.
        what: &'static str,
    },
    /// The id would not fit into a file name together with the longest suffix.
    #[error(
        "{what} is too long: it takes {encoded} bytes when encoded as a file name, at most {max} are allowed"
    )]
    TooLong {
        /// Which id.
        what: &'static str,
        /// Its encoded length in bytes.
        encoded: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// NUL, CR, LF and other control characters break HTTP headers, terminals and logs.
    #[error("{what} must not contain control characters (found U+{code:04X} at byte {at})")]
    Control {
        /// Which id.
        what: &'static str,
        /// The character's code point.
        code: u32,
        /// Its byte position.
        at: usize,
    },
}

fn check_text(what: &'static str, text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, c)) => Err(IdError::Control { what, code: u32::from(c), at }),
        None => Ok(()),
    }
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl std::fmt::Debug for $name {
            /// The id in quotes: that is how messages show it.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl $name {
            /// The id as the caller wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                $name::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                $name::new(text)
            }
        }
    };
}

string_id! {
    /// One turn of an agent. Chosen by the caller and unique for ever within a deployment.
    RunId
}

impl RunId {
    /// Accepts any text without control characters whose file-name encoding fits (see [`encoding::MAX_ENCODED_BYTES`]).
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        check_text("a run id", &text)?;
        let encoded = encoding::encode(&text).len();
        if encoded > encoding::MAX_ENCODED_BYTES {
            return Err(IdError::TooLong { what: "a run id", encoded, max: encoding::MAX_ENCODED_BYTES });
        }
        Ok(RunId(text))
    }

    /// The id as a file-name stem: injective, without path separators, never a reserved name.
    pub fn encoded(&self) -> String {
        encoding::encode(&self.0)
    }
}

string_id! {
    /// One conversation. Chosen by the client.
    ThreadId
}

impl ThreadId {
    /// The longest thread id, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Accepts any text without control characters of at most [`ThreadId::MAX_BYTES`] bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        check_text("a thread id", &text)?;
        if text.len() > Self::MAX_BYTES {
            return Err(IdError::TooLong { what: "a thread id", encoded: text.len(), max: Self::MAX_BYTES });
        }
        Ok(ThreadId(text))
    }
}

string_id! {
    /// One sandbox that was really created. Minted by Outlast, never used again.
    InstanceId
}

impl InstanceId {
    /// An id that says whose the instance is: the beginning of the deployment's id, a dash, and random hex digits. So
    /// whatever is left of an instance, at whatever step of its making, can be told from what is not ours.
    pub fn labelled(deployment: &str, random: &str) -> Result<Self, IdError> {
        InstanceId::new(format!("{}-{random}", label(deployment)))
    }

    /// Whether this deployment has minted the id. Older ids carry no label, and are nobody's.
    pub fn is_of(&self, deployment: &str) -> bool {
        self.0.split_once('-').is_some_and(|(before, rest)| {
            before == label(deployment)
                && rest.len() == 32
                && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }

    /// Accepts what [`RunId::new`] accepts; Outlast mints [`InstanceId::labelled`] ones.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        check_text("an instance id", &text)?;
        let encoded = encoding::encode(&text).len();
        if encoded > encoding::MAX_ENCODED_BYTES {
            return Err(IdError::TooLong {
                what: "an instance id",
                encoded,
                max: encoding::MAX_ENCODED_BYTES,
            });
        }
        Ok(InstanceId(text))
    }
}

/// 64 bits of a deployment's id: enough to tell deployments apart, and short in paths.
fn label(deployment: &str) -> String {
    deployment.chars().filter(char::is_ascii_hexdigit).take(16).collect()
}

string_id! {
    /// One process that may hold claims; new at every start of a process.
    OwnerId
}

impl OwnerId {
    /// Accepts any text without control characters; Outlast mints 32 hex digits.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        check_text("an owner id", &text)?;
        Ok(OwnerId(text))
    }
}

/// Whose data a row is. The default tenant is the empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(pub String);

impl Tenant {
    /// The tenant's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_people_try() {
        for ok in ["../../x", "a'b; rm -rf ~", "CON", ".", "..", "🦀", "a b", "$(reboot)", "-rf"] {
            assert!(RunId::new(ok).is_ok(), "{ok}");
        }
        assert_eq!(RunId::new(""), Err(IdError::Empty { what: "a run id" }));
        assert!(matches!(RunId::new("a\nb"), Err(IdError::Control { code: 10, at: 1, .. })));
        assert!(matches!(RunId::new("a\0"), Err(IdError::Control { code: 0, .. })));
        assert!(matches!(RunId::new("x".repeat(10_000)), Err(IdError::TooLong { encoded: 10_000, .. })));
        assert!(RunId::new("x".repeat(150)).is_ok());
        assert!(RunId::new("x".repeat(151)).is_err());
        assert!(RunId::new("🦀".repeat(12)).is_ok(), "12 crabs take 144 bytes");
        assert!(RunId::new("🦀".repeat(13)).is_err());
    }
}
