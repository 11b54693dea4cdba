//! Starting a shim.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use outlast_core::journal::files;
use outlast_core::journal::latch::LatchState;
use outlast_core::shim::{Fallback, ShimCommand, ShimReport, ShimRequest};
use outlast_shim::latch;
use outlast_store::Ports;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::config::ShimProgram;
use super::layout::Layout;
use crate::{LaunchError, LaunchOrder, LaunchOutcome};

/// How long a shim may take to report: it waits five seconds for a rival, and syncs a few files.
const REPORT_PATIENCE: Duration = Duration::from_secs(20);
/// The longest report, and the longest last word of a shim that died.
const MAX_REPORT_BYTES: u64 = 64 * 1024;

/// Starts a shim for the order and waits for its report.
pub(super) async fn launch(
    layout: &Layout,
    shim: &ShimProgram,
    ports: &Ports,
    order: LaunchOrder,
) -> Result<LaunchOutcome, LaunchError> {
    let enc = order.run.encoded();
    let runs = layout.runs(&order.instance);
    if !runs.is_dir() {
        return Err(LaunchError::SandboxGone(format!("{} does not exist", runs.display())));
    }
    let prompts = Prompts { dir: layout.prompts(&order.instance), draft: ports.entropy.hex_id() };
    let request = request(order, &enc, &prompts, &runs)?;
    let mut line = serde_json::to_vec(&request).map_err(|error| LaunchError::Failed(error.to_string()))?;
    line.push(b'\n');
    tokio::select! {
        biased;
        outcome = converse(shim, &runs, &enc, &line) => outcome,
        () = ports.clock.sleep(REPORT_PATIENCE) => {
            // It is left alone: it may be about to start the agent, and then the latch will say so to the next attempt.
            settle(&runs, &enc, "the shim does not report")
        }
    }
}

/// Writes the prompts and says everything that the shim needs.
fn request(
    order: LaunchOrder,
    enc: &str,
    prompts: &Prompts,
    runs: &Path,
) -> Result<ShimRequest, LaunchError> {
    let mut env = order.env;
    let mut stdin = None;
    if let Some(text) = &order.prompt {
        let file = prompts.write(&format!("{enc}{}", files::PROMPT), text)?;
        env.retain(|(name, _)| name != PROMPT_VARIABLE);
        env.push((PROMPT_VARIABLE.to_owned(), file.clone()));
        stdin = order.prompt_on_stdin.then_some(file);
    }
    let fallback = match order.fallback {
        None => None,
        Some((markers, argv, text)) => {
            let name = format!("{enc}{}", files::FALLBACK_PROMPT);
            let stdin = text.map(|text| prompts.write(&name, &text)).transpose()?;
            Some(Fallback { markers, command: ShimCommand { argv, stdin } })
        }
    };
    Ok(ShimRequest {
        secret: order.secret,
        command: ShimCommand { argv: order.argv, stdin },
        fallback,
        env,
        cwd: text(&order.cwd)?,
        limits: order.limits,
        fence: order.fence,
        hide: vec![text(runs)?],
    })
}

/// Tells the agent where its prompt lies.
const PROMPT_VARIABLE: &str = "OUTLAST_PROMPT_FILE";

fn text(path: &Path) -> Result<String, LaunchError> {
    let text = path.to_str().map(ToOwned::to_owned);
    text.ok_or_else(|| LaunchError::Failed(format!("{} is not UTF-8", path.display())))
}

struct Prompts {
    dir: PathBuf,
    /// Unique, so that two launches of one run do not write one file at the same time.
    draft: String,
}

impl Prompts {
    /// Writes a prompt file, whole or not at all: the agent of another launch of the same run may be reading it.
    fn write(&self, name: &str, content: &str) -> Result<String, LaunchError> {
        let path = self.dir.join(name);
        let draft = self.dir.join(format!(".{}", self.draft));
        let written = fs::File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&draft);
            let message = format!("cannot write the prompt {}: {error}", path.display());
            return Err(match error.kind() {
                std::io::ErrorKind::NotFound => LaunchError::SandboxGone(message),
                _ => LaunchError::Failed(message),
            });
        }
        text(&path)
    }
}

/// Starts the shim, hands it the request and reads its report. Dropping this at any point is safe: a shim that has not
/// got its whole line leaves, and one that has goes on without a host. Its end is reaped by the runtime.
async fn converse(
    shim: &ShimProgram,
    runs: &Path,
    enc: &str,
    line: &[u8],
) -> Result<LaunchOutcome, LaunchError> {
    let mut child = Command::new(&shim.program)
        .args(&shim.args)
        .arg(runs)
        .arg(enc)
        // The host's keys have no business in a process that lives for hours.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| LaunchError::Failed(format!("cannot start {}: {error}", shim.program.display())))?;
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = streams else {
        return Err(LaunchError::Failed("the shim has no standard streams".to_owned()));
    };
    // A shim that died leaves a broken pipe; what it said before that is more telling.
    let _ = stdin.write_all(line).await;
    let _ = stdin.flush().await;
    drop(stdin);
    let mut report = Vec::new();
    let _ = BufReader::new(stdout.take(MAX_REPORT_BYTES)).read_until(b'\n', &mut report).await;
    match serde_json::from_slice(&report) {
        Ok(ShimReport::Launched) => Ok(LaunchOutcome::Taken),
        Ok(ShimReport::AlreadyLatched) => Ok(LaunchOutcome::TakenBefore),
        Ok(ShimReport::SandboxGone { message }) => Err(LaunchError::SandboxGone(message)),
        Ok(ShimReport::Refused { message }) => Err(LaunchError::Failed(message)),
        Err(_) => {
            let mut words = Vec::new();
            let _ = stderr.take(MAX_REPORT_BYTES).read_to_end(&mut words).await;
            let words = String::from_utf8_lossy(&words);
            settle(runs, enc, &format!("the shim ended without a report: {}", words.trim()))
        }
    }
}

/// No report came: the latch says whether the shim got as far as that, or somebody else did.
fn settle(runs: &Path, enc: &str, otherwise: &str) -> Result<LaunchOutcome, LaunchError> {
    match latch::read(runs, enc) {
        Ok(LatchState::Taken(_) | LatchState::Torn) => Ok(LaunchOutcome::TakenBefore),
        Ok(LatchState::Free) => Err(LaunchError::Failed(otherwise.to_owned())),
        Err(error) => Err(LaunchError::Failed(format!("{otherwise}; cannot read the latch: {error}"))),
    }
}
