//! `outlast serve`, and clients of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Bench, Proc, eventually};

/// A server.
pub struct Served {
    pub process: Proc,
    pub address: SocketAddr,
}

impl Served {
    pub fn start(bench: &Bench) -> Served {
        let mut process = bench.spawn(["serve", "--json", "--listen", "127.0.0.1:0"]);
        process.wait_for("\"listening\"");
        let said: Value =
            serde_json::from_str(process.stdout().lines().next().expect("a line")).expect("json");
        let url = said["listening"].as_str().expect("url");
        let address = url.trim_start_matches("http://").parse().expect("address");
        Served { process, address }
    }

    fn ask(&self, request: &str) -> Option<Value> {
        serde_json::from_str(&self.body(request)?).ok()
    }

    /// The numbers of `/metrics`.
    pub fn metrics(&self) -> Option<String> {
        self.body(&format!("GET /metrics HTTP/1.0\r\nHost: {}\r\n\r\n", self.address))
    }

    fn body(&self, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }

    /// What is at this path; none where the server does not answer.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.ask(&format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address))
    }

    pub fn post(&self, path: &str) -> Option<Value> {
        self.ask(&format!("POST {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", self.address))
    }

    /// Follows a run from its start.
    pub fn follow(&self, run: &str) -> Stream {
        let mut stream = TcpStream::connect(self.address).expect("connect");
        let request = format!(
            "GET /api/chat?runId={run}&offset=-1&format=ndjson HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("write");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                let mut bytes = sink.lock().expect("lock");
                bytes.extend_from_slice(&buffer[..n]);
                // The last chunk is the end, whatever becomes of the connection.
                if bytes.ends_with(b"\r\n0\r\n\r\n") {
                    return;
                }
            }
        });
        Stream { bytes, reader }
    }
}

/// One answer that goes on for as long as its run.
pub struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Stream {
    /// Whether this has come.
    pub fn has(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.bytes.lock().expect("lock")).contains(words)
    }

    #[track_caller]
    pub fn wait_for(&self, words: &str) {
        eventually(&format!("{words:?} in the stream"), || {
            assert!(!self.reader.is_finished() || self.has(words), "it ended without {words:?}");
            self.has(words).then_some(())
        });
    }

    /// The events, each as its line, of a stream that has ended cleanly.
    #[track_caller]
    pub fn events(self) -> Vec<Value> {
        eventually("the end of the stream", || self.reader.is_finished().then_some(()));
        let bytes = self.bytes.lock().expect("lock").clone();
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        let body = whole(&bytes[head..]).expect("the stream was cut");
        let lines = String::from_utf8(body).expect("text");
        lines
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).expect("json"))
            .collect()
    }
}

/// A chunked body without its framing; none where its end is missing.
fn whole(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(line + 2..line + 2 + size)?);
        rest = rest.get(line + 4 + size..)?;
    }
}
