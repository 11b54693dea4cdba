//! What an attached terminal sees, and when.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::agent::{self, now_ns};
use crate::machine::Place;
use crate::report::{figure, percentile};

/// From the agent's printing of a line to the line on the terminal of whoever drives, and of a second one that is
/// only attached.
pub fn latency() {
    let place = Place::new();
    let agent = agent::command(&["stamps", "1500", "2000"]);
    let args = ["run", "--run-id", "r", "--"].map(str::to_owned).into_iter().chain(agent);
    let mut driver = place.outlast(args).spawn().expect("spawn");
    let mut lines = BufReader::new(driver.stdout.take().expect("stdout")).lines();
    lines.next().expect("a line").expect("read");
    let attached = place.outlast(["attach", "--from", "now", "r"]).spawn().expect("spawn");
    let reader = std::thread::spawn(move || delays(attached));
    let mut own: Vec<f64> = lines.map_while(Result::ok).filter_map(|line| delay(&line)).collect();
    driver.wait().expect("wait");
    let mut other = reader.join().expect("reader");
    figure("a line to the driver's terminal, p50", percentile(&mut own, 0.5), "ms", "");
    figure("a line to the driver's terminal, p99", percentile(&mut own, 0.99), "ms", "<= 10 ms");
    figure("a line to another attached terminal, p50", percentile(&mut other, 0.5), "ms", "");
    figure("a line to another attached terminal, p99", percentile(&mut other, 0.99), "ms", "<= 10 ms");
}

fn delays(mut child: Child) -> Vec<f64> {
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let delays = lines.map_while(Result::ok).filter_map(|line| delay(&line)).collect();
    child.wait().expect("wait");
    delays
}

/// Milliseconds since the line was printed.
fn delay(line: &str) -> Option<f64> {
    let printed: u128 = line.rsplit("stamp ").next()?.trim().parse().ok()?;
    Some((now_ns().saturating_sub(printed)) as f64 / 1e6)
}

/// From the start of an attach, right after the driver was killed, to the first line that was printed after that.
pub fn takeover() {
    for (name, bytes) in [("1 MB", "1000000"), ("100 MB", "100000000")] {
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(takeover_once(bytes));
        }
        let name = format!("takeover after kill -9, journal of {name}: first new line");
        figure(&name, percentile(&mut times, 0.5), "ms", "<= 300 ms");
    }
}

fn takeover_once(bytes: &str) -> f64 {
    let place = Place::new();
    let agent = agent::command(&["bulk", bytes, "100000", "1000"]);
    let args = ["run", "--json", "--run-id", "r", "--"].map(str::to_owned).into_iter().chain(agent);
    let mut driver = place.outlast(args).spawn().expect("spawn");
    // Everything of the bulk is in the log once the first stamp is.
    let mut last = String::new();
    for line in BufReader::new(driver.stdout.take().expect("stdout")).lines() {
        let line = line.expect("read");
        if line.contains("stamp") {
            last = line;
            break;
        }
    }
    let offset = last.split('"').nth(3).expect("an offset").to_owned();
    driver.kill().expect("kill");
    driver.wait().expect("wait");
    let start = now_ns();
    let mut attached =
        place.outlast(["attach", "--from", &offset, "r"]).stdout(Stdio::piped()).spawn().expect("spawn");
    for line in BufReader::new(attached.stdout.take().expect("stdout")).lines() {
        let line = line.expect("read");
        if line
            .rsplit("stamp ")
            .next()
            .and_then(|text| text.trim().parse::<u128>().ok())
            .is_some_and(|at| at > start)
        {
            break;
        }
    }
    let took = (now_ns() - start) as f64 / 1e6;
    attached.kill().expect("kill");
    attached.wait().expect("wait");
    place.outlast(["cancel", "r"]).output().expect("cancel");
    took
}
