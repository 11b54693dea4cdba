//! Terminals.

use std::fs::File;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal: the end that a person sits at, and the end that programs have.
pub fn terminal() -> (File, File) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("pty");
    grantpt(&main).expect("grant");
    unlockpt(&main).expect("unlock");
    let name = ptsname(&main, Vec::new()).expect("name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let programs = rustix::fs::open(name, flags, Mode::empty()).expect("terminal");
    (File::from(main), File::from(programs))
}
