//! Requests by hand: a client that costs as little as possible beside the server that is measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Starts a run and gives the connection on which its events come.
pub fn post(address: SocketAddr, run: &str) -> TcpStream {
    let body = format!(
        "{{\"threadId\":\"thread-{run}\",\"runId\":\"{run}\",\"messages\":[{{\"id\":\"m-{run}\",\"role\":\"user\",\
         \"content\":\"go\"}}]}}"
    );
    let head = format!(
        "POST /api/chat HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.write_all(format!("{head}{body}").as_bytes()).expect("write");
    stream
}

/// What asks for a run's events.
pub fn get(address: SocketAddr, run: &str, offset: &str, format: &str) -> String {
    format!(
        "GET /api/chat?runId={run}&offset={offset}&format={format} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
}

/// Follows a run on a connection of its own.
pub fn follow(address: SocketAddr, run: &str, offset: &str, format: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.write_all(get(address, run, offset, format).as_bytes()).expect("write");
    stream
}

/// Reads until these words have come.
pub fn read_until(stream: &mut TcpStream, words: &str) {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = stream.read(&mut buffer).expect("read");
        assert!(n > 0, "ended without {words:?}: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..n]);
        if memchr::memmem::find(&seen, words.as_bytes()).is_some() {
            return;
        }
        // What may be the beginning of the words.
        seen.drain(..seen.len().saturating_sub(words.len()));
    }
}

/// Reads to the end and tells how much that was.
pub fn drain(stream: &mut TcpStream) -> u64 {
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer).expect("read") {
            0 => return bytes,
            n => bytes += n as u64,
        }
    }
}
