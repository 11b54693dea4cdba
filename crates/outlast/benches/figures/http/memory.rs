//! What a server takes.

use std::net::TcpStream;
use std::time::Duration;

use super::client::{follow, post, read_until};
use super::served::Served;
use crate::machine::now_mb;
use crate::report::figure;

/// A server that has answered one request and does nothing.
pub fn idle_server() {
    let served = Served::with_command(&["true".to_owned()]);
    read_until(&mut post(served.address, "r"), "RUN_FINISHED");
    figure("memory of an idle server", now_mb(served.pid()).expect("memory"), "MB", "<= 25 MB");
}

/// A thousand viewers of a run that is silent.
pub fn idle_viewers() {
    let served = Served::with_command(&["sleep".to_owned(), "600".to_owned()]);
    read_until(&mut post(served.address, "r"), "RUN_STARTED");
    let viewers = 1000;
    let before = now_mb(served.pid()).expect("memory");
    let streams: Vec<TcpStream> = (0..viewers)
        .map(|_| {
            let mut stream = follow(served.address, "r", "-1", "sse");
            read_until(&mut stream, ": caught-up");
            stream
        })
        .collect();
    let after = now_mb(served.pid()).expect("memory");
    figure(
        "memory per idle viewer, 1000 viewers",
        (after - before) * 1024.0 / f64::from(viewers),
        "KiB",
        "<= 30 KiB",
    );
    drop(streams);
}

/// Viewers that have stopped reading a log of 100 MB.
pub fn stalled_viewers() {
    let served = Served::with_agent(&["bulk", "60000000", "0", "0"]);
    read_until(&mut post(served.address, "r"), "RUN_FINISHED");
    let viewers = 50;
    let before = now_mb(served.pid()).expect("memory");
    let streams: Vec<TcpStream> = (0..viewers).map(|_| follow(served.address, "r", "-1", "sse")).collect();
    let after = settled(served.pid());
    figure(
        "memory per viewer that has stopped reading",
        (after - before) / f64::from(viewers),
        "MB",
        "< 1 MB",
    );
    drop(streams);
}

/// The memory once it has not grown for a second.
#[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
fn settled(pid: u32) -> f64 {
    let mut last = 0.0;
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = now_mb(pid).expect("memory");
        if now <= last {
            return now;
        }
        last = now;
    }
}
