//! Reading JSON that programs print, without copying it and without being strict about what does not matter.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Text that borrows from the line wherever it holds no escapes. (`Option<Cow<str>>` would always copy.)
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The text, if there is one.
pub(crate) fn text<'t>(field: &'t Option<Text<'_>>) -> Option<&'t str> {
    field.as_ref().map(|text| text.0.as_ref())
}

/// An object of the expected form, or anything that is no object: a field of the same name in a line of another kind.
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Object(None))
            }
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// Reads a line; where that fails because it holds half of a surrogate pair, reads it with U+FFFD in that place. Programs
/// in JavaScript print such halves where they cut a text in the middle of an emoji.
pub(crate) fn with_line<R>(line: &str, mut read: impl FnMut(&str) -> Option<R>) -> Option<R> {
    if let Some(value) = read(line) {
        return Some(value);
    }
    match repair_surrogates(line) {
        Cow::Owned(repaired) => read(&repaired),
        Cow::Borrowed(_) => None,
    }
}

/// The JSON text with every escape of half a surrogate pair replaced by U+FFFD: valid for strict readers too.
pub(crate) fn repair_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'\\') {
        let escape = at + found;
        match (unit(bytes, escape), unit(bytes, escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at = escape + 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str(&json[copied..escape]);
                out.push('\u{FFFD}');
                at = escape + 6;
                copied = at;
            }
            _ => at = (escape + 2).min(bytes.len()),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

/// The UTF-16 unit of the escape `\uXXXX` at this place.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced_and_pairs_kept() {
        assert_eq!(repair_surrogates(r#""a\ud83d""#), "\"a\u{FFFD}\"");
        assert_eq!(repair_surrogates(r#""\uDE00b""#), "\"\u{FFFD}b\"");
        assert_eq!(repair_surrogates(r#""\ud83d\ud83d\ude00""#), "\"\u{FFFD}\\ud83d\\ude00\"");
        for same in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e9""#, "\"é\"", "\\", "\\u", ""] {
            assert!(matches!(repair_surrogates(same), Cow::Borrowed(_)), "{same}");
        }
    }
}
