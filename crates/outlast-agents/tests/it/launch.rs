//! What is started.

use outlast_agents::{KINDS, LaunchPlan, LaunchRequest, agent};
use outlast_core::run::{LaunchSpec, SandboxSpec};
use outlast_core::transcript::{Message, Role};

fn spec(kind: &str, argv: &[&str], prompt: Option<&str>) -> LaunchSpec {
    LaunchSpec {
        agent: "mine".into(),
        kind: kind.into(),
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        model: None,
        prompt: prompt.map(ToOwned::to_owned),
        prompt_on_stdin: true,
        env: Default::default(),
        needed_env: Vec::new(),
        cwd: None,
        workspace: None,
        sandbox: SandboxSpec::default(),
    }
}

fn request<'a>(spec: &'a LaunchSpec, history: &'a [Message], session: Option<&'a str>) -> LaunchRequest<'a> {
    LaunchRequest { deployment: "d", run_id: "r", thread_id: "t", spec, history, session, as_root: false }
}

fn plan(spec: &LaunchSpec, history: &[Message], session: Option<&str>) -> LaunchPlan {
    let kind = agent(&spec.kind).expect("kind");
    kind.plan(&request(spec, history, session)).expect("plan")
}

const CLAUDE: &str = "claude -p --output-format stream-json --verbose --include-partial-messages";
const SESSION: &str = "74ade8af-ba12-8c55-a047-81259c634885";

#[test]
fn the_prompt_is_never_an_argument() {
    for kind in KINDS {
        let spec = spec(kind, &["program"], Some("the secret plan"));
        let history = [Message::text("m", Role::User, "the secret past")];
        for session in [None, Some("before")] {
            let plan = plan(&spec, &history, session);
            let fallback = plan.fallback.iter().flat_map(|fallback| &fallback.argv);
            assert!(plan.argv.iter().chain(fallback).all(|arg| !arg.contains("secret")), "{plan:?}");
            assert!(plan.prompt.is_some_and(|prompt| prompt.ends_with("the secret plan")));
        }
    }
}

#[test]
fn a_command_is_what_the_definition_says() {
    let plan = plan(&spec("command", &["make", "-j"], Some("p")), &[], None);
    assert_eq!(plan.argv, ["make", "-j"]);
    assert_eq!((plan.prompt.as_deref(), plan.fallback), (Some("p"), None));
    let empty = spec("command", &[], None);
    let error = agent("command").expect("kind").plan(&request(&empty, &[], None)).expect_err("no command");
    assert!(error.0.contains("argv = [\"program\", …] in [agents.mine]"), "{error}");
}

#[test]
fn claude_code_is_a_session_of_the_runs_own() {
    let mut first = spec("claude-code", &[], Some("hello"));
    first.model = Some("opus".into());
    let plan = plan(&first, &[], None);
    let bypass = "--permission-mode bypassPermissions";
    assert_eq!(plan.argv.join(" "), format!("{CLAUDE} --model opus {bypass} --session-id {SESSION}"));
    assert_eq!((plan.prompt.as_deref(), plan.fallback), (Some("hello"), None));
    assert!(!plan.env.iter().any(|(name, _)| name == "IS_SANDBOX"));
    let as_root = LaunchRequest { as_root: true, ..request(&first, &[], None) };
    let env = agent("claude-code").expect("kind").plan(&as_root).expect("plan").env;
    assert!(env.contains(&("IS_SANDBOX".into(), "1".into())), "{env:?}");
}

#[test]
fn claude_code_resumes_and_falls_back() {
    let spec = spec("claude-code", &["/opt/claude", "--permission-mode=plan"], Some("and now?"));
    let history = [Message::text("m", Role::User, "What is here?")];
    let plan = plan(&spec, &history, Some("before"));
    let base = CLAUDE.replacen("claude", "/opt/claude --permission-mode=plan", 1);
    assert_eq!(plan.argv.join(" "), format!("{base} --resume before --fork-session --session-id {SESSION}"));
    assert_eq!(plan.prompt.as_deref(), Some("and now?"));
    let fallback = plan.fallback.expect("fallback");
    assert_eq!(fallback.argv.join(" "), format!("{base} --session-id {SESSION}"));
    let prompt = fallback.prompt.expect("prompt");
    assert!(prompt.contains("User: What is here?") && prompt.ends_with("and now?"), "{prompt}");
    let stderr = include_str!("../captures/claude-2.1.332-resume-unknown-session.stderr");
    assert!(fallback.markers.iter().any(|marker| stderr.contains(marker)));
}

#[test]
fn codex_resumes_and_falls_back() {
    let free = "--dangerously-bypass-approvals-and-sandbox";
    let first = plan(&spec("codex", &[], Some("hello")), &[], None);
    assert_eq!(first.argv.join(" "), format!("codex exec --json --skip-git-repo-check {free} -"));
    let mut again = spec("codex", &["codex", "-c", "sandbox_mode=\"read-only\"", "exec"], Some("and now?"));
    again.model = Some("gpt".into());
    let second = plan(&again, &[], Some("before"));
    let base = "codex -c sandbox_mode=\"read-only\" exec --json --skip-git-repo-check -m gpt";
    assert_eq!(second.argv.join(" "), format!("{base} resume before -"));
    let fallback = second.fallback.expect("fallback");
    assert_eq!(fallback.argv.join(" "), format!("{base} -"));
    let stderr = include_str!("../captures/codex-0.171.0-resume-unknown-session.stderr");
    assert!(fallback.markers.iter().any(|marker| stderr.contains(marker)));
}

#[test]
fn agents_that_need_a_prompt_say_so() {
    for kind in ["claude-code", "codex"] {
        let mut not_on_stdin = spec(kind, &[], Some("hello"));
        not_on_stdin.prompt_on_stdin = false;
        for spec in [spec(kind, &[], None), spec(kind, &[], Some(" \n")), not_on_stdin] {
            let error = agent(kind).expect("kind").plan(&request(&spec, &[], None)).expect_err("no prompt");
            assert!(error.0.contains("needs a prompt"), "{error}");
        }
    }
}
