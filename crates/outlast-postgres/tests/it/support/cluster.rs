//! A PostgreSQL of one test's own, which it may stop, restart and configure.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A server on a port of its own, gone when dropped, and with the test's process. Its data is not synced: a server that is
/// killed loses nothing as long as the machine goes on.
pub struct Cluster {
    dir: TempDir,
    port: u16,
    server: Mutex<Option<Child>>,
}

impl Cluster {
    /// An empty one, whose superuser `postgres` everybody on this machine may be.
    pub fn start() -> Cluster {
        let dir = TempDir::with_prefix("outlast-pg-").expect("temporary directory");
        if is_root() {
            let owned = Command::new("chown").arg("postgres").arg(dir.path()).status().expect("chown");
            assert!(owned.success(), "a user named postgres is needed");
        }
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("address").port();
        let cluster = Cluster { dir, port, server: Mutex::default() };
        let made = cluster
            .as_postgres("initdb")
            .args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(cluster.data())
            .stdout(Stdio::null())
            .status()
            .expect("initdb");
        assert!(made.success(), "initdb failed");
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\nfsync = off\n\
             shared_buffers = 16MB\nmax_connections = 200\nlogging_collector = off\n",
            cluster.dir.path().display()
        );
        cluster.write("postgresql.conf", &settings);
        cluster.go_on();
        cluster
    }

    /// The database `postgres`, as its superuser.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Writes a file of the server's data directory.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.data().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        if is_root() {
            let owned = Command::new("chown").arg("postgres").arg(&path).status().expect("chown");
            assert!(owned.success());
        }
    }

    /// Adds a setting, for the next start.
    pub fn set(&self, setting: &str) {
        let before = fs::read_to_string(self.data().join("postgresql.conf")).expect("read");
        self.write("postgresql.conf", &format!("{before}{setting}\n"));
    }

    /// Stops at once, as a crash would: every connection breaks, and none is taken until [`Cluster::go_on`].
    pub fn stop(&self) {
        let mut server = self.server.lock().expect("lock");
        let Some(mut child) = server.take() else {
            return;
        };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).expect("signal");
        child.wait().expect("it ends");
    }

    /// Starts again, and returns once it takes connections.
    pub fn go_on(&self) {
        let mut server = self.server.lock().expect("lock");
        let log = fs::File::create(self.dir.path().join("log")).expect("log");
        let child =
            self.as_postgres("postgres").arg("-D").arg(self.data()).stderr(log).spawn().expect("spawn");
        *server = Some(child);
        self.wait_until_ready();
    }

    /// As after a crash.
    pub fn restart(&self) {
        self.stop();
        self.go_on();
    }

    /// What the server has logged since it started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    #[allow(clippy::disallowed_methods, reason = "tests run on real time")]
    fn wait_until_ready(&self) {
        let start = Instant::now();
        while !self.log().contains("database system is ready to accept connections") {
            assert!(start.elapsed() < Duration::from_secs(60), "PostgreSQL does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A program of PostgreSQL, as a user that it accepts; it ends with the thread that starts it.
    fn as_postgres(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        if is_root() {
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        }
        command.args(["--pdeathsig=QUIT", "--"]).arg(programs().join(program));
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where the server's programs are: those of the newest version.
fn programs() -> PathBuf {
    let version = |path: &Path| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let found = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    found
        .map(|entry| entry.expect("entry").path().join("bin"))
        .filter(|path| path.join("initdb").exists())
        .max_by_key(|path| version(path))
        .expect("this test needs PostgreSQL's own programs (Debian: apt-get install postgresql)")
}
