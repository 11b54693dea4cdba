//! Hints between hosts. Sent outside of every transaction, since a notification within one makes commits wait for each
//! other; gathered, so that a busy run costs few; lost without harm, since whoever waits also looks by itself.

mod listen;
mod send;

pub(crate) use listen::listen_for_ever;
pub(crate) use send::Sender;

/// The channel, one for each schema.
pub(crate) const CHANNEL: &str = "SELECT 'outlast_' || md5(current_schema()::text)";
/// Between the run ids of one notification. No id holds a control character.
pub(crate) const BETWEEN: char = '\n';
