//! Why a body cannot be had.

use outlast_core::ledger::PointerError;

use crate::objects::ObjectsError;

/// Of the operations on [`super::Bodies`].
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The pointer leads nowhere, out of its session, or to something else than was put.
    #[error(transparent)]
    Pointer(#[from] PointerError),
    /// Object storage failed; another try may succeed.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}
