//! Embedding Outlast: start a run, detach, take it over as another host, and cancel a second one.
//!
//! `cargo run --example embed -- DATA_DIR`

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use outlast::core::run::CancelReason;
use outlast::{KeepEnd, Local, LocalOptions, Offset, RunId, Seen, Seq, Start};

fn main() -> ExitCode {
    // The shim that lives beside each agent is this same program, started again. This comes first.
    if let Some(code) = outlast::run_shim_if_asked() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(embed()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn embed() -> Result<(), Box<dyn Error>> {
    let data_dir = std::env::args().nth(1).ok_or("say a data directory")?;

    // The first host accepts a run, launches its agent and follows it for a while.
    let first = Local::open(LocalOptions::new(&data_dir)).await?;
    let run_id: RunId = "embedded-1".parse()?;
    let script = "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.2; done";
    let start = Start::command(run_id.clone(), "embedded".parse()?, ["sh", "-c", script]);
    let started = first.host().start(start).await?;
    let keeper = first.host().keep(started);
    let seen = follow(&first, &run_id, Seq::START, Some("step 2")).await?;
    println!("the first host has seen {} events", seen.0);

    // It leaves. The agent works on; the claim is given back, so that a successor goes on at once.
    keeper.hand_over().await;
    first.close().await;

    // Another host takes over and misses nothing.
    let second = Local::open(LocalOptions::new(&data_dir)).await?;
    let keeper = second.host().keep_run(&run_id);
    follow(&second, &run_id, seen, None).await?;
    let KeepEnd::Ended(run) = keeper.end().await else {
        return Err("the run did not end".into());
    };
    println!("the second host saw it end: {} at epoch {}", run.status, run.driver_epoch);

    // A second run is stopped: its whole tree is killed before the run ends.
    let run_id: RunId = "embedded-2".parse()?;
    let start = Start::command(run_id.clone(), "embedded".parse()?, ["sleep", "600"]);
    let keeper = second.host().keep(second.host().start(start).await?);
    let report = second.host().cancel(&run_id, CancelReason::User, Duration::from_secs(20)).await?;
    println!("the second run was stopped: {}", report.run.status);
    keeper.end().await;
    second.close().await;
    Ok(())
}

/// Prints a run's text from an event on, until the log is closed or a text occurs; tells where it stopped.
async fn follow(
    local: &Local,
    run_id: &RunId,
    from: Seq,
    until: Option<&str>,
) -> Result<Seq, Box<dyn Error>> {
    let mut viewer = local.host().view(run_id, Offset::After(from)).await?;
    loop {
        match viewer.next().await? {
            Seen::Events(page) => {
                for event in page.events {
                    println!("{} {}", event.seq.offset(), event.json);
                    if until.is_some_and(|text| event.json.contains(text)) {
                        return Ok(event.seq);
                    }
                }
            }
            Seen::CaughtUp => viewer.wait().await,
            Seen::Closed | Seen::Expired => return Ok(viewer.position()),
        }
    }
}
