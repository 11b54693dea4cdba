//! The server that drives a run goes, and another one on the same machine goes on.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::place::Schema;
use crate::agent::{self, now_ns};
use crate::http::client::{follow, post, read_until};
use crate::http::served::{configure, end_runs, serve};
use crate::machine::Place;
use crate::report::{figure, percentile};

const ROUNDS: u64 = 5;

/// From the signal to the first line printed after it, at a viewer that is attached to the other server.
pub fn takeover() {
    for (name, bytes) in [("1 MB", "1000000"), ("100 MB", "100000000")] {
        let Some(schema) = Schema::new("postgres-takeover") else {
            return;
        };
        let mut relay = Relay::start(&schema, bytes);
        let mut killed: Vec<Gone> = (0..ROUNDS).map(|round| relay.pass_on(Signal::KILL, round)).collect();
        let mut ended: Vec<Gone> = (0..ROUNDS).map(|round| relay.pass_on(Signal::TERM, round)).collect();
        let median = |gone: &mut [Gone], of: fn(&Gone) -> f64| {
            percentile(&mut gone.iter().map(of).collect::<Vec<_>>(), 0.5)
        };
        let name = format!("PostgreSQL, journal of {name}: first new line after");
        figure(&format!("{name} kill -9"), median(&mut killed, |gone| gone.millis), "ms", "<= 10200 ms");
        let above = |gone: &Gone| gone.millis - gone.lease_left;
        figure(&format!("{name} the lease"), median(&mut killed, above), "ms", "<= 200 ms");
        figure(&format!("{name} SIGTERM"), median(&mut ended, |gone| gone.millis), "ms", "<= 300 ms");
    }
}

/// What a driver's going cost.
struct Gone {
    millis: f64,
    /// How much longer the lease ran, in milliseconds.
    lease_left: f64,
}

/// A run that one server drives while another one waits.
struct Relay<'s> {
    schema: &'s Schema,
    place: Place,
    driver: Child,
    next: Child,
    address: SocketAddr,
}

impl<'s> Relay<'s> {
    fn start(schema: &'s Schema, bytes: &str) -> Relay<'s> {
        let place = Place::new();
        let agent = agent::command(&["bulk", bytes, "100000000", "1000"]);
        configure(&place, &agent, &format!("[store]\nurl = \"{}\"\n", schema.url));
        let (driver, first) = serve(&place);
        // Everything of the bulk is in the log once the first stamp is.
        read_until(&mut post(first, "r"), "stamp");
        let (next, address) = serve(&place);
        Relay { schema, place, driver, next, address }
    }

    /// Ends the driver, and starts another server once its successor has taken over.
    fn pass_on(&mut self, signal: Signal, round: u64) -> Gone {
        let stamps = stamps(follow(self.address, "r", "now", "sse"));
        // The successor has caught up, and its viewer sees lines as they are printed. Each round ends the driver at
        // another moment between two renewals.
        let settled = now_ns() + u128::from(1_000 + round * 667) * 1_000_000;
        first(&stamps, |stamp, at| at > settled && at.saturating_sub(stamp) < 50_000_000);
        let (epoch, _, until) = self.claim();
        let gone = now_ns();
        kill_process(Pid::from_child(&self.driver), signal).expect("signal");
        let since = if signal == Signal::TERM {
            // The driver may show some more lines before it goes; those after the next claim are not its own.
            loop {
                let (now, claimed, _) = self.claim();
                if now > epoch {
                    break u128::from(claimed) * 1_000_000;
                }
                agent::wait(2_000);
            }
        } else {
            self.driver.wait().expect("wait");
            now_ns()
        };
        let arrived = first(&stamps, |stamp, _| stamp > since);
        self.driver.wait().expect("wait");
        let (another, address) = serve(&self.place);
        self.driver = std::mem::replace(&mut self.next, another);
        self.address = address;
        let millis = |from: u128, to: u128| (to as f64 - from as f64) / 1e6;
        Gone { millis: millis(gone, arrived), lease_left: millis(gone, u128::from(until) * 1_000_000) }
    }

    /// The run's epoch, when it was claimed, and until when.
    fn claim(&self) -> (u64, u64, u64) {
        let sql =
            "SELECT epoch, coalesce(claimed_at, 0), coalesce(lease_until, 0) FROM runs WHERE run_id = 'r'";
        let row = self.schema.ask(async |client| client.query_one(sql, &[]).await);
        let number = |column| row.get::<_, i64>(column).unsigned_abs();
        (number(0), number(1), number(2))
    }
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        // While there is a driver that does it: the claim of a dead one would have to run out first.
        end_runs(&self.place);
        for server in [&mut self.driver, &mut self.next] {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// When each line was printed, and when it arrived.
fn stamps(mut stream: TcpStream) -> Receiver<(u128, u128)> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let n = stream.read(&mut buffer).unwrap_or(0);
            let at = now_ns();
            text.push_str(&String::from_utf8_lossy(&buffer[..n]));
            while let Some((line, rest)) = text.split_once('\n') {
                for part in line.split("stamp ").skip(1) {
                    let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                    let printed = digits.parse().expect("a stamp");
                    if sender.send((printed, at)).is_err() {
                        return;
                    }
                }
                text = rest.to_owned();
            }
            if n == 0 {
                return;
            }
        }
    });
    receiver
}

/// When the first line arrived of which this holds.
fn first(stamps: &Receiver<(u128, u128)>, holds: impl Fn(u128, u128) -> bool) -> u128 {
    loop {
        let (stamp, at) = stamps.recv_timeout(Duration::from_secs(60)).expect("a line");
        if holds(stamp, at) {
            return at;
        }
    }
}
