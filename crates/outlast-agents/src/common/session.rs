//! Session ids that follow from a run's id.

use outlast_core::{canonical, hex};
use serde_json::json;

/// A UUID (version 8: of the maker's own design) that belongs to this run of this kind in this deployment, the same at
/// every attempt to launch it.
pub(crate) fn uuid_of_run(deployment: &str, kind: &str, run_id: &str) -> String {
    let digest = canonical::digest(
        &json!({"outlast": "session", "deployment": deployment, "kind": kind, "runId": run_id}),
    );
    let mut bytes = hex::decode(&digest).unwrap_or_default();
    bytes.resize(16, 0);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(&bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_one_uuid_for_ever() {
        // Changing this value would let a run be started twice across an upgrade.
        let uuid = uuid_of_run("d", "claude-code", "r");
        assert_eq!(uuid, "74ade8af-ba12-8c55-a047-81259c634885");
        assert_ne!(uuid_of_run("d", "claude-code", "r2"), uuid);
        assert_ne!(uuid_of_run("d2", "claude-code", "r"), uuid);
        assert_ne!(uuid_of_run("d", "codex", "r"), uuid);
    }
}
