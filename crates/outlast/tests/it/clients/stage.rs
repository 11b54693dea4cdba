//! A server, and what a script needs that drives clients against it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Proc, eventually, skipped};

/// The oldest Node that has what the scripts and the clients use.
const OLDEST_NODE: u32 = 18;

/// A place in which scripts are played.
pub struct Stage {
    pub bench: Bench,
    server: Option<Proc>,
    second: Option<Proc>,
    /// Where the server listens, as `http://host:port`.
    pub url: String,
    /// The browser, where one is needed.
    pub chromium: Option<PathBuf>,
}

impl Stage {
    /// With the clients. None, visibly, where they are missing.
    pub fn new() -> Option<Stage> {
        let missing = |what: &str| skipped(&format!("{what}; scripts/test installs it"));
        match node() {
            None => {
                missing("there is no node");
                return None;
            }
            Some(version) if version < OLDEST_NODE => {
                skipped(&format!("node {version} is too old, {OLDEST_NODE} or newer is needed"));
                return None;
            }
            Some(_) => {}
        }
        let modules = clients().join("node_modules");
        let wanted = ["@tanstack/ai-client", "@tanstack/ai-react", "esbuild", "playwright-core", "react-dom"];
        if let Some(package) = wanted.iter().find(|package| !modules.join(package).exists()) {
            missing(&format!("there is no {package} in {}", modules.display()));
            return None;
        }
        Some(Stage::set(&modules))
    }

    /// With a browser too. None, visibly, where something is missing.
    pub fn with_a_browser() -> Option<Stage> {
        let Some(chromium) = chromium() else {
            skipped("there is no chromium; scripts/test installs it");
            return None;
        };
        Stage::new().map(|stage| Stage { chromium: Some(chromium), ..stage })
    }

    fn set(modules: &Path) -> Stage {
        let bench = Bench::new();
        let place = bench.path().join("clients");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients"), &place);
        std::os::unix::fs::symlink(modules, place.join("node_modules")).expect("the clients");
        fs::create_dir(bench.path().join("gates")).expect("gates");
        let path = |name: &str| bench.path().join(name).to_str().expect("utf-8").to_owned();
        let (agent, gates, scripts) = (path("clients/agent.sh"), path("gates"), path("clients/scripts"));
        let agent = |name: &str| {
            format!(
                "[agents.{name}]\nkind = \"command\"\nargv = [\"sh\", {agent:?}]\n\
                 env = {{ GATES = {gates:?}, SCRIPTS = {scripts:?} }}\n"
            )
        };
        let config = format!(
            "[driver]\nlease = \"1500ms\"\n[serve]\ncors_origins = [\"http://pages.test\"]\n{}{}",
            agent("scripted"),
            agent("other")
        );
        fs::write(bench.data_dir().join("outlast.toml"), config).expect("configuration");
        let mut stage = Stage { bench, server: None, second: None, url: String::new(), chromium: None };
        stage.start_server();
        stage
    }

    /// Starts the server; not for the first time: where the one before listened.
    pub fn start_server(&mut self) {
        let listen = self.url.strip_prefix("http://").unwrap_or("127.0.0.1:0").to_owned();
        let (server, url) = self.serve(&listen, None);
        (self.server, self.url) = (Some(server), url);
    }

    /// Starts a second one, that wants a token. Gives where it listens, and the token.
    pub fn start_server_with_token(&mut self) -> (String, &'static str) {
        let token = "a-token-of-the-tests";
        let (server, url) = self.serve("127.0.0.1:0", Some(token));
        self.second = Some(server);
        (url, token)
    }

    fn serve(&self, listen: &str, token: Option<&str>) -> (Proc, String) {
        let mut command = self.bench.command(["serve", "--json", "--listen", listen, "--agent", "scripted"]);
        command.envs(token.map(|token| ("OUTLAST_TOKEN", token)));
        let mut server = Proc::new(command.spawn().expect("spawn"));
        server.wait_for("\n");
        let told: Value = serde_json::from_str(&server.stdout()).expect("where it listens");
        (server, told["listening"].as_str().expect("an address").to_owned())
    }

    /// Kills the server with SIGKILL.
    pub fn kill_server(&mut self) {
        self.server.take().expect("a server").kill9();
    }

    /// Ends the server with SIGTERM.
    pub fn end_server(&mut self) {
        let server = self.server.take().expect("a server");
        server.signal(Signal::TERM);
        assert_eq!(server.finish().code(), 0);
    }

    /// Starts a run of the scripted agent on the command line, without a message of a user.
    pub fn run_alone(&self, run: &str, thread: &str, script: &str) {
        let place = self.bench.path().to_str().expect("utf-8").to_owned();
        let play = format!("echo play {script} | GATES=gates SCRIPTS=clients/scripts sh clients/agent.sh");
        let args = ["run", "-d", "--run-id", run, "--thread", thread, "--workspace", &place];
        self.bench.outlast(args.into_iter().chain(["--", "sh", "-c", &play])).ok();
    }

    /// The run's stored events as `{id, chunk}`.
    pub fn log(&self, run: &str) -> Vec<Value> {
        let lines = self.bench.outlast(["logs", "--json", "--", run]).ok();
        lines.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    }

    /// The run's record once it has ended, with everything checked that holds for its log then.
    pub fn ended(&self, run: &str) -> Value {
        eventually("the end of the run", || self.bench.status(run).filter(|status| status != "running"));
        self.bench.check_ended(run);
        self.bench.record(run)
    }
}

/// Where `scripts/test` has installed the clients.
fn clients() -> PathBuf {
    match std::env::var_os("OUTLAST_TEST_CLIENTS") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients"),
    }
}

/// The version of Node.
fn node() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("OUTLAST_TEST_CHROMIUM").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let found = |name: &str| std::env::split_paths(&path).map(|at| at.join(name)).find(|file| file.exists());
    ["chromium", "google-chrome-stable", "google-chrome"].into_iter().find_map(found)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("directory");
    for entry in fs::read_dir(from).expect("directory").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("file");
        }
    }
}
