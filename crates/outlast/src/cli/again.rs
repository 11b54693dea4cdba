//! Commands that a person can copy.

use std::path::Path;

use outlast_core::RunId;

/// Writes commands that mean the same data directory and configuration as this call.
#[derive(Debug, Default)]
pub struct Again {
    options: String,
}

impl Again {
    /// With the options of this call. What came from the environment will be there again.
    pub fn new(data_dir: Option<&Path>, config: Option<&Path>, store: Option<&str>) -> Self {
        let mut options = String::new();
        for (name, path) in [("--data-dir", data_dir), ("--config", config)] {
            if let Some(path) = path {
                options.push_str(&format!(" {name} {}", quote(&path.to_string_lossy())));
            }
        }
        // A password is not repeated.
        if let Some(url) = store.filter(|url| !has_password(url)) {
            options.push_str(&format!(" --store {}", quote(url)));
        }
        Again { options }
    }

    /// `outlast COMMAND RUN`, as a shell takes it.
    pub fn command(&self, command: &str, run: &RunId) -> String {
        // An id that looks like an option must not be taken for one.
        let guard = if run.as_str().starts_with('-') { "-- " } else { "" };
        format!("outlast {command}{} {guard}{}", self.options, quote(run.as_str()))
    }
}

/// A text as one word of a shell.
fn has_password(url: &str) -> bool {
    let user = url.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
}

fn quote(text: &str) -> String {
    let plain =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:@%+=".contains(&b));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_for_a_shell() {
        let command = |again: &Again, run: &str| again.command("attach", &RunId::new(run).expect("id"));
        let plain = Again::new(None, None, None);
        assert_eq!(command(&plain, "run-1"), "outlast attach run-1");
        assert_eq!(command(&plain, "a'b; rm -rf ~"), r"outlast attach 'a'\''b; rm -rf ~'");
        assert_eq!(command(&plain, "-d"), "outlast attach -- -d");
        assert_eq!(command(&plain, "- d"), "outlast attach -- '- d'");
        let elsewhere =
            Again::new(Some(Path::new("/my data")), Some(Path::new("o.toml")), Some("postgres://h/d"));
        assert_eq!(
            command(&elsewhere, "r"),
            "outlast attach --data-dir '/my data' --config o.toml --store postgres://h/d r"
        );
        for url in ["postgres://u:secret@h/d", "postgres://h/d?password=secret"] {
            assert_eq!(command(&Again::new(None, None, Some(url)), "r"), "outlast attach r");
        }
    }
}
