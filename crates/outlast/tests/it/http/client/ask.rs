//! What is asked.

use serde_json::Value;

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    method: String,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, target: &str) -> Ask {
        Ask { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn get(target: &str) -> Ask {
        Ask::new("GET", target)
    }

    /// With a body of JSON.
    pub fn post(target: &str, body: &Value) -> Ask {
        Ask::new("POST", target).header("Content-Type", "application/json").body(body.to_string())
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Ask {
        self.headers.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Ask {
        self.body = body.into();
        self
    }

    /// The head as it goes over the wire; `Host` and `Content-Length` unless they are given.
    pub(super) fn head(&self, host: &str) -> Vec<u8> {
        let has = |name: &str| self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        if !has("host") {
            head.extend(format!("Host: {host}\r\n").into_bytes());
        }
        let sized = has("content-length") || has("transfer-encoding");
        if !sized && (self.method == "POST" || !self.body.is_empty()) {
            head.extend(format!("Content-Length: {}\r\n", self.body.len()).into_bytes());
        }
        for (name, value) in &self.headers {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        head
    }

    pub(super) fn payload(&self) -> &[u8] {
        &self.body
    }
}

/// Text as it may stand anywhere in a URL.
pub fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
