//! What the JSON of requests and answers looks like, for the description of the interface. The values themselves are
//! the record's own; a test holds the two together.

use serde_json::Value;
use utoipa::ToSchema;

/// An error
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
pub(crate) struct ErrorBody {
    error: ErrorFields,
}

/// What is wrong
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
#[schema(rename_all = "camelCase")]
pub(crate) struct ErrorFields {
    /// A stable code
    code: String,
    /// What is wrong and what to do, for people
    message: String,
    /// The run that is in the way, where there is one
    run_id: Option<String>,
}

/// AG-UI's request for a run
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is read elsewhere")]
#[schema(rename_all = "camelCase")]
pub(crate) struct RunAgentInput {
    /// The conversation, chosen by the client
    thread_id: String,
    /// The run, chosen by the client and unique for ever; X-Run-Id and ?runId win
    run_id: Option<String>,
    /// The conversation so far, the user's new message last
    messages: Vec<Value>,
    /// Taken as part of the request; agents bring tools of their own
    tools: Option<Vec<Value>>,
    /// Taken as part of the request
    state: Option<Value>,
    /// Taken as part of the request
    context: Option<Vec<Value>>,
    /// `agent`, `model` and `onDisconnect` (`detach` or `cancel`) choose; others are taken as part of the request
    forwarded_props: Option<Value>,
}

/// A run
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
#[schema(rename_all = "camelCase")]
pub(crate) struct Run {
    run_id: String,
    thread_id: String,
    tenant: String,
    /// The agent's name
    agent: String,
    model: Option<String>,
    /// `running`, `interrupted`, `completed`, `failed` or `aborted`
    status: String,
    /// `accepted`, `launching` or `launched`
    phase: String,
    /// Milliseconds since 1970
    started_at: u64,
    /// Milliseconds since 1970
    finished_at: Option<u64>,
    error: Option<RunError>,
    /// Why it ended
    end_reason: Option<String>,
    /// Tokens, one entry per model
    usage: Vec<Value>,
    /// The agent's exit status
    exit_code: Option<i32>,
    sandbox_key: Option<String>,
    instance_id: Option<String>,
    machine: Option<String>,
    /// Since when nobody watches it, in milliseconds since 1970; null while somebody does and once it ended
    detached_since: Option<u64>,
    /// How long it may go on without a viewer, in milliseconds; null: for ever
    detached_ttl: Option<u64>,
    /// `detach` or `cancel`
    on_disconnect: String,
    cancel_requested: Option<CancelRequested>,
    /// How often it was claimed: the fencing token
    driver_epoch: u64,
    /// Who drives it, if anybody does
    driver: Option<Driver>,
    /// The number of its events
    tail: u64,
    /// Whether its transcript is complete and final
    sealed: bool,
    /// The session in the agent's own words
    agent_session: Option<String>,
}

/// Why a run failed or was aborted
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
pub(crate) struct RunError {
    code: String,
    message: String,
}

/// A durable wish to stop a run
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
pub(crate) struct CancelRequested {
    /// `user`, `disconnect` or `ttl`
    reason: String,
    /// Milliseconds since 1970
    at: u64,
}

/// Who drives a run
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
#[schema(rename_all = "camelCase")]
pub(crate) struct Driver {
    /// The process
    owner: String,
    /// Since when, in milliseconds since 1970
    since: u64,
    /// For how much longer unless renewed, in milliseconds
    lease_remaining: u64,
}

/// A message in AG-UI's form
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what is written elsewhere")]
#[schema(rename_all = "camelCase")]
pub(crate) struct Message {
    id: String,
    /// `user`, `assistant`, `tool`, `reasoning`, `system` or `developer`
    role: String,
    content: Option<String>,
    tool_calls: Option<Vec<Value>>,
    tool_call_id: Option<String>,
    error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::run as core;
    use serde_json::json;
    use utoipa::PartialSchema;

    /// A record with everything that it can have.
    fn full() -> core::RunRecord {
        let spec = core::LaunchSpec::command(vec!["true".into()], core::SandboxSpec::default());
        core::RunRecord {
            run_id: "r".parse().expect("id"),
            thread_id: "t".parse().expect("id"),
            tenant: outlast_core::Tenant::default(),
            agent: "demo".into(),
            model: Some("m".into()),
            status: core::Status::Failed,
            phase: core::Phase::Launched,
            started_at: 1,
            finished_at: Some(2),
            error: Some(core::RunError::new(outlast_core::ErrorCode::Internal, "x")),
            end_reason: Some(core::EndReason::Exited),
            usage: vec![core::Usage::default()],
            exit_code: Some(1),
            sandbox_key: Some("k".into()),
            instance_id: Some("i".parse().expect("id")),
            machine: Some("m".into()),
            detached_since: Some(1),
            detached_ttl: Some(1),
            on_disconnect: core::OnDisconnect::Detach,
            cancel_requested: Some(core::Cancel { reason: core::CancelReason::User, at: 1 }),
            driver_epoch: 1,
            driver: Some(core::Driver { owner: "o".parse().expect("id"), since: 1, lease_remaining: 1 }),
            tail: 1,
            sealed: true,
            agent_session: Some("s".into()),
            spec,
            exit_secret: outlast_core::ExitSecret::from_bytes([7; 16]),
            cursor: None,
        }
    }

    fn keys(value: &Value) -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
        keys.sort();
        keys
    }

    fn described<T: PartialSchema>() -> Vec<String> {
        keys(&serde_json::to_value(T::schema()).expect("json")["properties"])
    }

    #[test]
    fn what_is_described_is_what_is_written() {
        let run = serde_json::to_value(full()).expect("json");
        assert_eq!(keys(&run), described::<Run>());
        assert_eq!(keys(&run["driver"]), described::<Driver>());
        assert_eq!(keys(&run["cancelRequested"]), described::<CancelRequested>());
        assert_eq!(keys(&run["error"]), described::<RunError>());
        let message: outlast_core::transcript::Message = serde_json::from_value(json!({
            "id": "m", "role": "tool", "content": "c", "toolCallId": "t", "error": "e",
            "toolCalls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}],
        }))
        .expect("a message");
        assert_eq!(keys(&serde_json::to_value(message).expect("json")), described::<Message>());
    }

    #[test]
    fn a_record_tells_no_secret() {
        let text = serde_json::to_string(&full()).expect("json");
        let secret = outlast_core::ExitSecret::from_bytes([7; 16]);
        assert!(!text.contains(secret.reveal()), "{text}");
    }
}
