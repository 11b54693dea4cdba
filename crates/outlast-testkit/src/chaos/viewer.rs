//! A client that follows a run to its end, whatever happens to its connections.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::client::{ask, piece, whole};
use crate::dice::Dice;

/// What a viewer has seen so far.
#[derive(Debug, Default)]
pub(super) struct Viewed {
    /// Offsets and events, as they came.
    pub events: Vec<(String, String)>,
    pub connections: usize,
    /// The stream has ended as it should.
    pub done: bool,
    /// What should not have been.
    pub complaints: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    chunk: Box<RawValue>,
}

pub(super) struct Viewer {
    pub run: String,
    pub proxy: SocketAddr,
    pub dice: Dice,
    /// Leaves now and then, and comes back.
    pub restless: bool,
    pub viewed: Arc<Mutex<Viewed>>,
}

impl Viewer {
    fn with<T>(&self, f: impl FnOnce(&mut Viewed) -> T) -> T {
        f(&mut self.viewed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn moment(&self, at_most: u64) {
        sleep(Duration::from_millis(self.dice.between(20, at_most))).await;
    }

    /// Starts the run with this request, as often as it takes, and follows it.
    pub async fn start(&self, request: &Value) {
        self.follow_with(Some(request)).await;
    }

    /// Follows a run that somebody has started.
    pub async fn follow(&self) {
        self.follow_with(None).await;
    }

    async fn follow_with(&self, request: Option<&Value>) {
        while !self.with(|viewed| viewed.done || !viewed.complaints.is_empty()) {
            let last = self.with(|viewed| {
                viewed.connections += 1;
                viewed.events.last().map(|(offset, _)| offset.clone())
            });
            let answer = match (request, last.as_deref()) {
                (Some(request), None) => self.post(request, None).await,
                // Either way is one that clients use to come back.
                (Some(request), last) if self.dice.permille(500) => self.post(request, last).await,
                (_, last) => {
                    let offset = last.unwrap_or("-1");
                    let path = format!("/api/chat?runId={}&offset={offset}&format=ndjson", self.run);
                    ask(self.proxy, Method::GET, &path, &[], None).await
                }
            };
            match answer {
                Ok(answer) if answer.status() == StatusCode::OK => self.read(answer).await,
                Ok(answer) => self.refused(answer).await,
                Err(_) => self.moment(200).await,
            }
        }
    }

    async fn post(&self, request: &Value, last: Option<&str>) -> std::io::Result<Response<Incoming>> {
        let headers: Vec<(&str, &str)> = last.iter().map(|last| ("Last-Event-ID", *last)).collect();
        ask(self.proxy, Method::POST, "/api/chat?format=ndjson", &headers, Some(request)).await
    }

    /// A refusal is one that says when to come back, or it is a broken promise.
    async fn refused(&self, mut answer: Response<Incoming>) {
        let (status, retry) = (answer.status(), answer.headers().contains_key("Retry-After"));
        let Ok(body) = whole(answer.body_mut()).await else { return };
        if retry && (status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS) {
            return self.moment(500).await;
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        self.with(|viewed| viewed.complaints.push(format!("was answered {status}: {body}")));
    }

    async fn read(&self, mut answer: Response<Incoming>) {
        let stays = if self.restless { self.dice.between(1, 60) } else { u64::MAX };
        let mut rest = Vec::new();
        for _ in 0..stays {
            match piece(answer.body_mut()).await {
                Ok(Some(piece)) => {
                    rest.extend_from_slice(&piece);
                    self.take_lines(&mut rest);
                }
                Ok(None) => return self.ended(&rest),
                Err(_) => return self.moment(200).await,
            }
        }
        drop(answer);
        self.moment(1500).await;
    }

    fn take_lines(&self, rest: &mut Vec<u8>) {
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if line.trim_ascii().is_empty() {
                continue;
            }
            match offset_and_event(&line) {
                Ok(event) => self.with(|viewed| viewed.events.push(event)),
                Err(error) => {
                    let line = String::from_utf8_lossy(&line).into_owned();
                    self.with(|viewed| viewed.complaints.push(format!("got {line:?}: {error}")));
                }
            }
        }
    }

    /// A body ends cleanly after the last event, and only then.
    fn ended(&self, rest: &[u8]) {
        self.with(|viewed| {
            let last = viewed.events.last().map_or("", |(_, event)| event.as_str());
            if rest.is_empty() && is_terminal(last) {
                viewed.done = true;
            } else {
                viewed.complaints.push(format!("the body ended after {last:?}"));
            }
        });
    }
}

/// What a line of a stream, or of `outlast logs --json`, holds.
pub(super) fn offset_and_event(line: &[u8]) -> serde_json::Result<(String, String)> {
    let line: Line = serde_json::from_slice(line)?;
    Ok((line.id, line.chunk.get().to_owned()))
}

/// The type of an event.
pub(super) fn kind(event: &str) -> String {
    let value: Value = serde_json::from_str(event).unwrap_or_default();
    value["type"].as_str().unwrap_or_default().to_owned()
}

pub(super) fn is_terminal(event: &str) -> bool {
    matches!(kind(event).as_str(), "RUN_FINISHED" | "RUN_ERROR")
}

/// What starts a run.
pub(super) fn request(run: &str, prompt: &str) -> Value {
    json!({
        "threadId": format!("thread-of-{run}"),
        "runId": run,
        "messages": [{"id": format!("message-of-{run}"), "role": "user", "content": prompt}],
    })
}
