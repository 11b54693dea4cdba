//! The name of a session.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Tenant, ThreadId};

/// The session of one thread: a UUID of version 5 (RFC 9562) of deployment, tenant and thread, so that every host knows
/// it without asking, and no other deployment has it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The text is no session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no session id: it is a UUID in lower case, 8-4-4-4-12 hex digits")]
pub struct SessionIdError(pub String);

impl SessionId {
    /// The session of this thread.
    pub fn of(deployment: &str, tenant: &Tenant, thread: &ThreadId) -> SessionId {
        let space = Uuid::parse_str(deployment)
            .unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, deployment.as_bytes()));
        // A thread id has no NUL, so no two pairs have the same text.
        let name = format!("{}\0{thread}", tenant.as_str());
        SessionId(Uuid::new_v5(&space, name.as_bytes()).to_string())
    }

    /// Reads the printed form.
    pub fn parse(text: &str) -> Result<SessionId, SessionIdError> {
        match Uuid::parse_str(text) {
            Ok(id) if id.hyphenated().to_string() == text => Ok(SessionId(text.to_owned())),
            _ => Err(SessionIdError(text.to_owned())),
        }
    }

    /// The printed form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the keys of the session's objects begin with, without a slash at the end.
    pub fn objects_prefix(&self) -> String {
        format!("sessions/{}", self.0)
    }

    /// What the keys of its bodies begin with, without a slash at the end.
    pub fn blobs_prefix(&self) -> String {
        format!("sessions/{}/blobs", self.0)
    }
}

impl std::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;
    fn try_from(text: String) -> Result<Self, SessionIdError> {
        SessionId::parse(&text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.0
    }
}
