//! The form of a record outside the database: in object storage, and in an exported file.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// A record whose encoded form is larger is off-loaded (the relative's figure).
pub const OFFLOAD_BYTES: usize = 512 * 1024;

/// The most that a body may have, encoded, in bytes (the relative's figure).
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The longest id of a record, in bytes.
pub const MAX_RECORD_ID_BYTES: usize = 512;

/// The version that this program writes, and the newest that it reads.
const VERSION: u32 = 1;

/// One record, as JSON: `{"v":1,"kind":…,"id":…,"sum":…,"body":…}`, and what of it is optional: `skip`, `salt`.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// What the body is.
    pub kind: String,
    /// Whether a reader that does not know the kind may pass over it.
    pub skip: bool,
    /// The record's id within its session.
    pub id: String,
    /// Makes another body of the same record, so that it has another key. Not part of the checksum.
    pub salt: Option<String>,
    /// JSON, byte for byte as it was given.
    pub body: Box<RawValue>,
}

/// Why bytes are no record that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// More than anything that was ever written.
    #[error("a record of {bytes} bytes is larger than the {max} that one may have")]
    TooLarge {
        /// How many.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// Not the JSON of an envelope.
    #[error("this is no record: {0}")]
    Malformed(String),
    /// Of a newer version.
    #[error("the record is of version {found}, this program reads up to {known}: use a newer program")]
    Version {
        /// The record's.
        found: u32,
        /// This program's.
        known: u32,
    },
    /// The checksum says that it is not what was written.
    #[error("the record {id:?} is damaged: its checksum does not match")]
    Checksum {
        /// The record's id.
        id: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    v: u32,
    kind: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skip: bool,
    id: String,
    sum: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// What tells records apart and shows damage: the hex SHA-256 of kind, id and body, each on a line. (Neither kinds nor ids
/// have line breaks.)
pub fn checksum(kind: &str, id: &str, body: &str) -> String {
    let mut hash = Sha256::new();
    for part in [kind, "\n", id, "\n", body] {
        hash.update(part.as_bytes());
    }
    crate::hex::encode(&hash.finalize())
}

impl Envelope {
    /// The encoded form.
    pub fn encode(&self) -> String {
        let wire = Wire {
            v: VERSION,
            kind: self.kind.clone(),
            skip: self.skip,
            id: self.id.clone(),
            sum: self.sum(),
            salt: self.salt.clone(),
            body: &self.body,
        };
        serde_json::to_string(&wire).unwrap_or_else(|_| unreachable!("text and JSON have JSON"))
    }

    /// The checksum of what it holds.
    pub fn sum(&self) -> String {
        checksum(&self.kind, &self.id, self.body.get())
    }

    /// Reads the encoded form, which may come from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<Envelope, EnvelopeError> {
        // What surrounds a body is small.
        let max = MAX_BODY_BYTES + 4096;
        if bytes.len() > max {
            return Err(EnvelopeError::TooLarge { bytes: bytes.len(), max });
        }
        let malformed = |why: &dyn std::fmt::Display| EnvelopeError::Malformed(why.to_string());
        // The version first: of a newer one, nothing else is known.
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let Version { v } = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        if v > VERSION {
            return Err(EnvelopeError::Version { found: v, known: VERSION });
        }
        let wire: Wire<'_> = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        check_kind(&wire.kind).map_err(|why| malformed(&why))?;
        check_id(&wire.id).map_err(|why| malformed(&why))?;
        let envelope = Envelope {
            kind: wire.kind,
            skip: wire.skip,
            id: wire.id,
            salt: wire.salt,
            body: wire.body.to_owned(),
        };
        if envelope.sum() != wire.sum {
            return Err(EnvelopeError::Checksum { id: envelope.id });
        }
        Ok(envelope)
    }
}

fn check_kind(kind: &str) -> Result<(), String> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    if kind.is_empty() || kind.len() > 64 || !kind.bytes().all(fine) {
        return Err(format!("{kind:?} is no kind of record"));
    }
    Ok(())
}

fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.len() > MAX_RECORD_ID_BYTES || id.chars().any(char::is_control) {
        return Err(format!(
            "the id of a record has 1 to {MAX_RECORD_ID_BYTES} bytes and no control characters, not {id:?}"
        ));
    }
    Ok(())
}
