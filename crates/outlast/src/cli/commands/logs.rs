//! `outlast logs`.

use outlast_core::RunId;
use outlast_runtime::Seen;

use super::follow::read_failure;
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
    let mut viewer = host.view(&run_id, Offset::After(Seq::START)).await.map_err(read_failure)?;
    let mut output = Output::stream(context.json)?;
    let (printed, open) = loop {
        match viewer.next().await.map_err(read_failure)? {
            Seen::Events(page) => {
                page.events.iter().for_each(|event| output.event(event));
                if let Err(error) = output.flush().await {
                    break (Err(error), false);
                }
            }
            Seen::Expired => {
                return Err(Failure::new(
                    ErrorCode::CursorExpired,
                    "the run's events have aged out; `outlast show RUN --messages` has its transcript",
                ));
            }
            Seen::Closed => break (output.finish().await, false),
            Seen::CaughtUp => break (output.finish().await, true),
        }
    };
    if printed.is_err() {
        return Ok(141);
    }
    if run.status.is_terminal() {
        output.summary(&run);
    }
    if open && !context.json {
        super::ps::tell_undriven(context, host, &run).await;
    }
    local.close().await;
    Ok(0)
}
