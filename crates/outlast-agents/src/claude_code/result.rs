//! The `result` line: how a turn went.

use std::collections::BTreeMap;

use outlast_core::run::{RunError, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::exit;

/// The longest answer that is kept in the state and told with the end, in bytes of its JSON. A longer one is in the
/// messages all the same.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// What a `result` line came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outcome {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<RunError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) usage: Vec<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Value>,
}

#[derive(Deserialize)]
struct ResultLine {
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    terminal_reason: Option<String>,
    #[serde(default)]
    api_error_status: Option<Value>,
    #[serde(default)]
    errors: Option<Vec<Value>>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    structured_output: Option<Value>,
    /// Of a resumed session this holds the turns before.
    #[serde(default, rename = "modelUsage")]
    model_usage: Option<BTreeMap<String, ModelUsage>>,
    #[serde(default)]
    model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
    #[serde(default)]
    usage: Option<TotalUsage>,
}

/// Input tokens are those that were not cached.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    thinking_tokens: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TotalUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

impl Outcome {
    /// Reads the line, which follows on that of another outcome where a process works on several turns; none if it does
    /// not have the form.
    pub(super) fn read(line: &str, before: Option<&Outcome>) -> Option<Outcome> {
        let line: ResultLine = serde_json::from_str(line).ok()?;
        let failure = line.failure();
        let usage = line.usage(before.map_or(&[], |before| &before.usage));
        let answer = line.structured_output.or(line.result).filter(|_| failure.is_none());
        let answer = answer.filter(|answer| answer.to_string().len() <= MAX_ANSWER_BYTES);
        Some(Outcome { failure, usage, answer })
    }
}

impl ResultLine {
    fn failure(&self) -> Option<RunError> {
        // An API that fails ends as subtype "success", and only `is_error` says so.
        let by_subtype = self.subtype.starts_with("error");
        if !self.is_error && !by_subtype {
            return None;
        }
        let reason = self.terminal_reason.as_deref().filter(|reason| *reason != "completed");
        let api = self.api_error_status.as_ref().filter(|status| !status.is_null());
        let code = match (by_subtype, reason, api) {
            (true, ..) => Some(self.subtype.as_str()),
            (false, Some(reason), _) => Some(reason),
            (false, None, Some(_)) => Some("api_error"),
            (false, None, None) => None,
        };
        let errors = self.errors.iter().flatten().map(|error| match error.as_str() {
            Some(text) => text.to_owned(),
            None => error.to_string(),
        });
        let errors = errors.collect::<Vec<_>>().join("; ");
        let message = match (self.result.as_ref().and_then(Value::as_str), reason) {
            (Some(text), _) if !text.trim().is_empty() => text.to_owned(),
            // The errors of a turn that was broken off are notes for Claude Code's authors.
            (_, Some(reason)) if reason.starts_with("aborted") => {
                format!("the turn was broken off ({reason}): {errors}")
            }
            (_, reason) if errors.is_empty() => reason.unwrap_or_default().to_owned(),
            _ => errors,
        };
        Some(exit::reported(code, &message))
    }

    /// What the run used so far.
    fn usage(&self, before: &[Usage]) -> Vec<Usage> {
        if let Some(since) = &self.model_usage_since_last_result {
            let mut all = before.to_vec();
            for (model, used) in since {
                let used = used.usage(Some(model.clone()));
                match all.iter_mut().find(|known| known.model == used.model) {
                    Some(known) => add(known, &used),
                    None => all.push(used),
                }
            }
            return all;
        }
        let by_model = self.model_usage.iter().flatten();
        let by_model: Vec<Usage> = by_model.map(|(model, used)| used.usage(Some(model.clone()))).collect();
        if !by_model.is_empty() {
            return by_model;
        }
        let total = self.usage.iter().map(|used| {
            let used = ModelUsage {
                input_tokens: used.input_tokens,
                output_tokens: used.output_tokens,
                cache_read_input_tokens: used.cache_read_input_tokens,
                cache_creation_input_tokens: used.cache_creation_input_tokens,
                thinking_tokens: 0,
            };
            used.usage(None)
        });
        total.filter(|usage| usage.total_tokens > 0).collect()
    }
}

impl ModelUsage {
    fn usage(&self, model: Option<String>) -> Usage {
        let cached = self.cache_read_input_tokens;
        let input_tokens =
            self.input_tokens.saturating_add(cached).saturating_add(self.cache_creation_input_tokens);
        Usage {
            model,
            input_tokens,
            output_tokens: self.output_tokens,
            total_tokens: input_tokens.saturating_add(self.output_tokens),
            cached_input_tokens: Some(cached),
            reasoning_tokens: (self.thinking_tokens > 0).then_some(self.thinking_tokens),
        }
    }
}

fn add(to: &mut Usage, more: &Usage) {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    to.input_tokens = to.input_tokens.saturating_add(more.input_tokens);
    to.output_tokens = to.output_tokens.saturating_add(more.output_tokens);
    to.total_tokens = to.total_tokens.saturating_add(more.total_tokens);
    to.cached_input_tokens = sum(to.cached_input_tokens, more.cached_input_tokens);
    to.reasoning_tokens = sum(to.reasoning_tokens, more.reasoning_tokens);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> Option<String> {
        Outcome::read(line, None).expect("a result").failure.map(|failure| failure.code)
    }

    #[test]
    fn failures_have_the_most_telling_code() {
        assert_eq!(code(r#"{"subtype":"success","is_error":false,"terminal_reason":"completed"}"#), None);
        let api =
            r#"{"subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":401}"#;
        assert_eq!(code(api).as_deref(), Some("api_error"));
        let old = r#"{"subtype":"success","is_error":true,"api_error_status":529}"#;
        assert_eq!(code(old).as_deref(), Some("api_error"));
        assert_eq!(code(r#"{"subtype":"success","is_error":true}"#).as_deref(), Some("agent_failed"));
        let turns = r#"{"subtype":"error_max_turns","is_error":false,"terminal_reason":"max_turns"}"#;
        assert_eq!(code(turns).as_deref(), Some("error_max_turns"));
    }

    #[test]
    fn messages_and_usage() {
        let line = r#"{"subtype":"error_during_execution","is_error":true,"errors":["a",{"b":1}],
            "usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":4,"cache_creation_input_tokens":8}}"#;
        let outcome = Outcome::read(line, None).expect("a result");
        assert_eq!(outcome.failure.expect("failure").message, r#"a; {"b":1}"#);
        let usage = &outcome.usage[0];
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (13, 2, 15));
        let since = r#"{"subtype":"success","modelUsage":{"m":{"inputTokens":100}},"model_usage_since_last_result":
            {"m":{"inputTokens":1,"cacheReadInputTokens":2}}}"#;
        let first = Outcome::read(since, None).expect("a result");
        assert_eq!(first.usage[0].input_tokens, 3, "a resumed session's earlier turns are not this run's");
        let second = Outcome::read(since, Some(&first)).expect("a result");
        assert_eq!((second.usage[0].input_tokens, second.usage[0].cached_input_tokens), (6, Some(4)));
        let long = format!(r#"{{"subtype":"success","result":"{}"}}"#, "x".repeat(MAX_ANSWER_BYTES));
        assert_eq!(Outcome::read(&long, None).expect("a result").answer, None);
    }
}
