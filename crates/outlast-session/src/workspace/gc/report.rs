//! What a collection is told, and what it did.

use std::collections::BTreeSet;

use outlast_core::WorkspaceRef;
use serde::Serialize;

/// What a collection must know. Times in milliseconds since 1970.
#[derive(Debug, Clone)]
pub struct GcInput {
    /// All snapshots that something refers to. Complete: a caller that is not sure must not collect. Read after
    /// `oldest_pin`.
    pub live: BTreeSet<WorkspaceRef>,
    /// When the oldest snapshot began whose name is not in `live` yet; none where none is under way.
    pub oldest_pin: Option<u64>,
    /// The time.
    pub now: u64,
    /// How old an object must be to be put aside.
    pub grace: u64,
    /// How long it stays aside before it is deleted. Longer than a collection and a snapshot take together: what is
    /// put aside late in a collection bears the time at which that one began.
    pub quarantine_for: u64,
    /// How many live snapshots are to be expected: as many as last time, usually.
    pub previous_live: Option<u64>,
    /// Collects also if `live` has less than half of what is expected.
    pub force: bool,
    /// Tells what would be done, and does nothing.
    pub dry_run: bool,
}

impl GcInput {
    /// An hour of grace, a day of quarantine, nothing under way, nothing expected.
    pub fn new(live: BTreeSet<WorkspaceRef>, now: u64) -> GcInput {
        GcInput {
            live,
            oldest_pin: None,
            now,
            grace: 3_600_000,
            quarantine_for: 86_400_000,
            previous_live: None,
            force: false,
            dry_run: false,
        }
    }
}

/// What a collection did; in a dry run, would do. Counts objects, copies that were put aside included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GcReport {
    /// Snapshots that are live.
    pub live_refs: u64,
    /// Objects that were found.
    pub listed: u64,
    /// Of these, in use.
    pub live: u64,
    /// Of these, with keys that are not understood. They are kept.
    pub foreign: u64,
    /// Not in use, and too young to be put aside, or of an unknown age.
    pub kept: u64,
    /// Put aside before, and not for long enough yet.
    pub waiting: u64,
    /// Put aside long enough ago, and held by a snapshot that was under way then.
    pub held_by_pins: u64,
    /// In use and found aside only: copied back.
    pub restored: u64,
    /// Put aside.
    pub quarantined: u64,
    /// Their bytes.
    pub quarantined_bytes: u64,
    /// Deleted for good.
    pub deleted: u64,
    /// Their bytes.
    pub deleted_bytes: u64,
    /// In use and not found at all: snapshots that cannot be restored wholly.
    pub missing: Vec<String>,
}
