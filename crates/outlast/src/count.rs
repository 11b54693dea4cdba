//! Numbers of things.

/// `1 run`, `2 runs`, `3 bodies`.
pub(crate) fn count(n: u64, one: &str) -> String {
    if n == 1 {
        return format!("1 {one}");
    }
    match one.as_bytes() {
        [stem @ .., before, b'y'] if !b"aeiou".contains(before) => {
            format!("{n} {}{}ies", String::from_utf8_lossy(stem), char::from(*before))
        }
        [.., b'x'] => format!("{n} {one}es"),
        _ => format!("{n} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_many() {
        let told = [
            (1, "body", "1 body"),
            (0, "body", "0 bodies"),
            (2, "entry", "2 entries"),
            (2, "delay", "2 delays"),
            (3, "sandbox", "3 sandboxes"),
            (1, "sandbox", "1 sandbox"),
            (12, "live run", "12 live runs"),
        ];
        for (n, one, text) in told {
            assert_eq!(count(n, one), text);
        }
    }
}
