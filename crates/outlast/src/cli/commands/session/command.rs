//! Which of its commands is meant, and which session.

use outlast_core::ErrorCode;
use outlast_core::decide::SessionState;
use outlast_runtime::Host;
use outlast_session::Sessions;
use outlast_session::collect::GcOptions;
use outlast_store::{RecordsError, SessionHead};

use super::{gc, remove, show, transfer};
use crate::cli::args::SessionCommand;
use crate::cli::context::Context;
use crate::cli::failure::Failure;

pub async fn session(context: &Context, command: SessionCommand) -> Result<u8, Failure> {
    let local = context.open().await?;
    let host = local.host();
    let status = match command {
        SessionCommand::Ls { limit } => show::list(context, host, limit).await,
        SessionCommand::Show { thread, messages, limit } => {
            show::show(context, host, &thread, messages, limit).await
        }
        SessionCommand::Export { thread, output, incomplete } => {
            transfer::export(context, host, &thread, &output, incomplete).await
        }
        SessionCommand::Import { file, thread } => transfer::import(context, host, &file, thread).await,
        SessionCommand::Gc { thread, all: _, dry_run, grace } => {
            let grace = grace.unwrap_or(context.config.sessions.grace);
            let options = GcOptions { grace, dry_run };
            match thread {
                Some(thread) => gc::collect(context, host, &thread, &options).await,
                None => gc::collect_all(context, host, options).await,
            }
        }
        SessionCommand::Rm { thread, yes } => remove::remove(context, host, &thread, yes).await,
    };
    local.close().await;
    status
}

/// The session that is meant, also one that was deleted, or an error that says what to do.
pub async fn find_any(host: &Host, sessions: &Sessions, name: &str) -> Result<SessionHead, Failure> {
    sessions.find(host.tenant(), name).await?.ok_or_else(|| {
        let message = format!("there is no session of a thread {name:?}; `outlast session ls` lists them");
        Failure::new(ErrorCode::SessionNotFound, message)
    })
}

/// The session that is meant, or an error that says what to do.
pub async fn find(host: &Host, sessions: &Sessions, name: &str) -> Result<SessionHead, Failure> {
    let found = find_any(host, sessions, name).await?;
    if found.state != SessionState::Active {
        let message = format!("the session of thread {:?} was deleted", found.thread_id.as_str());
        return Err(Failure::new(ErrorCode::SessionDeleted, message));
    }
    Ok(found)
}

pub fn records(error: RecordsError) -> Failure {
    match error {
        RecordsError::Store(error) => error.into(),
        RecordsError::Refused(refusal) => {
            use outlast_core::decide::RecordsRefusal as R;
            let code = match &refusal {
                R::SessionNotFound(_) => ErrorCode::SessionNotFound,
                R::SessionDeleted(_) => ErrorCode::SessionDeleted,
                _ => ErrorCode::Internal,
            };
            Failure::new(code, refusal)
        }
    }
}
