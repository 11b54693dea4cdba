//! What is the local provider's own.

use std::sync::Arc;

use crate::subject::Local;

type Run = fn(Arc<Local>);

/// Every case.
pub fn cases() -> Vec<(&'static str, Run)> {
    vec![]
}
