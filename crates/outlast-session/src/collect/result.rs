//! What a collection has done, and why it has stopped.

use outlast_core::ledger::SessionId;
use serde::Serialize;

/// What one pass has done. After a whole one, `scanned` is the sum of `referenced`, `kept` and `deleted`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GcResult {
    /// How many objects the session has.
    pub scanned: u64,
    /// To how many of them something points.
    pub referenced: u64,
    /// How many others are kept: too young, of unknown age, or with a name that is no digest.
    pub kept: u64,
    /// How many are gone.
    pub deleted: u64,
    /// Their keys, in order.
    pub deleted_keys: Vec<String>,
    /// Whether this is only what would be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The lease is not held, or not any more.
#[derive(Debug, thiserror::Error)]
#[error("the lease on session {session_id} (epoch {epoch}) is not held: nothing more was deleted")]
pub struct GcLeaseNotHeld {
    /// The session.
    pub session_id: SessionId,
    /// The epoch of the lease.
    pub epoch: u64,
    /// What was done before.
    pub partial: GcResult,
}

/// The ledger could not be read to its end, so it is not known what is live. Nothing was deleted.
#[derive(Debug, thiserror::Error)]
#[error("session {session_id} cannot be scanned, so nothing was deleted: {cause}")]
pub struct GcScan {
    /// The session.
    pub session_id: SessionId,
    /// Why.
    pub cause: String,
}

/// The objects could not be listed. Nothing was deleted.
#[derive(Debug, thiserror::Error)]
#[error("{prefix} cannot be listed, so nothing was deleted: {cause}")]
pub struct GcList {
    /// What was to be listed.
    pub prefix: String,
    /// Why.
    pub cause: String,
}

/// An object could not be deleted. What was deleted before stays so; another pass finishes.
#[derive(Debug, thiserror::Error)]
#[error("{key} cannot be deleted: {cause}")]
pub struct GcDelete {
    /// The object.
    pub key: String,
    /// Why.
    pub cause: String,
    /// What was done before.
    pub partial: GcResult,
}

/// Of [`super::ObjectGc::gc`].
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// See [`GcLeaseNotHeld`].
    #[error(transparent)]
    LeaseNotHeld(#[from] GcLeaseNotHeld),
    /// See [`GcScan`].
    #[error(transparent)]
    Scan(#[from] GcScan),
    /// See [`GcList`].
    #[error(transparent)]
    List(#[from] GcList),
    /// See [`GcDelete`].
    #[error(transparent)]
    Delete(#[from] GcDelete),
}

impl GcError {
    /// What was done before it stopped.
    pub fn partial(&self) -> GcResult {
        match self {
            GcError::LeaseNotHeld(error) => error.partial.clone(),
            GcError::Delete(error) => error.partial.clone(),
            GcError::Scan(_) | GcError::List(_) => GcResult::default(),
        }
    }
}
