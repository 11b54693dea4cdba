//! Content: how files are cut, and how pieces travel.

mod body;
mod cut;

pub(super) use body::{compress, decompress, max_body_bytes};
pub(super) use cut::Chunker;
pub use cut::{MAX_CHUNK_BYTES, SINGLE_CHUNK_BYTES};
