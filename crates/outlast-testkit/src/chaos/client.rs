//! HTTP, as little of it as a client needs.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take before the connection counts as dead, as for the streams themselves.
pub(super) const PATIENCE: Duration = Duration::from_secs(16);

/// One request on a connection of its own; its body, if any, is JSON.
pub(super) async fn ask(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> io::Result<Response<Incoming>> {
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let mut request = Request::builder().method(method).uri(path).header("Host", address.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header("Content-Type", "application/json");
    }
    let request = request.body(Full::new(body)).map_err(io::Error::other)?;
    let answer = async {
        let stream = TokioIo::new(TcpStream::connect(address).await?);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(io::Error::other)
    };
    timeout(PATIENCE, answer).await?
}

/// The next piece of a body; none at its clean end.
pub(super) async fn piece(body: &mut Incoming) -> io::Result<Option<Bytes>> {
    loop {
        match timeout(PATIENCE, body.frame()).await? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// The whole of a body.
pub(super) async fn whole(body: &mut Incoming) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(piece) = piece(body).await? {
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

/// What is at this path, as JSON.
pub(super) async fn get(address: SocketAddr, path: &str) -> io::Result<Value> {
    let mut answer = ask(address, Method::GET, path, &[], None).await?;
    let status = answer.status();
    let body = whole(answer.body_mut()).await?;
    if status != StatusCode::OK {
        return Err(io::Error::other(format!("{path}: {status} {}", String::from_utf8_lossy(&body))));
    }
    serde_json::from_slice(&body).map_err(io::Error::other)
}
