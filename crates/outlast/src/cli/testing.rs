//! What only tests can ask for. Compiled in with the feature `failpoints`, never in a release.

use std::sync::Arc;

use outlast_store::SystemClock;

use crate::LocalOptions;

/// `OUTLAST_TEST_BOOT_ID=TEXT`: the machine was restarted since everything that was written under another id.
pub fn simulate_reboot(options: &mut LocalOptions) {
    if let Ok(boot_id) = std::env::var("OUTLAST_TEST_BOOT_ID") {
        options.ports.clock = Arc::new(SystemClock::with_boot_id(boot_id));
    }
}
