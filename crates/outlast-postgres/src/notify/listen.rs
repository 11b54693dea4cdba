//! Hearing from other hosts.

use std::sync::Weak;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use outlast_core::RunId;
use outlast_store::Signals;
use tokio_postgres::AsyncMessage;

use super::{BETWEEN, CHANNEL};
use crate::connect::Target;
use crate::failure::Tried;
use crate::store::Shared;

/// How long to wait before a lost connection is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// Passes on what other hosts tell, until the store is gone. Each time the connection is made, everybody is woken: what
/// was told in between was not heard.
pub(crate) async fn listen_for_ever(target: Target, shared: Weak<Shared>) {
    loop {
        let heard = listen(&target, &shared).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let Err(error) = heard {
            tracing::debug!(%error, "not hearing from other hosts; looking by itself");
        }
        let clock = shared.ports.clock.clone();
        drop(shared);
        clock.sleep(PAUSE).await;
    }
}

async fn listen(target: &Target, shared: &Weak<Shared>) -> Tried<()> {
    let (client, mut connection) = target.config.connect(target.tls.clone()).await?;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let begin = async {
        let channel: String = client.query_one(CHANNEL, &[]).await?.try_get(0)?;
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        Tried::Ok(())
    };
    tokio::pin!(begin);
    let mut begun = false;
    loop {
        tokio::select! {
            biased;
            done = &mut begin, if !begun => {
                done?;
                begun = true;
                if let Some(shared) = shared.upgrade() {
                    shared.signals.any_changed();
                }
            }
            message = messages.next() => match message {
                None => return Ok(()),
                Some(message) => {
                    let message = message?;
                    let Some(shared) = shared.upgrade() else {
                        return Ok(());
                    };
                    if let AsyncMessage::Notification(told) = message {
                        pass_on(&shared.signals, told.payload());
                    }
                }
            }
        }
    }
}

fn pass_on(signals: &Signals, payload: &str) {
    for run_id in payload.split(BETWEEN).filter_map(|text| RunId::new(text).ok()) {
        signals.run_changed(&run_id);
    }
}
