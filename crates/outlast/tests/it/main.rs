//! The promises, end to end: real processes, real signals, the real binary.

mod cancelled;
mod clients;
mod configuration;
mod conversation;
mod doctor;
mod embed;
mod failures;
mod frozen;
mod http;
mod human;
mod identity;
mod killed;
mod names;
mod output;
mod postgres;
mod pruned;
mod real_agents;
mod reaped;
mod sessions;
mod shown;
mod store;
mod support;
mod terminal;
mod verified;
mod viewers;
