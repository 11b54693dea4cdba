//! The figures of the program, one line each, beside the machine's own where they depend on it.
//!
//! `cargo bench -p outlast` measures everything (some minutes, a few GB of disk in the temporary directory);
//! `cargo bench -p outlast -- NAME…` only what has one of these names in its own.

mod agent;
mod http;
mod ledger;
mod machine;
mod postgres;
mod process;
mod report;
mod store;
mod sweep;
mod terminal;
mod translate;
mod workspaces;

fn main() {
    if agent::run_if_asked() {
        return;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let figures: &[(&str, fn())] = &[
        ("start", process::start_up),
        ("first-line", process::first_line),
        ("translate", translate::translation),
        ("replay", process::replay),
        ("latency", terminal::latency),
        ("appends", store::appends),
        ("takeover", terminal::takeover),
        ("sweep", sweep::sweep),
        ("retention", sweep::retention),
        ("ledger", ledger::ledger),
        ("workspaces", workspaces::workspaces),
        ("memory", process::memory),
        ("http-latency", http::latency),
        ("http-replay", http::replay),
        ("http-runs", http::runs_started),
        ("http-memory", http::idle_server),
        ("http-memory", http::idle_viewers),
        ("http-memory", http::stalled_viewers),
        ("postgres-appends", postgres::appends),
        ("postgres-fence", postgres::fence),
        ("postgres-ledger", ledger::postgres_ledger),
        ("postgres-takeover", postgres::takeover),
    ];
    for (name, measure) in figures {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            measure();
        }
    }
}
