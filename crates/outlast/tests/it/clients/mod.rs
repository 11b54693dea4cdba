//! The published clients, unmodified, against `outlast serve`, through a proxy that loses connections. What they do stands
//! in `tests/clients`.

mod browser;
mod node;
mod script;
mod stage;
