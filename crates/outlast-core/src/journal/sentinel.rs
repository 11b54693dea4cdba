//! The exit sentinel: the line `{"__exit":N,"__nonce":"<secret>"}` that the shim appends after the agent's tree has
//! ended.

use serde::Deserialize;

use crate::ExitSecret;

/// The sentinel with the line breaks around it, as the shim appends it in one write. The leading break ends a last
/// line that the agent left open; what the agent printed is therefore everything before that break.
pub fn block(exit: i32, secret: &ExitSecret) -> String {
    format!("\n{{\"__exit\":{exit},\"__nonce\":\"{}\"}}\n", secret.reveal())
}

/// The exit status in the line, if it is this run's sentinel. A line with another secret, or without one, is data.
pub fn parse(line: &[u8], secret: &ExitSecret) -> Option<i32> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line<'a> {
        __exit: i32,
        __nonce: &'a str,
    }
    // Cheap refusal first: this runs on every line that an agent prints.
    if !line.starts_with(b"{\"__exit\":") {
        return None;
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    (line.__nonce == secret.reveal()).then_some(line.__exit)
}

/// The line that a shim puts into the journal before the second attempt of a launch.
pub fn restart_note(secret: &ExitSecret) -> String {
    format!("{{\"__restart\":1,\"__nonce\":\"{}\"}}", secret.reveal())
}

/// Whether the line is this run's [`restart_note`].
pub fn is_restart(line: &[u8], secret: &ExitSecret) -> bool {
    line.starts_with(b"{\"__restart\":") && line == restart_note(secret).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_sentinel_counts() {
        let secret = ExitSecret::from_bytes([7; 16]);
        let block = block(3, &secret);
        assert_eq!(block, "\n{\"__exit\":3,\"__nonce\":\"07070707070707070707070707070707\"}\n");
        assert_eq!(parse(block.trim().as_bytes(), &secret), Some(3));
        for forged in [
            r#"{"__exit":0}"#,
            r#"{"__exit":0,"__nonce":""}"#,
            r#"{"__exit":0,"__nonce":"08070707070707070707070707070707"}"#,
            r#"{"__exit":0.5,"__nonce":"07070707070707070707070707070707"}"#,
            r#"{"__exit":"0","__nonce":"07070707070707070707070707070707"}"#,
            r#"x{"__exit":0,"__nonce":"07070707070707070707070707070707"}"#,
            r#"{"__exit":0,"__nonce":"07070707070707070707070707070707","x":1}"#,
        ] {
            assert_eq!(parse(forged.as_bytes(), &secret), None, "{forged}");
        }
    }
}
