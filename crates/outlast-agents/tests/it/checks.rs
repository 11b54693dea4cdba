//! Translators that must not pass the check.

use std::sync::atomic::{AtomicU64, Ordering};

use outlast_agents::testing::check_translator;
use outlast_agents::{
    Agent, AgentExit, Emitter, Ended, LaunchPlan, LaunchRequest, PlanError, PrintedLine, RunContext,
    StateUnreadable, Translator,
};
use outlast_core::event::Event;
use serde_json::{Value, json};

use crate::support::context;

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    ForgetsOnRestore,
    CannotReadItsState,
    CountsInTheProcess,
    LeavesTheMessageOpen,
    ForgetsItsSession,
    JudgesByMemoryThatIsNotStored,
}

static PROCESS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Faulty(Fault);

struct FaultyTranslator {
    fault: Fault,
    lines: u64,
    since_restore: u64,
    session: Option<String>,
}

impl Faulty {
    fn at(&self, lines: u64) -> Box<dyn Translator> {
        Box::new(FaultyTranslator { fault: self.0, lines, since_restore: 0, session: None })
    }
}

impl Agent for Faulty {
    fn kind(&self) -> &'static str {
        "faulty"
    }
    fn state_version(&self) -> u32 {
        1
    }
    fn usual_env(&self) -> &'static [&'static str] {
        &[]
    }
    fn plan(&self, _: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError> {
        Ok(LaunchPlan::default())
    }
    fn translator(&self, _: &RunContext) -> Box<dyn Translator> {
        self.at(0)
    }
    fn resume(&self, _: &RunContext, state: &Value) -> Result<Box<dyn Translator>, StateUnreadable> {
        match self.0 {
            Fault::CannotReadItsState => Err(StateUnreadable("no".into())),
            Fault::ForgetsOnRestore => Ok(self.at(0)),
            _ => Ok(self.at(state.as_u64().unwrap_or_default())),
        }
    }
}

impl Translator for FaultyTranslator {
    fn line(&mut self, _: PrintedLine<'_>, out: &mut Emitter<'_>) {
        self.lines += 1;
        self.since_restore += 1;
        let number = match self.fault {
            Fault::CountsInTheProcess => PROCESS.fetch_add(1, Ordering::Relaxed),
            _ => self.lines,
        };
        if self.fault == Fault::ForgetsItsSession && self.lines == 1 {
            self.session = Some("s".into());
        }
        let id = out.next_id();
        out.emit(&Event::TextMessageStart { message_id: id.as_str().into(), role: "assistant" });
        let delta = number.to_string().into();
        out.emit(&Event::TextMessageContent { message_id: id.as_str().into(), delta });
        if self.fault != Fault::LeavesTheMessageOpen {
            out.emit(&Event::TextMessageEnd { message_id: id.into() });
        }
    }
    fn finish(&mut self, _: &AgentExit, _: &mut Emitter<'_>) -> Ended {
        let result = (self.fault == Fault::JudgesByMemoryThatIsNotStored).then(|| json!(self.since_restore));
        Ended { result, ..Ended::default() }
    }
    fn state(&self) -> Value {
        json!(self.lines)
    }
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

#[test]
fn every_fault_is_found_and_named() {
    let check = |fault| check_translator(&Faulty(fault), &context(), b"a\nb\nc");
    assert_eq!(check(Fault::None), Ok(()));
    let expected = [
        (Fault::ForgetsOnRestore, "restoring after every line changes event 4"),
        (Fault::CannotReadItsState, "restoring after line 1: the translator's state cannot be read: no"),
        (Fault::CountsInTheProcess, "translating once more changes event 1"),
        (Fault::LeavesTheMessageOpen, "at the end of 6 events \"run-0\" is still open"),
        (Fault::ForgetsItsSession, "restoring after every line changes the session"),
        (Fault::JudgesByMemoryThatIsNotStored, "restoring after every line changes the end"),
    ];
    for (fault, message) in expected {
        let violation = check(fault).expect_err("a fault").0;
        assert!(violation.contains(message), "{fault:?}: {violation}");
    }
}
