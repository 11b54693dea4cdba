//! A data directory that is served.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Answer, Ask, Connection, Event, Stream, lines, percent};
use crate::support::{Bench, Finished, Proc, eventually, gated_agent};

/// A running `outlast serve`.
pub struct Server {
    pub proc: Proc,
    pub address: SocketAddr,
}

/// A data directory and what serves it. Its agent `sh`, that of requests that name none, does what the prompt says, in
/// the bench's workspace.
pub struct Site {
    pub server: Server,
    pub bench: Bench,
}

impl std::ops::Deref for Site {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Site {
    pub fn new() -> Site {
        Site::with("", "")
    }

    /// With these lines in `[serve]`, and more at the end of the configuration.
    pub fn with(serve: &str, more: &str) -> Site {
        Site::with_lease("1500ms", serve, more)
    }

    pub fn with_lease(lease: &str, serve: &str, more: &str) -> Site {
        let bench = Bench::new();
        configure(&bench, lease, serve, more);
        Site { server: serve_on(&bench), bench }
    }

    /// Kills the server and starts another.
    pub fn kill9_and_serve(&mut self) {
        self.server.proc.signal(Signal::KILL);
        eventually("it is gone", || self.server.proc.has_ended().then_some(()));
        self.server = serve_on(&self.bench);
    }

    /// Ends the server as a service manager does, and starts another.
    pub fn end_and_serve(&mut self) -> Finished {
        self.server.proc.signal(Signal::TERM);
        eventually("it has ended", || self.server.proc.has_ended().then_some(()));
        let next = serve_on(&self.bench);
        std::mem::replace(&mut self.server, next).proc.finish()
    }

    /// What is stored, as `outlast logs --json` prints it.
    #[track_caller]
    pub fn stored(&self, run: &str) -> String {
        self.bench.outlast(["logs", "--json", "--", run]).ok()
    }

    /// Asserts that these are all the events of an ended run, byte for byte, and that it is whole.
    #[track_caller]
    pub fn check_all(&self, run: &str, events: &[Event]) {
        assert_eq!(lines(events), self.stored(run));
        self.bench.check_ended(run);
    }
}

/// Writes the configuration of a [`Site`].
pub fn configure(bench: &Bench, lease: &str, serve: &str, more: &str) {
    let cwd = bench.workspace();
    let text = format!(
        "[driver]\nlease = {lease:?}\n\
         [agents.sh]\nkind = \"command\"\nargv = [\"sh\", \"-c\", '. \"$OUTLAST_PROMPT_FILE\"']\nstdin = \"none\"\ncwd = {cwd:?}\n\
         [serve]\nagent = \"sh\"\n{serve}\n{more}\n"
    );
    fs::write(config_file(bench), text).expect("configuration");
}

pub fn config_file(bench: &Bench) -> PathBuf {
    bench.data_dir().join("outlast.toml")
}

/// Starts `outlast serve` on the bench's data directory, at a port of its own.
#[track_caller]
pub fn serve_on(bench: &Bench) -> Server {
    serve_with(bench, &[], &[])
}

/// As [`serve_on`], with arguments and environment.
#[track_caller]
pub fn serve_with(bench: &Bench, args: &[&str], env: &[(&str, &str)]) -> Server {
    let mut command = bench.command(["serve", "--json", "--listen", "127.0.0.1:0"].iter().chain(args));
    command.envs(env.iter().copied());
    let mut proc = Proc::new(command.spawn().expect("spawn"));
    proc.wait_for("\n");
    let told: Value = serde_json::from_str(proc.stdout().trim_end()).expect("one line of JSON");
    let url = told["listening"].as_str().expect("a URL");
    let address = url.strip_prefix("http://").expect("http").parse().expect("an address");
    Server { proc, address }
}

/// The body of a request for a run: one message of the user.
pub fn input(run: &str, thread: &str, text: &str) -> Value {
    json!({
        "threadId": thread, "runId": run, "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": format!("{run}-said"), "role": "user", "content": text}],
    })
}

/// A script for the agent `sh`: says three lines, waits for the gate, says the lines up to `total` and exits with 7.
pub fn gated(total: u32) -> String {
    gated_agent(3, total, 7)[2].clone()
}

impl Server {
    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    pub fn ask(&self, ask: &Ask) -> Answer {
        let mut connection = self.connect();
        connection.send(ask);
        connection.answer()
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask(&Ask::get(target))
    }

    pub fn post(&self, target: &str, body: &Value) -> Answer {
        self.ask(&Ask::post(target, body))
    }

    /// Starts a run whose agent does as the script says, on a thread of its own, and follows it.
    #[track_caller]
    pub fn start(&self, run: &str, script: &str) -> Stream {
        Stream::of(self.post("/api/chat", &input(run, &format!("thread-{run}"), script)))
    }

    /// Follows a run from the offset.
    #[track_caller]
    pub fn join(&self, run: &str, offset: &str) -> Stream {
        Stream::of(self.get(&format!("/api/chat?runId={}&offset={offset}", percent(run))))
    }

    /// The native stream.
    #[track_caller]
    pub fn native(&self, run: &str) -> Stream {
        Stream::of(self.get(&format!("/v1/runs/{}/events", percent(run))))
    }

    /// The record.
    #[track_caller]
    pub fn run(&self, run: &str) -> Value {
        self.get(&format!("/v1/runs/{}", percent(run))).ok()
    }

    /// Waits until the record is so.
    #[track_caller]
    pub fn wait_until(&self, run: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{run}: {what}"), || Some(self.run(run)).filter(|record| is_so(record)))
    }

    /// Waits until the run has ended.
    #[track_caller]
    pub fn wait_for_end(&self, run: &str) -> Value {
        self.wait_until(run, "it has ended", |record| record["finishedAt"].is_u64())
    }
}
