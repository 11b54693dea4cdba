//! How Claude Code is launched.

use crate::common::{conversation, flags, session};
use crate::{FallbackPlan, LaunchPlan, LaunchRequest, PlanError};

/// Keys, endpoints and models. Credentials of a whole cloud account are not among them: a definition that uses Bedrock or
/// Vertex names those that it needs.
pub(super) const USUAL_ENV: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CONFIG_DIR",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_REGION",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "CLOUD_ML_REGION",
];

/// What Claude Code says on its standard error where `--resume` names a session that it does not have.
const SESSION_LOST: &str = "No conversation found with session ID";

/// Flags by which a definition decides about permissions itself.
const PERMISSION_FLAGS: &[&str] = &[
    "--permission-mode",
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "--allowedTools",
    "--allowed-tools",
    "--permission-prompt-tool",
];

pub(super) fn plan(request: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError> {
    let spec = request.spec;
    let message = spec.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty());
    let Some(message) = message.filter(|_| spec.prompt_on_stdin) else {
        return Err(PlanError(format!(
            "agent {:?} is Claude Code, which needs a prompt on its standard input: give one, and leave stdin = \
             \"prompt\" as it is",
            spec.agent
        )));
    };
    let mut argv = if spec.argv.is_empty() { vec!["claude".to_owned()] } else { spec.argv.clone() };
    let permissions_are_set = flags::has(&argv, PERMISSION_FLAGS);
    argv.extend(["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned));
    argv.push("--include-partial-messages".to_owned());
    if let Some(model) = &spec.model {
        argv.extend(["--model".to_owned(), model.clone()]);
    }
    if !permissions_are_set {
        argv.extend(["--permission-mode", "bypassPermissions"].map(str::to_owned));
    }
    let session = session::uuid_of_run(request.deployment, "claude-code", request.run_id);
    let own_session = ["--session-id".to_owned(), session];

    let mut fresh = argv.clone();
    fresh.extend(own_session.clone());
    let fresh_prompt = conversation::prompt(request.history, message);

    let (argv, prompt, fallback) = match request.session {
        None => (fresh, fresh_prompt, None),
        Some(previous) => {
            argv.extend(["--resume".to_owned(), previous.to_owned(), "--fork-session".to_owned()]);
            argv.extend(own_session);
            let fallback = FallbackPlan {
                markers: vec![SESSION_LOST.to_owned()],
                argv: fresh,
                prompt: Some(fresh_prompt),
            };
            (argv, message.to_owned(), Some(fallback))
        }
    };
    Ok(LaunchPlan { argv, prompt: Some(prompt), env: environment(request.as_root), fallback })
}

fn environment(as_root: bool) -> Vec<(String, String)> {
    // A run ends as the program that it was started with, and a sandbox talks to nobody but the model's endpoint.
    let mut env = vec![("DISABLE_AUTOUPDATER", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];
    if as_root {
        // Claude Code refuses to go without permission prompts as root unless this is exactly "1".
        env.push(("IS_SANDBOX", "1"));
    }
    env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
