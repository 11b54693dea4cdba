//! A process under test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::wait::eventually;

/// A running `outlast` whose output is collected line by line. Killed when dropped.
pub struct Proc {
    child: Child,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

/// An `outlast` that has ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The exit status; a signal shows as 128 + its number.
    pub fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        self.status.code().or_else(|| self.status.signal().map(|n| 128 + n)).expect("exited")
    }

    /// The code and the message of the failure that it has told in JSON.
    #[track_caller]
    pub fn failure(&self) -> (String, String) {
        let last = self.stderr.lines().last().unwrap_or_default();
        let error: serde_json::Value =
            serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", self.stderr));
        let text = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
        assert!(!text("message").is_empty(), "{error}");
        (text("code"), text("message"))
    }

    /// Asserts success and gives the output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code(), 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }
}

impl Proc {
    pub fn new(mut child: Child) -> Proc {
        let mut readers = Vec::new();
        let stdout = collect(child.stdout.take(), &mut readers);
        let stderr = collect(child.stderr.take(), &mut readers);
        Proc { child, stdout, stderr, readers }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("pid")
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("pid");
        kill_process(pid, signal).expect("signal");
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until its output contains the text.
    #[track_caller]
    pub fn wait_for(&mut self, needle: &str) {
        eventually(&format!("{needle:?} in the output"), || {
            let found = self.stdout().contains(needle);
            if !found && let Ok(Some(status)) = self.child.try_wait() {
                // The rest of the output may still be on its way through the pipe.
                self.readers.drain(..).for_each(|reader| reader.join().expect("reader"));
                assert!(
                    self.stdout().contains(needle),
                    "ended ({status}) without {needle:?}\nstdout: {}\nstderr: {}",
                    self.stdout(),
                    self.stderr()
                );
                return Some(());
            }
            found.then_some(())
        });
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        let child = &mut self.child;
        let status = eventually("the end of the process", || child.try_wait().expect("wait"));
        self.readers.drain(..).for_each(|reader| reader.join().expect("reader"));
        Finished { status, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill9(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("wait");
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.lock().expect("lock")).into_owned()
}

fn collect(
    pipe: Option<impl Read + Send + 'static>,
    readers: &mut Vec<JoinHandle<()>>,
) -> Arc<Mutex<Vec<u8>>> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    if let Some(pipe) = pipe {
        let sink = Arc::clone(&bytes);
        readers.push(std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            loop {
                let mut line = Vec::new();
                match pipe.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => sink.lock().expect("lock").extend(line),
                }
            }
        }));
    }
    bytes
}
