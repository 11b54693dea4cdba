//! The endpoint itself: a port, and what was heard on it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::http::{self, Call, Reply};
use super::script::Said;
use super::{anthropic, openai};

/// A running endpoint. Closed when dropped.
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

/// What the model was told in one call.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The key that came with it.
    pub key: Option<String>,
    /// The conversation so far.
    pub conversation: Vec<Said>,
}

struct Shared {
    /// The status with which every call fails; none: the script answers.
    failure: Option<u16>,
    heard: Mutex<Vec<Heard>>,
    closed: AtomicBool,
}

impl Endpoint {
    /// One that answers as the script says.
    pub fn scripted() -> Endpoint {
        Endpoint::start(None)
    }

    /// One that answers every call with this status.
    pub fn failing(status: u16) -> Endpoint {
        Endpoint::start(Some(status))
    }

    fn start(failure: Option<u16>) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared =
            Arc::new(Shared { failure, heard: Mutex::new(Vec::new()), closed: AtomicBool::new(false) });
        let listening = Arc::clone(&shared);
        let listening = std::thread::spawn(move || listening.listen(&listener));
        Endpoint { address, shared, listening: Some(listening) }
    }

    /// Where it listens, as `http://host:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The calls to the model so far, in order.
    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().expect("lock").clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // The listener waits for a connection; here it is.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

impl Shared {
    fn listen(self: Arc<Self>, listener: &TcpListener) {
        for connection in listener.incoming() {
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            let Ok(connection) = connection else { continue };
            let shared = Arc::clone(&self);
            std::thread::spawn(move || shared.serve(&connection));
        }
    }

    fn serve(&self, connection: &TcpStream) {
        // A program that was killed leaves half a call, or does not wait for its reply.
        let Ok(Some(call)) = http::read(connection) else { return };
        let _ = http::send(connection, &self.reply(&call), call.method != "HEAD");
    }

    fn reply(&self, call: &Call) -> Reply {
        let Ok(body) = serde_json::from_slice::<Value>(&call.body) else {
            return Reply::Json(if call.method == "POST" { 400 } else { 404 }, json!({}));
        };
        let conversation = match call.path.as_str() {
            "/v1/messages" => anthropic::conversation(&body),
            "/v1/responses" => openai::conversation(&body),
            "/v1/messages/count_tokens" => return Reply::Json(200, json!({"input_tokens": 42})),
            _ => return Reply::Json(404, json!({})),
        };
        let number = {
            let mut heard = self.heard.lock().expect("lock");
            heard.push(Heard { key: key(call), conversation: conversation.clone() });
            heard.len()
        };
        match (self.failure, call.path.as_str()) {
            (Some(status), _) => {
                let error = json!({"type": "scripted_error", "message": "the script says no"});
                Reply::Json(status, json!({"type": "error", "error": error}))
            }
            (None, "/v1/messages") => anthropic::reply(&body, &conversation, number),
            (None, _) => openai::reply(&body, &conversation, number),
        }
    }
}

fn key(call: &Call) -> Option<String> {
    let bearer = call.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
    call.headers.get("x-api-key").map(String::as_str).or(bearer).map(str::to_owned)
}
