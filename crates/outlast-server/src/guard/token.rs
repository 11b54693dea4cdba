//! The bearer token.

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq;

/// What a request must bear. Shown nowhere.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The shortest token that is accepted, in characters: shorter ones can be guessed.
    pub const SHORTEST: usize = 16;

    /// Takes the token, without the blanks and line breaks around it that files end with.
    pub fn new(text: &str) -> Result<Token, String> {
        let text = text.trim();
        if text.len() < Token::SHORTEST {
            return Err(format!(
                "a token has at least {} characters; `openssl rand -hex 32` makes one",
                Token::SHORTEST
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token is made of visible ASCII characters".to_owned());
        }
        Ok(Token(text.to_owned()))
    }

    /// Whether the request bears it. Takes as long for a wrong token as for the right one.
    pub(super) fn is_borne_by(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return false;
        };
        let value = value.as_bytes();
        match value.split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                token.trim_ascii().ct_eq(self.0.as_bytes()).into()
            }
            _ => false,
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let token = Token::new(" 0123456789abcdef\n").expect("token");
        for (value, right) in [
            (Some("Bearer 0123456789abcdef"), true),
            (Some("bearer 0123456789abcdef"), true),
            (Some("Bearer 0123456789abcdeg"), false),
            (Some("Bearer 0123456789abcde"), false),
            (Some("Bearer "), false),
            (Some("0123456789abcdef"), false),
            (Some("Basic 0123456789abcdef"), false),
            (None, false),
        ] {
            let headers: HeaderMap = value
                .map(|value| (header::AUTHORIZATION, value.parse().expect("value")))
                .into_iter()
                .collect();
            assert_eq!(token.is_borne_by(&headers), right, "{value:?}");
        }
        assert!(Token::new("short").is_err());
        assert!(Token::new("0123456789 abcdef").is_err());
        assert_eq!(format!("{token:?}"), "Token");
    }
}
