//! A server with one agent.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use crate::agent;
use crate::machine::Place;

/// `outlast serve` on a data directory of its own. Killed when dropped.
pub struct Served {
    place: Place,
    child: Child,
    pub address: SocketAddr,
}

impl Served {
    /// With the bench's agent, called with these arguments.
    pub fn with_agent(args: &[&str]) -> Served {
        Served::with_command(&agent::command(args))
    }

    pub fn with_command(argv: &[String]) -> Served {
        let place = Place::new();
        configure(&place, argv, "");
        let (child, address) = serve(&place);
        Served { place, child, address }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_runs(&self.place);
    }
}

/// Writes a configuration with this command as the only agent.
pub fn configure(place: &Place, argv: &[String], more: &str) {
    let argv: Vec<String> = argv.iter().map(|arg| format!("{arg:?}")).collect();
    let config = format!(
        "[agents.bench]\nkind = \"command\"\nargv = [{}]\n[serve]\nmax_runs = 100000\n{more}",
        argv.join(", ")
    );
    std::fs::write(place.path().join("outlast.toml"), config).expect("configuration");
}

/// Starts a server, and tells where it listens once it does.
pub fn serve(place: &Place) -> (Child, SocketAddr) {
    let mut command = place.outlast(["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.env("OUTLAST_LOG", "error").stderr(Stdio::null());
    let mut child = command.spawn().expect("spawn");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("read");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('"').next());
    let address = address.and_then(|text| text.parse().ok()).expect("an address");
    (child, address)
}

/// Agents that are still at work end with their shims.
pub fn end_runs(place: &Place) {
    for run in place.outlast(["ps", "--json"]).output().ok().map(|out| out.stdout).iter() {
        let text = String::from_utf8_lossy(run).into_owned();
        for id in text.split("\"runId\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let _ = place.outlast(["cancel", id]).output();
        }
    }
}
