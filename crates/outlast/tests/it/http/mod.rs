//! `outlast serve`: the promises of the wire, with real sockets and the real binary.

mod access;
mod again;
mod beat;
pub mod client;
mod cut;
mod described;
mod ending;
mod ids;
mod joining;
mod leaving;
mod limits;
mod messages;
mod native;
mod opening;
mod presence;
mod runs;
pub mod site;
mod stalled;
mod stop;
mod takeover;
mod threads;
mod wire;
