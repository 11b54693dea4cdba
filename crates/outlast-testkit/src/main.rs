//! Long rounds of what the tests do in short: servers in trouble, and simulated worlds.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use outlast_testkit::chaos::{self, round};
use outlast_testkit::sim;

#[derive(Parser)]
#[command(version, about)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Real servers on one PostgreSQL, killed, frozen, restarted and cut off while clients watch
    Chaos(Chaos),
    /// One server after the other replaced under load
    Rolling(Chaos),
    /// Simulated worlds, each from a seed
    Sim {
        /// FROM..TO, without TO
        #[arg(long, default_value = "0..1000", value_parser = seeds)]
        seeds: std::ops::Range<u64>,
        /// Where the history of a world that broke a promise is written
        #[arg(long)]
        history: Option<PathBuf>,
    },
    /// Simulated worlds of sessions, each from a seed
    Sessions {
        /// FROM..TO, without TO
        #[arg(long, default_value = "0..1000", value_parser = seeds)]
        seeds: std::ops::Range<u64>,
        /// Where the history of a world that broke a promise is written
        #[arg(long)]
        history: Option<PathBuf>,
        /// Goes on after a world that broke a promise
        #[arg(long)]
        keep_going: bool,
    },
}

#[derive(clap::Args)]
struct Chaos {
    /// The `outlast` binary; the one beside this program unless given
    #[arg(long)]
    outlast: Option<PathBuf>,
    /// PostgreSQL, reached without TLS, by a role that may create schemas and cut its own connections
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5432/postgres")]
    store: String,
    /// Of the first round; the next ones count up from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many rounds
    #[arg(long, default_value_t = 1)]
    rounds: u64,
    /// Seconds of trouble in each round
    #[arg(long)]
    seconds: Option<u64>,
    /// Servers at a time
    #[arg(long)]
    hosts: Option<usize>,
    /// Runs in each round
    #[arg(long)]
    runs: Option<usize>,
}

fn seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO")?;
    let number = |text: &str| text.parse().map_err(|e| format!("{text:?}: {e}"));
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    let well = match Args::parse().what {
        What::Chaos(args) => rounds(&args, chaos::Plan::new),
        What::Rolling(args) => rounds(&args, chaos::Plan::rolling),
        What::Sim { seeds, history } => simulate(seeds, history),
        What::Sessions { seeds, history, keep_going } => simulate_sessions(seeds, history, keep_going),
    };
    match well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("outlast-testkit: {error}");
            ExitCode::from(2)
        }
    }
}

fn rounds(args: &Chaos, plan: fn(PathBuf, String, PathBuf, u64) -> chaos::Plan) -> std::io::Result<bool> {
    let beside = std::env::current_exe()?.with_file_name("outlast");
    let outlast = args.outlast.clone().unwrap_or(beside).canonicalize()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for seed in args.seed..args.seed + args.rounds {
        let dir = tempfile::Builder::new().prefix(&format!("outlast-chaos-{seed}-")).tempdir()?;
        let mut plan = plan(outlast.clone(), args.store.clone(), dir.path().to_owned(), seed);
        plan.trouble = args.seconds.map_or(plan.trouble, Duration::from_secs);
        plan.hosts = args.hosts.unwrap_or(plan.hosts);
        plan.runs = args.runs.unwrap_or(plan.runs);
        let report = runtime.block_on(round(&plan))?;
        println!(
            "seed {seed}: runs {:?}, {} events, driven {} times; {:?}; {} viewers on {} connections",
            report.ends, report.events, report.epochs, report.deeds, report.viewers, report.connections
        );
        if !report.broken.is_empty() {
            let kept = dir.keep();
            eprintln!("seed {seed}, everything is in {}:", kept.display());
            for what in &report.broken {
                eprintln!("  {what}");
            }
            return Ok(false);
        }
    }
    Ok(true)
}

fn simulate(seeds: std::ops::Range<u64>, history: Option<PathBuf>) -> std::io::Result<bool> {
    let mut worlds = 0;
    for seed in seeds {
        let outcome = sim::simulate(seed, &sim::Plan::default());
        worlds += 1;
        if !outcome.broken.is_empty() {
            eprintln!("seed {seed}: {:#?}", outcome.broken);
            if let Some(path) = history {
                std::fs::write(path, outcome.history.join("\n"))?;
            }
            return Ok(false);
        }
        if worlds % 100 == 0 {
            println!("{worlds} worlds");
        }
    }
    println!("every promise held in {worlds} worlds");
    Ok(true)
}

fn simulate_sessions(
    seeds: std::ops::Range<u64>,
    history: Option<PathBuf>,
    keep_going: bool,
) -> std::io::Result<bool> {
    let (mut worlds, mut broken) = (0, 0);
    let mut deeds = std::collections::BTreeMap::<String, u64>::new();
    for seed in seeds {
        let outcome = sim::simulate_sessions(seed, &sim::SessionsPlan::default());
        worlds += 1;
        for (deed, times) in outcome.deeds {
            *deeds.entry(deed).or_default() += times;
        }
        if !outcome.broken.is_empty() {
            broken += 1;
            eprintln!("seed {seed}: {:#?}", outcome.broken);
            if let Some(path) = &history {
                std::fs::write(path, outcome.history.join("\n"))?;
            }
            if !keep_going {
                return Ok(false);
            }
        }
        if worlds % 100 == 0 {
            println!("{worlds} worlds");
        }
    }
    println!("a promise was broken in {broken} of {worlds} worlds of sessions: {deeds:?}");
    Ok(broken == 0)
}
