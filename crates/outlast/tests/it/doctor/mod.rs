//! `outlast doctor`, what `outlast serve` warns of, and the service's unit.

mod ending;
mod here;
pub mod report;
mod systemd;
mod unit;
