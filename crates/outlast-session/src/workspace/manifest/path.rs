//! Paths: any bytes, and one text for each.

/// Directory and name; the directory is empty for what lies in the root.
pub(in crate::workspace) fn parts(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// Bytes as text without spaces and control characters. What is neither printable nor UTF-8 becomes `%` and two
/// upper-case hexadecimal digits, `%` itself too; so different bytes have different texts.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    if bytes.iter().all(|b| matches!(b, 0x21..=0x7e) && *b != b'%') {
        out.extend(bytes.iter().map(|b| char::from(*b)));
        return out;
    }
    for piece in bytes.utf8_chunks() {
        for c in piece.valid().chars() {
            if c == '%' || c == ' ' || c.is_control() {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().for_each(|b| push(&mut out, b));
            } else {
                out.push(c);
            }
        }
        piece.invalid().iter().for_each(|b| push(&mut out, *b));
    }
    out
}

fn push(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// The inverse of [`escape`]; none for a text that it would not write.
pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        out.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = after;
    }
    (escape(&out) == text).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn legible_where_possible() {
        for (bytes, text) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            (b"100%", "100%25"),
            (b"a b", "a%20b"),
            (b"a\nb\x7f", "a%0Ab%7F"),
            ("é/日本".as_bytes(), "é/日本"),
            ("\u{85}".as_bytes(), "%C2%85"),
            (b"\xff\xc3", "%FF%C3"),
            (b"", ""),
        ] {
            assert_eq!(escape(bytes), text);
            assert_eq!(unescape(text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn one_text_for_each() {
        for text in ["%41", "%2f", "%C3%A9", "%", "%2", "%zz", "a b", "a\n", "%+1"] {
            assert_eq!(unescape(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unescape(&escape(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_refused_or_canonical(text in "[ -~é]{0,12}") {
            if let Some(bytes) = unescape(&text) {
                prop_assert_eq!(escape(&bytes), text);
            }
        }
    }
}
