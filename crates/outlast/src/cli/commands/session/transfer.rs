//! `outlast session export` and `import`.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use outlast_core::{ErrorCode, ThreadId};
use outlast_runtime::Host;
use outlast_session::AddError;
use outlast_session::transfer::{ExportError, ExportOptions, ImportError, ImportOptions};
use serde_json::json;

use super::{find, records};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::printable;
use crate::cli::say::{print_line, tell};
use crate::count::count;

pub async fn export(
    context: &Context,
    host: &Host,
    name: &str,
    output: &Path,
    incomplete: bool,
) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = find(host, &sessions, name).await?;
    let options = ExportOptions { incomplete };
    let fail = |error: ExportError| match error {
        ExportError::Body { .. } => {
            Failure::new(ErrorCode::BodyUnavailable, format!("{error}; --incomplete goes on without it"))
        }
        error => Failure::new(ErrorCode::Internal, error),
    };
    if output == Path::new("-") {
        let mut out = BufWriter::new(std::io::stdout());
        let done = sessions.export(&session, &options, &mut out).await.map_err(fail)?;
        out.flush()?;
        tell!("outlast: exported {}, {} bytes", count(done.records, "record"), done.bytes);
        return Ok(0);
    }
    // Beside the file and then in its place, so that one of before is lost to nothing that fails.
    let place =
        output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let name =
        output.file_name().ok_or_else(|| Failure::usage(format!("{} is no file name", output.display())))?;
    let partial = place.join(format!(".{}.partial", name.to_string_lossy()));
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", output.display()));
    let file = File::create(&partial).map_err(cannot)?;
    let mut out = BufWriter::new(file);
    let written = async {
        let done = sessions.export(&session, &options, &mut out).await.map_err(fail)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(&partial, output)?;
        Ok::<_, Failure>(done)
    };
    let done = match written.await {
        Ok(done) => done,
        Err(failure) => {
            let _ = std::fs::remove_file(&partial);
            return Err(failure);
        }
    };
    if context.json {
        let mut value = serde_json::to_value(&done).unwrap_or_default();
        value["file"] = json!(output);
        print_line!("{value}");
    } else {
        tell!(
            "outlast: exported {}, {} bytes, to {}",
            count(done.records, "record"),
            done.bytes,
            output.display()
        );
        if done.incomplete > 0 {
            tell!("outlast: of {} of them, the body is missing", done.incomplete);
        }
    }
    let live = host.store().find_active_run(host.tenant(), &session.thread_id).await?;
    if let Some(run) = live {
        tell!(
            "outlast: run {:?} is live: what it has said so far is not in the file",
            printable(run.run_id.as_str())
        );
    }
    Ok(0)
}

pub async fn import(
    context: &Context,
    host: &Host,
    path: &Path,
    thread: Option<String>,
) -> Result<u8, Failure> {
    let thread_id = thread.map(ThreadId::new).transpose().map_err(Failure::usage)?;
    let name = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| name(&error))?;
    let sessions = host.sessions().await?;
    let options = ImportOptions { thread_id };
    use ImportError as E;
    let done =
        sessions.import(host.tenant(), BufReader::new(file), &options).await.map_err(
            |error| match error {
                E::File(_) | E::Record(_) | E::Taken { .. } => name(&error),
                E::Store(error) => error.into(),
                E::Records(error) | E::Add(AddError::Records(error)) => records(error),
                E::Objects(_) | E::Add(AddError::Objects(_)) => {
                    Failure::new(ErrorCode::BodyUnavailable, error)
                }
            },
        )?;
    if context.json {
        print_line!("{}", json!(done));
    } else {
        tell!(
            "outlast: thread {}: {} added, {} known",
            printable(done.thread_id.as_str()),
            count(done.added, "record"),
            done.known
        );
        if done.without_snapshot > 0 {
            tell!(
                "outlast: left out, since this object storage does not have their snapshots: {}",
                count(done.without_snapshot, "record")
            );
        }
    }
    Ok(0)
}
