//! Canonical JSON: one text for one value, so that values can be compared and digested.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// JSON without blanks, with the keys of every object sorted by their code points.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The hex SHA-256 of the canonical JSON.
pub fn digest(value: &Value) -> String {
    crate::hex::encode(&Sha256::digest(json(value).as_bytes()))
}

/// What of an event must be equal when a journal is translated again: everything but its time.
pub fn fingerprint(event: &Value) -> String {
    match event {
        Value::Object(map) => {
            let mut map = map.clone();
            map.remove("timestamp");
            digest(&Value::Object(map))
        }
        other => digest(other),
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_and_time_do_not_matter_but_all_else_does() {
        assert_eq!(
            json(&json!({"b": [1, {"d": null, "c": "x\n"}], "a": true})),
            r#"{"a":true,"b":[1,{"c":"x\n","d":null}]}"#
        );
        let a = json!({"type": "CUSTOM", "name": "n", "value": 1, "timestamp": 5});
        let b = json!({"name": "n", "type": "CUSTOM", "timestamp": 6, "value": 1});
        assert_eq!(fingerprint(&a), fingerprint(&b));
        assert_ne!(fingerprint(&a), fingerprint(&json!({"type": "CUSTOM", "name": "n", "value": null})));
    }
}
