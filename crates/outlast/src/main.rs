//! The `outlast` program: server, command line, shim and demo agent in one file.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else exists: a shim is one small process without threads.
    if let Some(code) = outlast::run_shim_if_asked() {
        return code;
    }
    if let Some(code) = outlast::demo::run_if_asked() {
        return code;
    }
    outlast::cli::main()
}
