//! What the kinds of agents share.

pub(crate) mod calls;
pub(crate) mod conversation;
pub(crate) mod exit;
pub(crate) mod flags;
pub(crate) mod json;
pub(crate) mod notices;
pub(crate) mod session;
