//! What is answered.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use super::ask::Ask;
use super::body::{Body, End, PATIENCE};

/// A connection on which something may be asked.
#[derive(Debug)]
pub struct Connection {
    wire: BufReader<TcpStream>,
    host: String,
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Body,
    host: String,
}

impl Connection {
    #[track_caller]
    pub fn open(address: SocketAddr) -> Connection {
        Connection::try_open(address).expect("connect")
    }

    /// A connection; none where nobody listens.
    pub fn try_open(address: SocketAddr) -> Option<Connection> {
        let socket = TcpStream::connect(address).ok()?;
        socket.set_nodelay(true).expect("no delay");
        socket.set_read_timeout(Some(PATIENCE)).expect("patience");
        socket.set_write_timeout(Some(PATIENCE)).expect("patience");
        Some(Connection { wire: BufReader::with_capacity(64 * 1024, socket), host: address.to_string() })
    }

    pub fn send(&mut self, ask: &Ask) {
        self.try_send(ask).expect("the request");
    }

    pub fn try_send(&mut self, ask: &Ask) -> std::io::Result<()> {
        self.write(&ask.head(&self.host))?;
        self.write(ask.payload())
    }

    /// Sends the head and a part of the body.
    pub fn send_part(&mut self, ask: &Ask, bytes: usize) {
        self.write(&ask.head(&self.host)).expect("the request's head");
        self.write(&ask.payload()[..bytes]).expect("a part of the request's body");
    }

    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.wire.get_mut().write_all(bytes)
    }

    /// Says that nothing more will be sent.
    pub fn close_half(&self) {
        self.wire.get_ref().shutdown(Shutdown::Write).expect("shutdown");
    }

    /// Waits until something has come, without reading it: closed like this, the connection is reset.
    pub fn peek(&self) {
        assert!(self.wire.get_ref().peek(&mut [0]).expect("something comes") > 0);
    }

    /// The answer; none where the connection ends without one.
    #[track_caller]
    pub fn try_answer(mut self) -> Option<Answer> {
        let first = line(&mut self.wire).filter(|line| !line.is_empty())?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("a status line");
        let status: u16 = status.parse().expect("a status");
        let mut headers = Vec::new();
        loop {
            let header = line(&mut self.wire)?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').expect("a header");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let of =
            |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let chunked = of("transfer-encoding") == Some("chunked");
        let length = of("content-length").map_or(0, |length| length.parse().expect("a length"));
        let body = Body::new(self.wire, chunked, length);
        Some(Answer { status, headers, body, host: self.host })
    }

    #[track_caller]
    pub fn answer(self) -> Answer {
        self.try_answer().expect("an answer")
    }
}

/// A line of the head; none where the connection ends.
fn line(wire: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = Vec::new();
    match wire.read_until(b'\n', &mut line) {
        Ok(_) if line.ends_with(b"\r\n") => {
            Some(String::from_utf8(line).expect("utf-8").trim_end().to_owned())
        }
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
        Err(error) => panic!("no answer: {error}"),
    }
}

impl Answer {
    /// The value of a header that stands there once.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let values: Vec<&str> =
            self.headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect();
        assert!(values.len() < 2, "{name}: {values:?}");
        values.first().copied()
    }

    /// Everything that comes, and how it ends.
    pub fn read(&mut self) -> (Vec<u8>, End) {
        let mut bytes = Vec::new();
        let end = match self.body.read_to_end(&mut bytes) {
            Ok(_) => End::Clean,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => End::Cut,
            Err(error) => panic!("{error}, after {} bytes", bytes.len()),
        };
        (bytes, end)
    }

    /// The whole body as text.
    #[track_caller]
    pub fn text(mut self) -> String {
        let (bytes, end) = self.read();
        assert_eq!(end, End::Clean);
        String::from_utf8(bytes).expect("utf-8")
    }

    /// The whole body as JSON, which it says to be.
    #[track_caller]
    pub fn json(self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "status {}", self.status);
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok(self) -> Value {
        let status = self.status;
        let body = self.json();
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The code and the message of a refusal with this status, which has the form that every error has.
    #[track_caller]
    pub fn refused(self, status: u16) -> (String, String) {
        let error = self.refusal(status);
        let text = |name: &str| error[name].as_str().expect("text").to_owned();
        (text("code"), text("message"))
    }

    /// As [`Answer::refused`]: the whole error.
    #[track_caller]
    pub fn refusal(self, status: u16) -> Value {
        let got = self.status;
        let body = self.json();
        assert_eq!(got, status, "{body}");
        assert_eq!(body.as_object().map(|fields| fields.len()), Some(1), "{body}");
        let code = body["error"]["code"].as_str().expect("a code");
        assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
        assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        body["error"].clone()
    }

    /// The connection, once the whole body was read.
    #[track_caller]
    pub fn done(mut self) -> Connection {
        assert_eq!(self.read().1, End::Clean);
        Connection { wire: self.body.wire, host: self.host }
    }
}
