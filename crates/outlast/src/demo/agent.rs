//! The demo agent as a process.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use outlast_core::event::Event;
use serde_json::json;

use super::script::{SCRIPT, Step};

/// The first argument with which this program is started as the demo agent.
pub const DEMO_COMMAND: &str = "__demo-agent";

/// The demo agent's command line; none where the path of this program is not known.
pub fn command() -> Option<Vec<String>> {
    let program = std::env::current_exe().ok()?.into_os_string().into_string().ok()?;
    Some(vec![program, DEMO_COMMAND.to_owned()])
}

/// Runs the demo agent if this process was started as one, and returns its exit status.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != DEMO_COMMAND {
        return None;
    }
    let pace = std::env::var("OUTLAST_DEMO_PACE").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    Some(match play(pace) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo agent: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Plays the script: says things word by word, thinks, writes files into the working directory and runs commands there.
fn play(pace: f64) -> std::io::Result<()> {
    let run = std::env::var("OUTLAST_RUN_ID").unwrap_or_else(|_| "demo".to_owned());
    let mut agent = Agent { run, ids: 0, pace };
    for step in SCRIPT {
        match step {
            Step::Think(text) => agent.think(text)?,
            Step::Say(text) => agent.say(text)?,
            Step::Write { path, content } => agent.write(path, content)?,
            Step::Shell(line) => agent.shell(line)?,
        }
    }
    Ok(())
}

struct Agent {
    run: String,
    ids: u32,
    pace: f64,
}

impl Agent {
    fn id(&mut self) -> String {
        self.ids += 1;
        format!("{}-demo-{}", self.run, self.ids)
    }

    fn emit(&self, event: &Event<'_>) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", event.chunk().json)?;
        out.flush()
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a scripted agent that takes its time, not part of the product's flow"
    )]
    fn pause(&self, millis: u64) {
        std::thread::sleep(Duration::from_millis(millis).mul_f64(self.pace.max(0.0)));
    }

    fn think(&mut self, text: &str) -> std::io::Result<()> {
        let id = self.id();
        self.emit(&Event::ReasoningStart { message_id: id.as_str().into() })?;
        self.emit(&Event::ReasoningMessageStart { message_id: id.as_str().into(), role: "reasoning" })?;
        for word in text.split_inclusive(' ') {
            self.emit(&Event::ReasoningMessageContent {
                message_id: id.as_str().into(),
                delta: word.into(),
            })?;
            self.pause(60);
        }
        self.emit(&Event::ReasoningMessageEnd { message_id: id.as_str().into() })?;
        self.emit(&Event::ReasoningEnd { message_id: id.as_str().into() })
    }

    fn say(&mut self, text: &str) -> std::io::Result<()> {
        let id = self.id();
        self.emit(&Event::TextMessageStart { message_id: id.as_str().into(), role: "assistant" })?;
        for word in text.split_inclusive(' ') {
            self.emit(&Event::TextMessageContent { message_id: id.as_str().into(), delta: word.into() })?;
            self.pause(90);
        }
        self.emit(&Event::TextMessageEnd { message_id: id.as_str().into() })?;
        self.pause(300);
        Ok(())
    }

    fn write(&mut self, path: &str, content: &str) -> std::io::Result<()> {
        let call = self.begin("write_file", &json!({"path": path, "content": content}).to_string())?;
        self.pause(700);
        if let Some(parent) = std::path::Path::new(path).parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)?;
        self.end(&call, &format!("wrote {} bytes", content.len()), false)
    }

    fn shell(&mut self, line: &str) -> std::io::Result<()> {
        let call = self.begin("shell", &json!({"command": line}).to_string())?;
        self.pause(600);
        let output = std::process::Command::new("sh").arg("-c").arg(line).output()?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        self.end(&call, &text, !output.status.success())
    }

    fn begin(&mut self, name: &str, arguments: &str) -> std::io::Result<String> {
        let call = self.id();
        self.emit(&Event::ToolCallStart {
            tool_call_id: call.as_str().into(),
            tool_call_name: name.into(),
            parent_message_id: None,
            metadata: None,
        })?;
        self.emit(&Event::ToolCallArgs { tool_call_id: call.as_str().into(), delta: arguments.into() })?;
        self.emit(&Event::ToolCallEnd { tool_call_id: call.as_str().into() })?;
        Ok(call)
    }

    fn end(&mut self, call: &str, content: &str, failed: bool) -> std::io::Result<()> {
        let id = self.id();
        self.emit(&Event::ToolCallResult {
            message_id: id.as_str().into(),
            tool_call_id: call.into(),
            content: content.into(),
            role: "tool",
            metadata: failed.then(|| json!({"tanstack": {"state": "output-error"}})),
        })?;
        self.pause(400);
        Ok(())
    }
}
