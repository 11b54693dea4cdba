//! Telling other hosts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::RunId;
use outlast_store::Clock;
use tokio::sync::mpsc;

use super::{BETWEEN, CHANNEL};
use crate::connect::Single;

/// What comes within this time is one notification.
const GATHER: Duration = Duration::from_millis(5);
/// What fits into one: PostgreSQL takes less than 8000 bytes.
const LARGEST: usize = 7000;
/// Changes that may wait to be told. More are dropped: their viewers look by themselves.
const WAITING: usize = 4096;

/// Takes note of what has changed.
#[derive(Debug, Clone)]
pub(crate) struct Sender(Option<mpsc::Sender<RunId>>);

impl Sender {
    /// One that tells nobody.
    pub(crate) fn none() -> Sender {
        Sender(None)
    }

    /// One whose changes are told on a connection of their own, until the store is dropped.
    pub(crate) fn spawn(connection: Single, clock: Arc<dyn Clock>) -> Sender {
        let (sender, changed) = mpsc::channel(WAITING);
        tokio::spawn(tell_for_ever(connection, clock, changed));
        Sender(Some(sender))
    }

    pub(crate) fn changed(&self, run_id: &RunId) {
        if let Some(sender) = &self.0 {
            let _ = sender.try_send(run_id.clone());
        }
    }
}

async fn tell_for_ever(connection: Single, clock: Arc<dyn Clock>, mut changed: mpsc::Receiver<RunId>) {
    while let Some(first) = changed.recv().await {
        clock.sleep(GATHER).await;
        let mut runs = BTreeSet::from([first]);
        while let Ok(more) = changed.try_recv() {
            runs.insert(more);
        }
        for payload in payloads(&runs) {
            let told = connection
                .with(async |client| {
                    let channel: String = client.query_one(CHANNEL, &[]).await?.try_get(0)?;
                    client.execute("SELECT pg_notify($1, $2)", &[&channel, &payload]).await?;
                    Ok(())
                })
                .await;
            if let Err(error) = told {
                tracing::debug!(%error, "other hosts were not told; they look by themselves");
            }
        }
    }
}

fn payloads(runs: &BTreeSet<RunId>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for run in runs {
        match payloads.last_mut() {
            Some(payload) if payload.len() + run.as_str().len() < LARGEST => {
                payload.push(BETWEEN);
                payload.push_str(run.as_str());
            }
            _ => payloads.push(run.as_str().to_owned()),
        }
    }
    payloads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_small_and_complete() {
        let runs: BTreeSet<RunId> =
            (0..500).map(|n| RunId::new(format!("run-{n:0100}")).expect("id")).collect();
        let payloads = payloads(&runs);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8000));
        let told: BTreeSet<RunId> = payloads
            .iter()
            .flat_map(|payload| payload.split(BETWEEN))
            .map(|text| RunId::new(text).expect("id"))
            .collect();
        assert_eq!(told, runs);
    }
}
