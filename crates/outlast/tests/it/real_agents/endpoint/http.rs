//! As much of HTTP as the programs use: one call for each connection.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A call that came in.
pub struct Call {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// By names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// What goes back.
pub enum Reply {
    /// A status and a body.
    Json(u16, Value),
    /// Events with their names.
    Stream(Vec<(&'static str, Value)>),
}

/// Reads a call; none where the connection was closed without one.
pub fn read(connection: &TcpStream) -> io::Result<Option<Call>> {
    let mut reader = BufReader::new(connection);
    let Some(first) = line(&mut reader)? else {
        return Ok(None);
    };
    let mut words = first.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    while let Some(header) = line(&mut reader)?.filter(|header| !header.is_empty()) {
        if let Some((name, value)) = header.split_once(':') {
            headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Call { method, path, headers, body }))
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = reader.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

/// Sends the reply. The connection's end is the body's.
pub fn send(mut connection: &TcpStream, reply: &Reply, with_body: bool) -> io::Result<()> {
    let (status, content_type, body) = match reply {
        Reply::Json(status, value) => (*status, "application/json", value.to_string()),
        Reply::Stream(events) => {
            let events = events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"));
            (200, "text/event-stream", events.collect())
        }
    };
    let head =
        format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    connection.write_all(head.as_bytes())?;
    if with_body {
        connection.write_all(body.as_bytes())?;
    }
    connection.flush()
}
