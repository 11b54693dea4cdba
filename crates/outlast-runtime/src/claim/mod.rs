//! Claims that this host holds.

mod held;
mod renew;

pub(crate) use held::{Claims, Held};
pub(crate) use renew::renew_for_ever;
