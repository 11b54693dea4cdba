//! `outlast attach`.

use outlast_core::RunId;

use super::follow::{Follow, follow};
use crate::Offset;
use crate::cli::args::AttachArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::signals::Signals;

pub async fn attach(context: &Context, args: &AttachArgs) -> Result<u8, Failure> {
    let run_id = RunId::new(args.run.as_str()).map_err(Failure::usage)?;
    let from = Offset::parse(&args.from)
        .map_err(|error| Failure { code: crate::ErrorCode::OffsetMalformed, ..Failure::usage(error) })?;
    let mut signals = Signals::catch()?;
    let local = context.open().await?;
    let host = local.host();
    let run = host.run(&run_id).await?.ok_or_else(|| Failure::not_found(&run_id))?;
    let follower = Follow { run_id: &run_id, from, on_disconnect: run.on_disconnect };
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
