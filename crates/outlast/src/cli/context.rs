//! What every command needs.

use std::path::PathBuf;

use outlast_core::ErrorCode;
use outlast_runtime::{Notice, Notices, Options};

use super::again::Again;
use super::args::Cli;
use super::failure::Failure;
use crate::cli::say::tell;
use crate::config::Config;
use crate::{Local, LocalOptions, OpenError, StoreChoice};

/// The places and settings of one call.
#[derive(Debug)]
pub struct Context {
    pub data_dir: PathBuf,
    pub config: Config,
    pub json: bool,
    store: StoreChoice,
    /// How to say the next command.
    pub again: Again,
}

impl Context {
    pub fn new(cli: &Cli) -> Result<Context, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data_dir = match cli.data_dir.clone().or_else(|| set("OUTLAST_DATA_DIR")) {
            Some(dir) => dir,
            None => default_data_dir()?,
        };
        let named = cli.config.clone().or_else(|| set("OUTLAST_CONFIG"));
        let data_dir = std::path::absolute(&data_dir)?;
        let config = Config::load(named.as_deref(), &data_dir).map_err(Failure::usage)?;
        let url =
            cli.store.clone().or_else(|| std::env::var("OUTLAST_STORE").ok().filter(|url| !url.is_empty()));
        let store = store_choice(url.or_else(|| config.store_url.clone()), config.store_notifications)?;
        let again = Again::new(cli.data_dir.as_deref(), cli.config.as_deref(), cli.store.as_deref());
        Ok(Context { data_dir, config, json: cli.json, store, again })
    }

    /// Where the durable state is.
    pub fn store(&self) -> &StoreChoice {
        &self.store
    }

    /// Where large bodies and snapshots are; none: in the data directory.
    pub fn objects(&self) -> Option<String> {
        let named = std::env::var("OUTLAST_OBJECTS").ok().filter(|place| !place.is_empty());
        named.or_else(|| self.config.objects.clone())
    }

    /// Opens the data directory for a command at a terminal.
    pub async fn open(&self) -> Result<Local, Failure> {
        self.open_with(Notices::new(tell)).await
    }

    /// Opens the data directory for a service, which tells its log.
    pub async fn open_to_serve(&self) -> Result<Local, Failure> {
        self.open_with(Notices::new(log)).await
    }

    async fn open_with(&self, notices: Notices) -> Result<Local, Failure> {
        let mut options = LocalOptions::new(&self.data_dir);
        options.store = self.store.clone();
        options.objects = self.objects();
        options.options.workspace = self.config.workspace.clone();
        if let Some(lease) = self.config.lease {
            options.options = Options { lease, ..options.options };
        }
        options.notices = notices;
        #[cfg(feature = "failpoints")]
        super::testing::simulate_reboot(&mut options);
        Local::open(options).await.map_err(|error| match error {
            OpenError::Store(error) => error.into(),
            OpenError::Objects(error) => {
                Failure::usage(format!("{error} ([objects] place, or OUTLAST_OBJECTS)"))
            }
            other => Failure::new(ErrorCode::Internal, other),
        })
    }
}

/// What a person at a terminal needs to know while the command goes on.
fn tell(notice: Notice) {
    match notice {
        Notice::StoreUnavailable { message } => tell!("outlast: {message}; holding, the agent works on"),
        Notice::StoreBack => tell!("outlast: the store is available again"),
        Notice::Superseded { .. } => {
            tell!("outlast: another process drives the run now; this one only reads")
        }
        Notice::CannotDrive { message, .. } => tell!("outlast: {message}"),
        Notice::Launched { .. }
        | Notice::TookOver { .. }
        | Notice::Checkpointed { .. }
        | Notice::Restored { .. } => {}
    }
}

/// What the operator of a service needs to know.
fn log(notice: Notice) {
    match notice {
        Notice::StoreUnavailable { message } => tracing::error!("{message}; holding, agents work on"),
        Notice::StoreBack => tracing::info!("the store is available again"),
        Notice::Launched { run_id } => tracing::info!(run = %run_id, "launched"),
        Notice::TookOver { run_id, epoch } => tracing::info!(run = %run_id, epoch, "took over"),
        Notice::Superseded { run_id } => {
            tracing::warn!(run = %run_id, "superseded: another process drives it")
        }
        Notice::Checkpointed { run_id, reference, seq } => {
            tracing::info!(run = %run_id, %reference, seq, "snapshotted the workspace");
        }
        Notice::Restored { run_id, reference } => {
            tracing::info!(run = %run_id, %reference, "restored the workspace");
        }
        // The keeper logs it, with the time of its next try.
        Notice::CannotDrive { run_id, message } => {
            tracing::debug!(run = %run_id, message, "cannot be driven")
        }
    }
}

fn store_choice(url: Option<String>, notifications: bool) -> Result<StoreChoice, Failure> {
    match url {
        None => Ok(StoreChoice::Embedded),
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(StoreChoice::Postgres { url, notifications })
        }
        // Not the URL itself, which may hold a password.
        Some(_) => Err(Failure::usage(
            "the store's URL must begin with postgres://; without one, runs are kept in the data directory",
        )),
    }
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|data_home| data_home.join("outlast"))
        .ok_or_else(|| Failure::usage("neither HOME nor XDG_DATA_HOME is set: say --data-dir DIR"))
}
