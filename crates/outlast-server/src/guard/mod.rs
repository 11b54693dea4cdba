//! Who may ask.

mod check;
mod origin;
mod token;

pub(crate) use check::{check, cors};
pub use token::Token;
