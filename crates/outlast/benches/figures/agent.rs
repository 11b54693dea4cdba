//! This program as an agent whose output is known.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970, comparable between processes of this machine.
#[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
pub fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// `__bench-agent stamps N PAUSE_US`: N lines with the time at which each was printed.
/// `__bench-agent stamps-after SETTLE_US N PAUSE_US`: the same, after a while.
/// `__bench-agent bulk BYTES N PAUSE_US`: so many bytes at once, then the same.
pub fn command(args: &[&str]) -> Vec<String> {
    let program = std::env::current_exe().expect("path of this program");
    let mut command = vec![program.to_str().expect("utf-8").to_owned(), "__bench-agent".to_owned()];
    command.extend(args.iter().map(|arg| (*arg).to_owned()));
    command
}

pub fn run_if_asked() -> bool {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match args.as_slice() {
        ["__bench-agent", "stamps", n, pause] => stamps(number(n), number(pause)),
        ["__bench-agent", "stamps-after", settle, n, pause] => {
            wait(number(settle));
            stamps(number(n), number(pause));
        }
        ["__bench-agent", "bulk", bytes, n, pause] => {
            bulk(number(bytes));
            stamps(number(n), number(pause));
        }
        _ => return false,
    }
    true
}

#[allow(clippy::disallowed_methods, reason = "an agent that takes its time")]
pub fn wait(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

#[allow(clippy::disallowed_methods, reason = "an agent that takes its time")]
fn stamps(n: u64, pause: u64) {
    for _ in 0..n {
        let mut out = std::io::stdout().lock();
        writeln!(out, "stamp {}", now_ns()).and_then(|()| out.flush()).expect("stdout");
        std::thread::sleep(Duration::from_micros(pause));
    }
}

fn bulk(bytes: u64) {
    let line = format!("{}\n", "x".repeat(119));
    let block = line.repeat(512);
    let mut out = std::io::stdout().lock();
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left.min(block.len() as u64)).expect("small");
        out.write_all(&block.as_bytes()[..part]).expect("stdout");
        left -= part as u64;
    }
    if !bytes.is_multiple_of(line.len() as u64) {
        out.write_all(b"\n").expect("stdout");
    }
    out.flush().expect("stdout");
}
