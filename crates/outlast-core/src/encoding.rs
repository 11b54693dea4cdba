//! Run ids as file names.
//!
//! The encoding is injective, so two runs never share a file; it yields no separator, no leading dot and no name that
//! a file system reserves. Names that cannot be decoded are never deleted by anything.

/// The longest encoded id in bytes. With the longest suffix of [`crate::journal::files`] it stays well below the 255
/// bytes that common file systems allow for a name.
pub const MAX_ENCODED_BYTES: usize = 150;

/// `A-Z a-z 0-9 -` stand for themselves, and so does a dot that is not the first character; every other byte of the
/// UTF-8 text becomes `_` and two lower-case hex digits. A name that Windows reserves for a device is escaped whole.
pub fn encode(id: &str) -> String {
    if is_device_name(id) {
        return id.bytes().map(escape).collect();
    }
    let mut out = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' => out.push(char::from(byte)),
            b'.' if at > 0 => out.push('.'),
            _ => out.push_str(&escape(byte)),
        }
    }
    out
}

/// The id behind an encoded name, or `None` where the name was not made by [`encode`]. The result is a key for the
/// store, never a path.
pub fn decode(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'_' {
            let pair = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.extend(crate::hex::decode(pair)?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    let id = String::from_utf8(bytes).ok()?;
    // Only the canonical spelling counts: otherwise two names would decode to one id.
    (!id.is_empty() && encode(&id) == name).then_some(id)
}

fn escape(byte: u8) -> String {
    format!("_{byte:02x}")
}

/// Whether Windows reserves the name (with or without an extension), compared without case.
fn is_device_name(id: &str) -> bool {
    let stem = id.split('.').next().unwrap_or(id).to_ascii_uppercase();
    match stem.as_str() {
        "CON" | "PRN" | "AUX" | "NUL" => true,
        _ => {
            let (head, tail) = stem.split_at_checked(3).unwrap_or((&stem, ""));
            matches!(head, "COM" | "LPT") && matches!(tail.as_bytes(), [b'1'..=b'9'])
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn table() {
        for (id, name) in [
            ("abc-1.2", "abc-1.2"),
            (".", "_2e"),
            ("..", "_2e."),
            ("../../x", "_2e._2f.._2fx"),
            ("_", "_5f"),
            ("CON", "_43_4f_4e"),
            ("con.txt", "_63_6f_6e_2e_74_78_74"),
            ("COM1", "_43_4f_4d_31"),
            ("COM10", "COM10"),
            ("é", "_c3_a9"),
            ("a b", "a_20b"),
        ] {
            assert_eq!(encode(id), name);
            assert_eq!(decode(name).as_deref(), Some(id));
        }
    }

    #[test]
    fn foreign_names_do_not_decode() {
        for name in ["", "_", "_4", "_zz", "_41", "a/b", "_C3_a9", "_ff", ".hidden", "a b"] {
            assert_eq!(decode(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn injective_and_safe(id in any::<String>().prop_filter("empty", |s| !s.is_empty())) {
            let name = encode(&id);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)));
            prop_assert!(!name.starts_with('.'));
            prop_assert_eq!(decode(&name), Some(id));
        }
    }
}
