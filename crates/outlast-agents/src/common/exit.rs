//! What an exit status says about a run.

use outlast_core::ErrorCode;
use outlast_core::run::RunError;

use crate::AgentExit;

/// The longest piece of standard error in a failure's message, in characters.
const MAX_STDERR_CHARS: usize = 1000;

/// The longest code of an agent's own, in characters.
const MAX_CODE_CHARS: usize = 100;

/// The longest message of an agent's own that becomes a failure's message, in characters.
const MAX_MESSAGE_CHARS: usize = 4000;

/// The failure that the exit stands for; none where the status is 0 or not known.
pub(crate) fn failure(exit: &AgentExit) -> Option<RunError> {
    let what = match (exit.signal, exit.status) {
        (Some(signal), _) => format!("killed by {}", signal_name(signal)),
        (None, None | Some(0)) => return None,
        // A shell, or an exit of which only the sentinel is known, tells a signal by the status.
        (None, Some(status @ 129..=192)) => {
            format!("exited with status {status} (128 + {})", signal_name(status - 128))
        }
        (None, Some(status)) => format!("exited with status {status}"),
    };
    Some(RunError::new(ErrorCode::AgentFailed, with_stderr(what, &exit.stderr_tail)))
}

/// The failure of an agent that ended, with whatever status, without saying how its work went.
pub(crate) fn unfinished(exit: &AgentExit, missing: &str) -> Option<RunError> {
    match (exit.signal, exit.status) {
        // How it ended is not known here; whoever knows that it is lost says so.
        (None, None) => None,
        (None, Some(0)) => Some(RunError::new(
            ErrorCode::AgentFailed,
            with_stderr(format!("exited with status 0 {missing}"), &exit.stderr_tail),
        )),
        _ => failure(exit),
    }
}

/// An agent's own failure, with a code and a message of bounded length.
pub(crate) fn reported(code: Option<&str>, message: &str) -> RunError {
    let code = code.map(str::trim).filter(|code| !code.is_empty());
    let message = match message.trim() {
        "" => "the agent reported a failure without saying what it was".to_owned(),
        text => shorten(text, MAX_MESSAGE_CHARS),
    };
    RunError { code: shorten(code.unwrap_or(ErrorCode::AgentFailed.as_str()), MAX_CODE_CHARS), message }
}

fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn with_stderr(what: String, stderr: &str) -> String {
    match last_lines(stderr) {
        "" => what,
        tail => format!("{what}: {tail}"),
    }
}

/// The last lines that fit, whole ones if any does.
fn last_lines(text: &str) -> &str {
    let text = text.trim();
    let Some((from, _)) = text.char_indices().rev().nth(MAX_STDERR_CHARS - 1) else {
        return text;
    };
    let cut = &text[from..];
    if from == 0 || text[..from].ends_with('\n') {
        return cut;
    }
    cut.split_once('\n').map_or(cut, |(_, whole)| whole)
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(status: Option<i32>, signal: Option<i32>, stderr: &str) -> Option<String> {
        failure(&AgentExit { status, signal, stderr_tail: stderr.to_owned() }).map(|error| error.message)
    }

    #[test]
    fn statuses_and_signals() {
        assert_eq!(message(Some(0), None, "warning"), None);
        assert_eq!(message(None, None, ""), None);
        assert_eq!(message(Some(3), None, " oh\nno \n"), Some("exited with status 3: oh\nno".into()));
        assert_eq!(message(Some(137), Some(9), ""), Some("killed by SIGKILL".into()));
        assert_eq!(message(Some(143), None, ""), Some("exited with status 143 (128 + SIGTERM)".into()));
        assert_eq!(message(None, Some(62), ""), Some("killed by signal 62".into()));
        assert_eq!(message(Some(255), None, ""), Some("exited with status 255".into()));
    }

    #[test]
    fn long_stderr_is_cut_at_a_line() {
        let text = format!("{}\n{}\nlast", "é".repeat(900), "x".repeat(500));
        assert_eq!(last_lines(&text), format!("{}\nlast", "x".repeat(500)));
        assert_eq!(last_lines(&"é".repeat(2000)), "é".repeat(1000));
        let exact = format!("first\n{}", "x".repeat(1000));
        assert_eq!(last_lines(&exact), "x".repeat(1000));
    }
}
