//! How many runs a server starts.

use super::client::{post, read_until};
use super::served::Served;
use crate::machine::timed;
use crate::report::figure;

const RUNS: usize = 400;
const CLIENTS: usize = 8;

/// Eight clients, each of which starts the next run once it has the first event of its last: `run.accepted`, which is
/// durable. The agent is `true`, and ends at once.
pub fn runs_started() {
    let served = Served::with_command(&["true".to_owned()]);
    let address = served.address;
    let ((), accepted) = timed(|| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                std::thread::spawn(move || {
                    for n in 0..RUNS / CLIENTS {
                        read_until(&mut post(address, &format!("a-{client}-{n}")), "run.accepted");
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().expect("client"));
    });
    figure("runs accepted over HTTP, 8 clients", RUNS as f64 / accepted.as_secs_f64(), "/s", "");
    let served = Served::with_command(&["true".to_owned()]);
    let address = served.address;
    let ((), ended) = timed(|| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                std::thread::spawn(move || {
                    for n in 0..RUNS / CLIENTS {
                        read_until(&mut post(address, &format!("b-{client}-{n}")), "RUN_FINISHED");
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().expect("client"));
    });
    figure("whole runs of `true` over HTTP, 8 clients", RUNS as f64 / ended.as_secs_f64(), "/s", "");
}
