//! The transcript of a run: what was said and done, as messages. It is a fold over the stored log and nothing else.

mod fold;
mod message;

pub use fold::{Fold, Update, fold_log};
pub use message::{FunctionCall, Message, Role, ToolCall};
