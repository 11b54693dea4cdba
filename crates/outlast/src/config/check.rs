//! Finds keys that mean nothing, before the values are read.

use toml::{Table, Value};

/// The keys of each table. `*` stands for a name that the user chooses.
const TABLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "agents",
            "sandbox",
            "sandboxes",
            "driver",
            "reap",
            "retention",
            "serve",
            "store",
            "objects",
            "workspace",
            "sessions",
        ],
    ),
    ("agents.*", &["kind", "argv", "env", "pass_env", "cwd", "model", "stdin", "on_disconnect", "sandbox"]),
    ("sandbox", &["fence", "max_output", "max_stderr", "reuse", "keep_alive"]),
    ("sandboxes.*", &["fence", "max_output", "max_stderr", "reuse", "keep_alive"]),
    ("driver", &["lease"]),
    (
        "reap",
        &[
            "detached_run_ttl",
            "interrupted_ttl",
            "schedule",
            "interval",
            "max_runs",
            "run_budget",
            "reclaim_schedule",
            "reclaim_interval",
            "orphan_grace",
        ],
    ),
    ("retention", &["events", "messages", "keep_journals", "schedule", "interval"]),
    ("store", &["url", "notifications"]),
    ("objects", &["place"]),
    ("workspace", &["checkpoint", "exclude", "include_secrets", "gitignore"]),
    ("sessions", &["grace", "quarantine", "schedule", "interval"]),
    (
        "serve",
        &[
            "listen",
            "token_file",
            "hosts",
            "cors_origins",
            "agent",
            "max_runs",
            "max_viewers",
            "max_body",
            "heartbeat",
            "reconnect_grace",
        ],
    ),
];

/// The first unknown key, with the nearest valid one.
pub(super) fn unknown_key(table: &Table) -> Option<String> {
    walk(table, "", "")
}

fn walk(table: &Table, pattern: &str, path: &str) -> Option<String> {
    let known = TABLES.iter().find(|(name, _)| *name == pattern).map(|(_, keys)| *keys);
    for (key, value) in table {
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if let Some(known) = known
            && !known.contains(&key.as_str())
        {
            let nearest = known.iter().max_by(|a, b| {
                let near = |candidate: &str| strsim::jaro_winkler(key, candidate);
                near(a).total_cmp(&near(b))
            });
            let place = if path.is_empty() { "the file's top level".to_owned() } else { format!("[{path}]") };
            let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
            return Some(format!("unknown key {key:?} in {place}{hint} Valid keys: {}.", known.join(", ")));
        }
        if let Value::Table(inner) = value {
            // What stands below these is a table of the user's own names.
            let pattern = match (pattern, key.as_str()) {
                ("", "agents") => "agents",
                ("agents", _) => "agents.*",
                ("", "sandboxes") => "sandboxes",
                ("sandboxes", _) => "sandboxes.*",
                ("agents.*", _) => continue,
                ("", key) => key,
                _ => continue,
            };
            if let Some(problem) = walk(inner, pattern, &here) {
                return Some(problem);
            }
        }
    }
    None
}
