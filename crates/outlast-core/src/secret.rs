//! Secrets and nonces: 128 random bits as 32 hex digits.

use serde::{Deserialize, Serialize};

/// What proves that a line of the journal is the exit sentinel. Known to the record and the shim, never to the agent.
/// Does not appear in `Debug`, logs, events, arguments or public records.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExitSecret(String);

impl ExitSecret {
    /// Makes the secret from 16 random bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        ExitSecret(crate::hex::encode(&bytes))
    }

    /// Takes the stored form.
    pub fn from_stored(text: impl Into<String>) -> Self {
        ExitSecret(text.into())
    }

    /// The stored form: for the store, the shim's standard input and the sentinel, and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for ExitSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExitSecret(…)")
    }
}

/// A value that is never drawn twice, as 32 hex digits: part of a claim token, or the name of an append.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(String);

impl Nonce {
    /// Makes the nonce from 16 random bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Nonce(crate::hex::encode(&bytes))
    }

    /// Takes the stored form.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Nonce(text.into())
    }

    /// The stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
