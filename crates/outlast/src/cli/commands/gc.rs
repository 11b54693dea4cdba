//! `outlast gc`.

use outlast_runtime::RetainOptions;

use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::printable_text;
use crate::cli::say::{print_line, tell};
use crate::config::RetentionConfig;

pub async fn gc(context: &Context, dry_run: bool) -> Result<u8, Failure> {
    let options = RetainOptions { dry_run, ..options(&context.config.retention) };
    let local = context.open().await?;
    let result = local.host().retain(&options).await;
    local.close().await;
    if context.json {
        print_line!("{}", serde_json::to_string(&result).unwrap_or_default());
    } else {
        let verb = if dry_run { "would go" } else { "are gone" };
        tell!("outlast: {} events of {} ended runs {verb}", result.events, result.logs);
        if result.records > 0 {
            tell!("outlast: {} run records are gone, with their messages", result.records);
        }
        if let Some(error) = &result.error {
            tell!("outlast: {}", printable_text(error));
        }
    }
    Ok(if result.error.is_some() { FAILED } else { 0 })
}

/// The retention as the configuration has it.
pub fn options(config: &RetentionConfig) -> RetainOptions {
    RetainOptions {
        events: config.events.duration(),
        messages: config.messages.duration(),
        ..RetainOptions::default()
    }
}
