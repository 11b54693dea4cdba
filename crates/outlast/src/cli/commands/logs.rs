//! `outlast logs`.

use outlast_core::RunId;
use outlast_runtime::Seen;

use crate::cli::args::RunArg;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::Output;
use crate::{ErrorCode, Offset, Seq};

/// Prints what is stored, and no more than that.
pub async fn logs(context: &Context, args: &RunArg) -> Result<u8, Failure> {
    let run_id = RunId::new(args.run.as_str()).map_err(Failure::usage)?;
    let local = context.open().await?;
    let host = local.host();
    let run = host.run(&run_id).await?.ok_or_else(|| Failure::not_found(&run_id))?;
    let mut viewer = host
        .view(&run_id, Offset::After(Seq::START))
        .await
        .map_err(|error| Failure::new(ErrorCode::Internal, error))?;
    let mut output = Output::stream(context.json);
    loop {
        match viewer.next().await.map_err(|error| Failure::new(ErrorCode::Internal, error))? {
            Seen::Events(page) => {
                let written = page.events.iter().try_for_each(|event| output.event(event));
                if written.is_err() {
                    return Ok(141);
                }
            }
            Seen::Expired => {
                return Err(Failure::new(ErrorCode::CursorExpired, "the run's events have aged out"));
            }
            Seen::Closed => break,
            Seen::CaughtUp => {
                output.interrupted();
                if !context.json {
                    super::ps::tell_undriven(host, &run).await;
                }
                break;
            }
        }
    }
    if output.flush().is_err() {
        return Ok(141);
    }
    local.close().await;
    Ok(0)
}
