//! A scripted model: it speaks Anthropic's Messages and OpenAI's Responses on loopback and remembers what it was told.

mod anthropic;
mod http;
mod openai;
mod script;
mod server;

pub use script::{DONE, LOOKING, Said, answer};
pub use server::Endpoint;
