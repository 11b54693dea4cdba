//! What lasts of a thread beyond its delivery logs and sandboxes.

pub mod objects;
