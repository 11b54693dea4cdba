//! Looking for flags in the arguments that a definition gives.

/// Whether one of the flags is among the arguments, alone or as `--flag=value`.
pub(crate) fn has(argv: &[String], flags: &[&str]) -> bool {
    argv.iter().any(|arg| flags.iter().any(|flag| arg == flag || is_assignment(arg, flag)))
}

fn is_assignment(arg: &str, flag: &str) -> bool {
    arg.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
}
