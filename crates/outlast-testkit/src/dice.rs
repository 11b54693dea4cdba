//! Chance, from a seed.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_store::Entropy;

/// One stream of chance. Who shares a seed and draws in the same order draws the same.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True so many times in a thousand.
    pub fn permille(&self, chance: u32) -> bool {
        self.with(|rng| rng.u32(0..1000) < chance)
    }

    /// A number of the range, both ends included.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        self.with(|rng| rng.u64(from..=to))
    }

    /// A place in a list of this length; 0 for an empty one.
    pub fn pick(&self, length: usize) -> usize {
        self.with(|rng| if length == 0 { 0 } else { rng.usize(0..length) })
    }

    /// Another stream, which draws independently of this one from now on.
    pub fn fork(&self) -> Dice {
        Dice::new(self.with(|rng| rng.u64(..)))
    }
}

impl Entropy for Dice {
    fn bytes(&self) -> [u8; 16] {
        self.with(|rng| rng.u128(..)).to_le_bytes()
    }
}
