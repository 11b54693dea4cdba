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
    pub fn new(data_dir: Option<&Path>, config: Option<&Path>) -> Self {
        let mut options = String::new();
        for (name, path) in [("--data-dir", data_dir), ("--config", config)] {
            if let Some(path) = path {
                options.push_str(&format!(" {name} {}", quote(&path.to_string_lossy())));
            }
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
        let plain = Again::new(None, None);
        assert_eq!(command(&plain, "run-1"), "outlast attach run-1");
        assert_eq!(command(&plain, "a'b; rm -rf ~"), r"outlast attach 'a'\''b; rm -rf ~'");
        assert_eq!(command(&plain, "-d"), "outlast attach -- -d");
        assert_eq!(command(&plain, "- d"), "outlast attach -- '- d'");
        let elsewhere = Again::new(Some(Path::new("/my data")), Some(Path::new("o.toml")));
        assert_eq!(command(&elsewhere, "r"), "outlast attach --data-dir '/my data' --config o.toml r");
    }
}
