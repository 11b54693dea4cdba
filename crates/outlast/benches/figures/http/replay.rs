//! A stored log of 100 MB, read back over HTTP.

use super::client::{drain, follow, post};
use super::served::Served;
use crate::machine::timed;
use crate::report::{figure, percentile};

pub fn replay() {
    let served = Served::with_agent(&["bulk", "60000000", "0", "0"]);
    let mut first = post(served.address, "r");
    // To the end: what is measured is the stored log alone.
    super::client::read_until(&mut first, "RUN_FINISHED");
    drop(first);
    for (format, name) in [("sse", "SSE"), ("ndjson", "NDJSON")] {
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let (bytes, took) = timed(|| drain(&mut follow(served.address, "r", "-1", format)));
                assert!(bytes > 60_000_000, "{bytes}");
                bytes as f64 / 1e6 / took.as_secs_f64()
            })
            .collect();
        figure(
            &format!("replay of a stored log over {name}"),
            percentile(&mut rates, 0.5),
            "MB/s",
            ">= 200 MB/s",
        );
    }
}
