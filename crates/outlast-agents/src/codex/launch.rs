//! How Codex is launched.

use crate::common::{conversation, flags};
use crate::{FallbackPlan, LaunchPlan, LaunchRequest, PlanError};

/// Keys, endpoints, and where Codex keeps its sessions and its login.
pub(super) const USUAL_ENV: &[&str] = &[
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "CODEX_HOME",
    "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
    "AZURE_OPENAI_API_KEY",
];

/// What Codex says on its standard error where the session to resume does not exist.
const SESSION_LOST: &[&str] = &["no rollout found for thread id", "no rollout found for conversation id"];

/// Flags by which a definition decides about confinement and approval itself.
const CONFINEMENT_FLAGS: &[&str] = &[
    "-s",
    "--sandbox",
    "--full-auto",
    "--approve-for-me",
    "-a",
    "--ask-for-approval",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
    "-p",
    "--profile",
];

/// Keys of `-c key=value` that do the same.
const CONFINEMENT_KEYS: &[&str] = &["sandbox_mode", "approval_policy"];

pub(super) fn plan(request: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError> {
    let spec = request.spec;
    let message = spec.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty());
    let Some(message) = message.filter(|_| spec.prompt_on_stdin) else {
        return Err(PlanError(format!(
            "agent {:?} is Codex, which needs a prompt on its standard input: give one, and leave stdin = \"prompt\" \
             as it is",
            spec.agent
        )));
    };
    let mut argv = if spec.argv.is_empty() { vec!["codex".to_owned()] } else { spec.argv.clone() };
    let confined = confinement_is_set(&argv);
    // A definition may name `exec` itself, to give flags that only it has.
    if !argv.iter().skip(1).any(|arg| arg == "exec" || arg == "e") {
        argv.push("exec".to_owned());
    }
    argv.extend(["--json", "--skip-git-repo-check"].map(str::to_owned));
    if let Some(model) = &spec.model {
        argv.extend(["-m".to_owned(), model.clone()]);
    }
    if !confined {
        argv.push("--dangerously-bypass-approvals-and-sandbox".to_owned());
    }
    let from_stdin = || "-".to_owned();
    let mut fresh = argv.clone();
    fresh.push(from_stdin());
    let fresh_prompt = conversation::prompt(request.history, message);
    let (argv, prompt, fallback) = match request.session {
        None => (fresh, fresh_prompt, None),
        Some(previous) => {
            argv.extend(["resume".to_owned(), previous.to_owned(), from_stdin()]);
            let markers = SESSION_LOST.iter().map(|marker| (*marker).to_owned()).collect();
            let fallback = FallbackPlan { markers, argv: fresh, prompt: Some(fresh_prompt) };
            (argv, message.to_owned(), Some(fallback))
        }
    };
    Ok(LaunchPlan { argv, prompt: Some(prompt), env: Vec::new(), fallback })
}

fn confinement_is_set(argv: &[String]) -> bool {
    flags::has(argv, CONFINEMENT_FLAGS)
        || argv.iter().any(|arg| {
            let setting = arg.strip_prefix("--config=").or_else(|| arg.strip_prefix("-c")).unwrap_or(arg);
            CONFINEMENT_KEYS.iter().any(|key| setting.starts_with(key))
        })
}
