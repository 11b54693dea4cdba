//! The same as an ordinary user.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

/// Set in the program that is the ordinary user's.
const INNER: &str = "OUTLAST_TEST_ORDINARY_USER";

/// One trial that runs this program again as an ordinary user; it tests everything there. Skipped by name where that
/// cannot be done.
pub fn trials() -> Vec<Trial> {
    if std::env::var_os(INNER).is_some() {
        return Vec::new();
    }
    let root = rustix::process::geteuid().is_root();
    vec![Trial::test("as_an_ordinary_user", run).with_ignored_flag(!root)]
}

fn run() -> Result<(), Failed> {
    // The program must be readable for that user, wherever it was built.
    let dir = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir()?;
    let program = dir.path().join("tests");
    std::fs::copy(std::env::current_exe()?, &program)?;
    let home = dir.path().join("tmp");
    std::fs::create_dir(&home)?;
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o777))?;
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .env(INNER, "1")
        .env("TMPDIR", &home)
        .current_dir(&home)
        .output()?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err("see above".into()) }
}
