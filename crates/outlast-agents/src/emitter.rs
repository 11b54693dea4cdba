//! Where a translator puts its events.

use outlast_core::event::{Chunk, Event};

/// Collects a translator's events and draws its ids.
#[derive(Debug)]
pub struct Emitter<'a> {
    run_id: &'a str,
    ids: &'a mut u64,
    chunks: &'a mut Vec<Chunk>,
}

impl<'a> Emitter<'a> {
    /// Collects into `chunks`; `ids` counts the ids drawn so far.
    pub fn new(run_id: &'a str, ids: &'a mut u64, chunks: &'a mut Vec<Chunk>) -> Self {
        Emitter { run_id, ids, chunks }
    }

    /// Adds an event.
    pub fn emit(&mut self, event: &Event<'_>) {
        self.chunks.push(event.chunk());
    }

    /// Adds an event whose JSON exists already.
    pub fn emit_chunk(&mut self, chunk: Chunk) {
        self.chunks.push(chunk);
    }

    /// Draws the next id, `<run_id>-<n>` with n from 0: the same at every translation, unique across runs.
    pub fn next_id(&mut self) -> String {
        let id = format!("{}-{}", self.run_id, self.ids);
        *self.ids += 1;
        id
    }

    /// An id of the agent's own (`item_3`), made unique across runs.
    pub fn own_id(&self, id: &str) -> String {
        // A bare number would be one of those that `next_id` draws.
        let mark = if id.bytes().all(|byte| byte.is_ascii_digit()) { "own-" } else { "" };
        format!("{}-{mark}{id}", self.run_id)
    }
}
