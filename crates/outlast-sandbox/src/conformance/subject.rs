//! What the suite needs to know of a provider under test.

use std::sync::Arc;

use outlast_core::shim::FenceChoice;
use outlast_store::Ports;

use crate::Provider;

/// A provider under test. Every case makes instances of its own.
pub trait Subject: Send + Sync {
    /// The provider, as another host's process would open it: the same sandboxes, nothing shared in memory.
    fn provider(&self) -> Arc<dyn Provider>;

    /// Which fence to ask for.
    fn fence(&self) -> FenceChoice;

    /// Time and randomness.
    fn ports(&self) -> Ports;

    /// The living processes that hold this text in their arguments or environment, found without any help of the
    /// provider or its fence.
    fn census(&self, marker: &str) -> Vec<i32> {
        census(marker)
    }
}

/// The living processes of this machine that hold this text in their arguments or environment. Zombies do not live.
pub fn census(marker: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let holds = |file: &str| {
            std::fs::read(entry.path().join(file))
                .is_ok_and(|bytes| bytes.windows(marker.len()).any(|piece| piece == marker.as_bytes()))
        };
        let living = outlast_shim::process::identify(pid).is_some_and(outlast_shim::process::alive);
        if living && pid != std::process::id() as i32 && (holds("cmdline") || holds("environ")) {
            found.push(pid);
        }
    }
    found
}
