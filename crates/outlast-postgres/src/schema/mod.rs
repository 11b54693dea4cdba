//! The tables.

mod migrate;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use migrate::prepare;
