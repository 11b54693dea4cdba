//! Text fields of events that somebody else wrote.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A field that is text in most events. Borrows where the JSON has no escapes; anything that is no text (the `delta` of
/// a state, say) reads as the empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LooseText<'a>(pub Cow<'a, str>);

impl std::ops::Deref for LooseText<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LooseText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Cow::Borrowed(""))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Cow::Borrowed(""))
            }
        }

        deserializer.deserialize_any(Reader).map(LooseText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_everything_else() {
        let read = |json: &'static str| serde_json::from_str::<LooseText<'static>>(json).expect("json").0;
        assert!(matches!(read(r#""plain é""#), Cow::Borrowed("plain é")));
        assert!(matches!(read(r#""a\nb""#), Cow::Owned(text) if text == "a\nb"));
        for other in ["null", "1", "-1.5", "true", r#"[1,{"a":[]}]"#, r#"{"a":{"b":"c"}}"#] {
            assert_eq!(read(other), "", "{other}");
        }
    }
}
