//! How each agent is launched, and how its output becomes events.
//!
//! An [`Agent`] knows one kind of agent: its command line ([`Agent::plan`]) and its output ([`Translator`]).
//! [`Translation`] feeds a journal's bytes to a translator and yields events with their origins. [`agent()`] finds the kinds
//! that are built in: [`Command`], [`ClaudeCode`], [`Codex`].
//!
//! # A kind of your own
//!
//! A translator sees one line at a time and must depend on nothing but the lines: a successor on another host, restored
//! from [`Translator::state`], goes on with the next line, and a replay from the start must yield the same events.
//! [`testing::check_translator`] checks that.
//!
//! Here is an agent that prints `say …` for what it says, and `do …` and `did …` around what it does:
//!
//! ```
//! use outlast_agents::testing::{check_translator, translate};
//! use outlast_agents::*;
//! use outlast_core::event::Event;
//! use outlast_core::run::RunError;
//! use outlast_core::ErrorCode;
//! use serde_json::{Value, json};
//!
//! #[derive(Debug)]
//! struct Parrot;
//!
//! impl Agent for Parrot {
//!     fn kind(&self) -> &'static str {
//!         "parrot"
//!     }
//!     fn state_version(&self) -> u32 {
//!         1
//!     }
//!     fn usual_env(&self) -> &'static [&'static str] {
//!         &["PARROT_API_KEY"]
//!     }
//!     fn plan(&self, request: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError> {
//!         let mut argv = vec!["parrot".to_owned(), "--lines".to_owned()];
//!         if let Some(model) = &request.spec.model {
//!             argv.extend(["--model".to_owned(), model.clone()]);
//!         }
//!         // The prompt is the standard input, so that no list of processes shows it.
//!         Ok(LaunchPlan { argv, prompt: request.spec.prompt.clone(), ..LaunchPlan::default() })
//!     }
//!     fn translator(&self, _: &RunContext) -> Box<dyn Translator> {
//!         Box::new(ParrotTranslator { call: None })
//!     }
//!     fn resume(&self, _: &RunContext, state: &Value) -> Result<Box<dyn Translator>, StateUnreadable> {
//!         match state {
//!             Value::Null => Ok(Box::new(ParrotTranslator { call: None })),
//!             Value::String(id) => Ok(Box::new(ParrotTranslator { call: Some(id.clone()) })),
//!             other => Err(StateUnreadable(format!("{other} is neither null nor text"))),
//!         }
//!     }
//! }
//!
//! /// Remembers the tool call that has no result yet.
//! struct ParrotTranslator {
//!     call: Option<String>,
//! }
//!
//! impl ParrotTranslator {
//!     fn settle(&mut self, content: &str, out: &mut Emitter<'_>) {
//!         if let Some(id) = self.call.take() {
//!             let message_id = out.next_id().into();
//!             let content = content.into();
//!             out.emit(&Event::ToolCallResult {
//!                 message_id, tool_call_id: id.into(), content, role: "tool", metadata: None,
//!             });
//!         }
//!     }
//! }
//!
//! impl Translator for ParrotTranslator {
//!     fn line(&mut self, line: PrintedLine<'_>, out: &mut Emitter<'_>) {
//!         let PrintedLine::Bytes { bytes, .. } = line else { return };
//!         let text = String::from_utf8_lossy(bytes);
//!         if let Some(said) = text.strip_prefix("say ") {
//!             let id = out.next_id();
//!             out.emit(&Event::TextMessageStart { message_id: id.as_str().into(), role: "assistant" });
//!             out.emit(&Event::TextMessageContent { message_id: id.as_str().into(), delta: said.into() });
//!             out.emit(&Event::TextMessageEnd { message_id: id.into() });
//!         } else if let Some(what) = text.strip_prefix("do ") {
//!             self.settle("nothing came of it", out);
//!             let id = out.next_id();
//!             let tool_call_id = || id.as_str().into();
//!             out.emit(&Event::ToolCallStart {
//!                 tool_call_id: tool_call_id(), tool_call_name: "do".into(), parent_message_id: None, metadata: None,
//!             });
//!             let delta = json!({"what": what}).to_string().into();
//!             out.emit(&Event::ToolCallArgs { tool_call_id: tool_call_id(), delta });
//!             out.emit(&Event::ToolCallEnd { tool_call_id: tool_call_id() });
//!             self.call = Some(id);
//!         } else if let Some(result) = text.strip_prefix("did ") {
//!             self.settle(result, out);
//!         } else {
//!             // Nothing that an agent prints is an error, and nothing is lost.
//!             let event = serde_json::value::to_raw_value(&text).expect("text is JSON");
//!             out.emit(&Event::Raw { event: &event, source: "parrot".into() });
//!         }
//!     }
//!     fn finish(&mut self, exit: &AgentExit, out: &mut Emitter<'_>) -> Ended {
//!         self.settle("the parrot flew away", out);
//!         let failure = (exit.status != Some(0)).then(|| RunError::new(ErrorCode::AgentFailed, exit.stderr_tail.clone()));
//!         Ended { failure, ..Ended::default() }
//!     }
//!     fn state(&self) -> Value {
//!         json!(self.call)
//!     }
//!     fn session(&self) -> Option<&str> {
//!         None
//!     }
//! }
//!
//! let context = RunContext { run_id: "r".into(), thread_id: "t".into(), model: None };
//! let output = b"say hello\ndo fly\ndid far\n?\ndo fly";
//! let good = AgentExit { status: Some(0), ..AgentExit::default() };
//! let translated = translate(&Parrot, &context, output, &good);
//! assert_eq!(translated.ended, Ended::default());
//! assert_eq!(translated.events[1].1.json, r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-0","delta":"hello"}"#);
//! check_translator(&Parrot, &context, output)?;
//! # Ok::<(), outlast_agents::testing::Violation>(())
//! ```

mod agent;
mod claude_code;
mod codex;
mod command;
mod common;
mod emitter;
mod registry;
pub mod testing;
mod translation;

pub use agent::{
    Agent, AgentExit, Ended, FallbackPlan, LaunchPlan, LaunchRequest, PlanError, PrintedLine, RunContext,
    StateUnreadable, Translator,
};
pub use claude_code::ClaudeCode;
pub use codex::Codex;
pub use command::Command;
pub use emitter::Emitter;
pub use registry::{KINDS, agent};
pub use translation::{JournalEnd, Progress, Translation};
