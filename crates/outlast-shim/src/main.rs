//! The shim as a program of its own.

fn main() -> std::process::ExitCode {
    outlast_shim::main(std::env::args_os().skip(1))
}
