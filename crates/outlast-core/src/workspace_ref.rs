//! The name of a workspace's content.

use serde::{Deserialize, Serialize};

use crate::hex;

/// How every name begins: the version of the manifest's format, and the hash.
const SCHEME: &str = "v1:sha256:";
/// Characters of a digest in hexadecimal.
const HEX_LEN: usize = 64;

/// Names the content of a workspace: the SHA-256 of its canonical manifest. Equal trees have equal names, wherever and
/// whenever they were stored. Its text is `v1:sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspaceRef([u8; 32]);

/// Why a text names no workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceRefError {
    /// It does not begin with the version and the hash.
    #[error("a workspace's name begins with \"v1:sha256:\"")]
    Scheme,
    /// The digest is too short or too long.
    #[error("a workspace's name ends with 64 hexadecimal digits, not {found}")]
    Length {
        /// How many bytes follow the beginning.
        found: usize,
    },
    /// The digest has a character that is not one of 0-9 and a-f.
    #[error("a workspace's name has only 0-9 and a-f in its digest (byte {at} is another)")]
    Digit {
        /// Its position in the text, in bytes.
        at: usize,
    },
}

impl WorkspaceRef {
    /// The name whose digest this is.
    pub fn from_digest(digest: [u8; 32]) -> WorkspaceRef {
        WorkspaceRef(digest)
    }

    /// The digest.
    pub fn digest(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        hex::encode(&self.0)
    }
}

impl std::fmt::Display for WorkspaceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SCHEME}{}", self.hex())
    }
}

impl std::fmt::Debug for WorkspaceRef {
    /// The text: that is how messages show it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for WorkspaceRef {
    type Err = WorkspaceRefError;

    fn from_str(text: &str) -> Result<Self, WorkspaceRefError> {
        let digits = text.strip_prefix(SCHEME).ok_or(WorkspaceRefError::Scheme)?;
        if digits.len() != HEX_LEN {
            return Err(WorkspaceRefError::Length { found: digits.len() });
        }
        if let Some(at) = digits.bytes().position(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(WorkspaceRefError::Digit { at: SCHEME.len() + at });
        }
        let bytes = hex::decode(digits).and_then(|bytes| bytes.try_into().ok());
        bytes.map(WorkspaceRef).ok_or(WorkspaceRefError::Length { found: digits.len() })
    }
}

impl TryFrom<String> for WorkspaceRef {
    type Error = WorkspaceRefError;
    fn try_from(text: String) -> Result<Self, WorkspaceRefError> {
        text.parse()
    }
}

impl From<WorkspaceRef> for String {
    fn from(reference: WorkspaceRef) -> String {
        reference.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_for_each() {
        let reference = WorkspaceRef::from_digest([0xab; 32]);
        let text = format!("v1:sha256:{}", "ab".repeat(32));
        assert_eq!(reference.to_string(), text);
        assert_eq!(format!("{reference:?}"), text);
        assert_eq!(text.parse(), Ok(reference));
        assert_eq!(serde_json::to_value(reference).expect("json"), text);
        assert_eq!(serde_json::from_value::<WorkspaceRef>(text.into()).expect("a ref"), reference);
    }

    #[test]
    fn nothing_else_is_one() {
        let digits = "ab".repeat(32);
        for (text, expected) in [
            (String::new(), WorkspaceRefError::Scheme),
            (digits.clone(), WorkspaceRefError::Scheme),
            (format!("v2:sha256:{digits}"), WorkspaceRefError::Scheme),
            (format!(" v1:sha256:{digits}"), WorkspaceRefError::Scheme),
            (format!("V1:sha256:{digits}"), WorkspaceRefError::Scheme),
            ("v1:sha256:".to_owned(), WorkspaceRefError::Length { found: 0 }),
            (format!("v1:sha256:{digits}\n"), WorkspaceRefError::Length { found: 65 }),
            (format!("v1:sha256:{}", &digits[1..]), WorkspaceRefError::Length { found: 63 }),
            (format!("v1:sha256:{}", digits.to_uppercase()), WorkspaceRefError::Digit { at: 10 }),
            (format!("v1:sha256:{}g", &digits[1..]), WorkspaceRefError::Digit { at: 73 }),
            (format!("v1:sha256:{}", "é".repeat(32)), WorkspaceRefError::Digit { at: 10 }),
        ] {
            assert_eq!(text.parse::<WorkspaceRef>(), Err(expected), "{text:?}");
        }
    }
}
