//! The tables.

mod migrate;
mod sessions;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use migrate::prepare;
