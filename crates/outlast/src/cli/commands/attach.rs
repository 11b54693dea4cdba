//! `outlast attach`.

use outlast_core::RunId;

use super::follow::{Follow, follow, read_failure};
use crate::Offset;
use crate::cli::args::AttachArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::signals::{Signals, unless_left};

pub async fn attach(context: &Context, args: &AttachArgs) -> Result<u8, Failure> {
    let run_id = RunId::new(args.run.as_str()).map_err(Failure::usage)?;
    let from = Offset::parse(&args.from)
        .map_err(|error| Failure { code: crate::ErrorCode::OffsetMalformed, ..Failure::usage(error) })?;
    let mut signals = Signals::catch()?;
    let local = context.open().await?;
    let host = local.host();
    let run = match unless_left(&mut signals, host.run(&run_id)).await {
        Ok(run) => run?.ok_or_else(|| Failure::not_found(&run_id))?,
        Err(leave) => return Ok(leave.status()),
    };
    // An offset that is refused leaves neither a claim nor a presence behind.
    let viewer = host.view(&run_id, from).await.map_err(read_failure)?;
    let follower = Follow { run_id: &run_id, viewer, on_disconnect: run.on_disconnect };
    // A run that has ended needs neither a driver nor a viewer that counts.
    let (keeper, presence) = if run.status.is_terminal() {
        (None, None)
    } else {
        (Some(host.keep_run(&run_id)), Some(host.watch(&run_id)))
    };
    let status = follow(context, host, follower, keeper, presence, &mut signals).await;
    local.close().await;
    status
}
