//! From arguments to an exit status.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use super::args::{Cli, Command};
use super::commands;
use super::context::Context;
use super::failure::{Failure, OWN};

/// Runs the command line.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Completions { shell } = &cli.command {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "outlast", &mut script);
        let written = std::io::Write::write_all(&mut std::io::stdout(), &script);
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(141) };
    }
    let serves = matches!(cli.command, Command::Serve(_));
    log_to_stderr(serves.then_some(tracing::Level::INFO));
    let json = cli.json;
    let mut builder = if serves {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(json),
    };
    match runtime.block_on(run(cli)) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failure.report(json),
    }
}

async fn run(cli: Cli) -> Result<u8, Failure> {
    let context = Context::new(&cli)?;
    match cli.command {
        Command::Run(args) => {
            commands::run::run(&context, args).await.map_err(|failure| failure.with_status(OWN))
        }
        Command::Attach(args) => {
            commands::attach::attach(&context, &args).await.map_err(|failure| failure.with_status(OWN))
        }
        Command::Ps(args) => commands::ps::ps(&context, &args).await,
        Command::Show(args) => commands::show::show(&context, &args).await,
        Command::Logs(args) => commands::logs::logs(&context, &args).await,
        Command::Verify(args) => commands::verify::verify(&context, &args).await,
        Command::Cancel(args) => commands::cancel::cancel(&context, &args).await,
        Command::Reap(args) => commands::reap::reap(&context, &args).await,
        Command::Reclaim { run } => commands::reclaim::reclaim(&context, run.as_deref()).await,
        Command::Sandbox { command } => commands::sandbox::sandbox(&context, &command).await,
        Command::Session { command } => commands::session::session(&context, command).await,
        Command::Workspace { command } => commands::workspace::workspace(&context, command).await,
        Command::Gc { dry_run } => commands::gc::gc(&context, dry_run).await,
        Command::Prune(args) => commands::prune::prune(&context, &args).await,
        Command::Serve(args) => commands::serve::serve(&context, &args).await,
        Command::Doctor => commands::doctor::doctor(&context).await,
        Command::Completions { .. } => Ok(0),
    }
}

/// `OUTLAST_LOG=error|warn|info|debug|trace`, else what the command says: nothing where a terminal shows a run.
fn log_to_stderr(usual: Option<tracing::Level>) {
    let level = std::env::var("OUTLAST_LOG").ok().and_then(|text| text.parse::<tracing::Level>().ok());
    if let Some(level) = level.or(usual) {
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false).init();
    }
}
