//! What an agent prints is data: on a terminal it must not move the cursor, set titles or answer for the user.

/// One line: every control character becomes visible.
pub fn printable(text: &str) -> String {
    clean(text, |c| c == '\t')
}

/// Several lines: line breaks and tabs stay.
pub fn printable_text(text: &str) -> String {
    clean(text, |c| c == '\t' || c == '\n')
}

fn clean(text: &str, keep: impl Fn(char) -> bool) -> String {
    if !text.chars().any(|c| hazardous(c) && !keep(c)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if keep(c) || !hazardous(c) => out.push(c),
            '\r' => {}
            // The control pictures: ␛ for ESC.
            c if u32::from(c) < 0x20 => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

/// Control characters, and those that turn the direction of text around.
fn hazardous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_visible() {
        assert_eq!(printable_text("a\x1b[2Jb\r\nc\td"), "a␛[2Jb\nc\td");
        assert_eq!(printable("a\nb\u{202e}"), "a␊b\u{fffd}");
        assert_eq!(printable("plain é"), "plain é");
    }
}
