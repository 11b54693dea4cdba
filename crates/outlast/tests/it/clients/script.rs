//! A script that drives clients, and the answers that only the test can give it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::Stage;

/// A script that asks for nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(240);

struct Script(Child);

/// A test that fails leaves no script behind, and with it no browser.
impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    /// Runs a script of `tests/clients` to its end and answers what it asks.
    #[track_caller]
    pub fn play(&mut self, script: &str) {
        let place = self.bench.path().join("clients");
        let mut command = Command::new("node");
        command.arg(place.join(script)).current_dir(&place).env("SERVER", &self.url);
        command.env("GATES", self.bench.path().join("gates")).env("SCRIPTS", place.join("scripts"));
        command.env("CLIENTS", &place).env("DOCS", concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        match &self.chromium {
            Some(chromium) => command.env("CHROMIUM", chromium),
            None => command.env_remove("CHROMIUM"),
        };
        // What it says goes past the harness, so that it is there however the test fails.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut script = Script(command.spawn().expect("node"));
        let mut stdin = script.0.stdin.take().expect("stdin");
        let asked = lines(script.0.stdout.take().expect("stdout"));
        loop {
            match asked.recv_timeout(SILENCE) {
                Ok(line) => {
                    let asked = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                    let answer = self.answer(&asked);
                    // A script that has failed meanwhile hears nothing; its status tells.
                    let _ = stdin.write_all(format!("{answer}\n").as_bytes());
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the script has asked nothing for {SILENCE:?}"),
            }
        }
        let status = script.0.wait().expect("wait");
        assert!(status.success(), "{status}");
    }

    fn answer(&mut self, asked: &Value) -> Value {
        let named = |name: &str| asked[name].as_str().unwrap_or_else(|| panic!("{asked}"));
        match named("ask") {
            "log" => self.log(named("run")).into(),
            "ended" => self.ended(named("run")),
            "run" => {
                self.run_alone(named("run"), named("thread"), named("script"));
                json!(true)
            }
            "kill" => {
                self.kill_server();
                json!(true)
            }
            "end" => {
                self.end_server();
                json!(true)
            }
            "start" => {
                self.start_server();
                json!(true)
            }
            "age" => {
                let config = self.bench.path().join("aged.toml");
                std::fs::write(&config, "[retention]\nevents = \"0s\"\n").expect("configuration");
                let config = config.to_str().expect("utf-8");
                let gone = self.bench.outlast(["--config", config, "gc", "--json"]).ok();
                assert!(gone.contains("\"more\":false"), "{gone}");
                json!(true)
            }
            "token" => {
                let (url, token) = self.start_server_with_token();
                json!({"url": url, "token": token})
            }
            _ => panic!("{asked}"),
        }
    }
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
