//! The lines of Claude Code's `stream-json`: only the fields that are used, borrowed from the line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::common::json::{Object, Text, text};

/// Any line.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) subtype: Option<Text<'a>>,
    /// The tool call whose sub-agent the line is about.
    #[serde(borrow, default)]
    pub(super) parent_tool_use_id: Option<Text<'a>>,
    /// Of a `stream_event`.
    #[serde(borrow, default)]
    pub(super) event: Option<Object<Delivery<'a>>>,
    /// Of `assistant` and `user`.
    #[serde(borrow, default)]
    pub(super) message: Option<Object<Message<'a>>>,
}

/// A `system` line of subtype `init`.
#[derive(Deserialize)]
pub(super) struct Init {
    pub(super) session_id: String,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) tools: Option<serde_json::Value>,
}

/// A `system` line of subtype `status`.
#[derive(Deserialize)]
pub(super) struct Status<'a> {
    #[serde(borrow, default)]
    pub(super) status: Option<Text<'a>>,
}

/// A piece of a message on its way from the model.
#[derive(Deserialize)]
pub(super) struct Delivery<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) message: Option<Object<Started<'a>>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<Object<Started<'a>>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Object<Delta<'a>>>,
}

/// What a message or a block of it begins with.
#[derive(Deserialize)]
pub(super) struct Started<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
}

/// What is added to a block. Pieces of a tool's arguments are not read: the whole follows in the message.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
}

/// A message, or some blocks of it.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
}

/// Text, or blocks.
#[derive(Default)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
    #[default]
    Other,
}

/// A block of a message, of any type.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    /// Of a tool call.
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    /// Of a tool's result: the call.
    #[serde(borrow, default)]
    pub(super) tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Content<'a>,
    #[serde(default)]
    pub(super) is_error: Option<bool>,
}

impl<'a> Content<'a> {
    /// The blocks; text alone is one of them.
    pub(super) fn into_blocks(self) -> Vec<Block<'a>> {
        match self {
            Content::Blocks(blocks) => blocks,
            Content::Text(text) => vec![Block {
                kind: "text".into(),
                text: Some(Text(text)),
                thinking: None,
                id: None,
                name: None,
                input: None,
                tool_use_id: None,
                content: Content::Other,
                is_error: None,
            }],
            Content::Other => Vec::new(),
        }
    }

    /// What a tool's result says. What is no text is named.
    pub(super) fn as_text(&self) -> Cow<'_, str> {
        match self {
            Content::Text(text) => Cow::Borrowed(text),
            Content::Other => Cow::Borrowed(""),
            Content::Blocks(blocks) => match blocks.as_slice() {
                [only] if only.text.is_some() => Cow::Borrowed(text(&only.text).unwrap_or_default()),
                _ => {
                    let parts = blocks.iter().map(|block| match text(&block.text) {
                        Some(text) => Cow::Borrowed(text),
                        None => Cow::Owned(format!("[{}]", block.kind)),
                    });
                    Cow::Owned(parts.collect::<Vec<_>>().join("\n"))
                }
            },
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element::<Block<'de>>()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::Other)
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Content::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
