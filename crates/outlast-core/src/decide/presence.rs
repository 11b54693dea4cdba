//! Since when does nobody watch this run?

/// The latest of the acceptance and the times until which viewers count, once it has passed and the run lives. All
/// times in milliseconds since 1970 on the store's clock.
pub fn detached_since(
    accepted_at: u64,
    latest_presence: Option<u64>,
    now: u64,
    terminal: bool,
) -> Option<u64> {
    let since = latest_presence.map_or(accepted_at, |until| until.max(accepted_at));
    (!terminal && since <= now).then_some(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        assert_eq!(detached_since(10, None, 10, false), Some(10));
        assert_eq!(detached_since(10, Some(50), 49, false), None);
        assert_eq!(detached_since(10, Some(50), 50, false), Some(50));
        assert_eq!(detached_since(10, Some(5), 60, false), Some(10));
        assert_eq!(detached_since(10, None, 60, true), None);
    }
}
