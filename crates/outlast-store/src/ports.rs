//! The only ways to time and randomness.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ExitSecret, InstanceId, Nonce, OwnerId};

/// Time. Injected everywhere, so that the whole runtime can run under simulated time.
#[async_trait::async_trait]
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Milliseconds since 1970, for people and for retention. May jump.
    fn wall_ms(&self) -> u64;
    /// Milliseconds since the boot, on a clock that never goes back and also runs while the machine sleeps.
    fn boot_ms(&self) -> u64;
    /// The kernel's id of this boot: another one makes every `boot_ms` of before meaningless.
    fn boot_id(&self) -> String;
    /// Returns after the time has passed.
    async fn sleep(&self, time: Duration);
}

/// Randomness.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Sixteen bytes that nobody can guess.
    fn bytes(&self) -> [u8; 16];

    /// A fresh secret for a sentinel.
    fn exit_secret(&self) -> ExitSecret {
        ExitSecret::from_bytes(self.bytes())
    }

    /// A fresh nonce.
    fn nonce(&self) -> Nonce {
        Nonce::from_bytes(self.bytes())
    }

    /// A fresh id of 32 hex digits.
    fn hex_id(&self) -> String {
        outlast_core::hex::encode(&self.bytes())
    }

    /// A fresh UUID of version 4 (RFC 9562).
    fn uuid(&self) -> String {
        let mut bytes = self.bytes();
        bytes[6] = (bytes[6] & 0x0F) | 0x40;
        bytes[8] = (bytes[8] & 0x3F) | 0x80;
        let hex = outlast_core::hex::encode(&bytes);
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    /// A fresh owner id.
    fn owner_id(&self) -> OwnerId {
        // Hex digits are a valid id of every kind.
        OwnerId::new(self.hex_id()).unwrap_or_else(|_| unreachable!("hex is a valid id"))
    }

    /// A fresh instance id of this deployment.
    fn instance_id_of(&self, deployment: &str) -> InstanceId {
        InstanceId::labelled(deployment, &self.hex_id()).unwrap_or_else(|_| unreachable!("hex is a valid id"))
    }

    /// A fresh instance id of no deployment.
    fn instance_id(&self) -> InstanceId {
        InstanceId::new(self.hex_id()).unwrap_or_else(|_| unreachable!("hex is a valid id"))
    }
}

/// The ports that a store and a runtime need.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Ports {
    /// The machine's own.
    pub fn system() -> Ports {
        Ports { clock: Arc::new(SystemClock::new()), entropy: Arc::new(SystemEntropy) }
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    boot_id: String,
}

impl SystemClock {
    /// Reads the boot id once. Where the kernel tells none, every process counts as a boot of its own, so that a lease
    /// of another process is never taken for a running one by mistake of clocks.
    pub fn new() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_or_else(|_| format!("unknown-{}", std::process::id()), |text| text.trim().to_owned());
        SystemClock { boot_id }
    }

    /// The machine's clocks with another boot id: what a reboot looks like to what was written before it.
    pub fn with_boot_id(boot_id: impl Into<String>) -> Self {
        SystemClock { boot_id: boot_id.into() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait::async_trait]
impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the port")]
    fn wall_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, outlast_core::duration::millis)
    }

    fn boot_ms(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        seconds * 1000 + nanos / 1_000_000
    }

    fn boot_id(&self) -> String {
        self.boot_id.clone()
    }

    #[allow(clippy::disallowed_methods, reason = "this is the port")]
    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// The machine's random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[allow(clippy::disallowed_methods, reason = "this is the port")]
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Without randomness there is no secret and no unique id, so nothing can go on; the kernel's source does not
        // fail once it is initialised.
        if let Err(error) = getrandom::fill(&mut bytes) {
            unreachable!("the system has no randomness: {error}");
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Always(u8);

    impl Entropy for Always {
        fn bytes(&self) -> [u8; 16] {
            [self.0; 16]
        }
    }

    #[test]
    fn uuids_say_that_they_are_random() {
        assert_eq!(Always(0xFF).uuid(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Always(0).uuid(), "00000000-0000-4000-8000-000000000000");
    }
}
