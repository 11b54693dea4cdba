//! The servers.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::dice::Dice;

/// Until a server listens, and until it has ended after SIGTERM.
const SOON: Duration = Duration::from_secs(60);

struct Server {
    child: Child,
    /// Kept open: a server that cannot print would die of it.
    _stdout: BufReader<ChildStdout>,
}

/// Several servers, each in a place of its own, where another is put when it has died.
pub(super) struct Hosts {
    outlast: PathBuf,
    dir: PathBuf,
    store: String,
    places: Vec<tokio::sync::Mutex<Option<Server>>>,
    addresses: Mutex<Vec<Option<SocketAddr>>>,
}

impl Hosts {
    pub fn new(outlast: PathBuf, dir: PathBuf, store: String, count: usize) -> Hosts {
        let places = (0..count).map(|_| tokio::sync::Mutex::new(None)).collect();
        Hosts { outlast, dir, store, places, addresses: Mutex::new(vec![None; count]) }
    }

    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The binary, to be called on the same data and store.
    pub fn outlast(&self) -> Command {
        let mut command = Command::new(&self.outlast);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("OUTLAST_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(&self.dir)
            .env("OUTLAST_DATA_DIR", self.dir.join("data"))
            .env("OUTLAST_CONFIG", self.dir.join("outlast.toml"))
            .env("OUTLAST_STORE", &self.store)
            .stdin(Stdio::null());
        command
    }

    fn set_address(&self, place: usize, address: Option<SocketAddr>) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)[place] = address;
    }

    /// Any server that has not been seen dying.
    pub fn any(&self, dice: &Dice) -> Option<SocketAddr> {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<SocketAddr> = addresses.iter().flatten().copied().collect();
        known.get(dice.pick(known.len())).copied()
    }

    /// Puts a server into an empty place.
    pub async fn start(&self, place: usize) -> io::Result<()> {
        let mut server = self.places[place].lock().await;
        if server.is_some() {
            return Ok(());
        }
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.dir.join(format!("server-{place}.log")))?;
        let mut child = self
            .outlast()
            .args(["serve", "--json", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        timeout(SOON, stdout.read_line(&mut line)).await??;
        let said: serde_json::Value = serde_json::from_str(&line)
            .map_err(|e| io::Error::other(format!("server {place} said {line:?}: {e}")))?;
        let url = said["listening"].as_str().unwrap_or_default().trim_start_matches("http://");
        self.set_address(place, Some(url.parse().map_err(io::Error::other)?));
        *server = Some(Server { child, _stdout: stdout });
        Ok(())
    }

    pub async fn kill(&self, place: usize) -> io::Result<()> {
        let mut server = self.places[place].lock().await;
        self.set_address(place, None);
        if let Some(mut server) = server.take() {
            server.child.kill().await?;
        }
        Ok(())
    }

    /// SIGTERM; false where the server has not ended by itself, or not well.
    pub async fn terminate(&self, place: usize) -> io::Result<bool> {
        let mut server = self.places[place].lock().await;
        let Some(mut running) = server.take() else { return Ok(true) };
        signal(&running.child, Signal::TERM);
        let ended = timeout(SOON, running.child.wait()).await;
        self.set_address(place, None);
        match ended {
            Ok(status) => Ok(status?.success()),
            Err(_) => {
                running.child.kill().await?;
                Ok(false)
            }
        }
    }

    /// Keeps a server from running for so long. Nobody does anything else to it meanwhile.
    pub async fn freeze(&self, place: usize, time: Duration) {
        let server = self.places[place].lock().await;
        if let Some(server) = &*server {
            signal(&server.child, Signal::STOP);
            tokio::time::sleep(time).await;
            signal(&server.child, Signal::CONT);
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // A child that has not been waited for keeps its pid: this cannot hit another process.
        let _ = kill_process(pid, signal);
    }
}
