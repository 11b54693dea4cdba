//! The one line that comes from the host, and the one that goes back.

use std::io::{self, Read, Write};

use outlast_core::shim::{ShimReport, ShimRequest};

/// The longest request in bytes: twice what a kernel takes as arguments and environment together, and more.
const MAX_REQUEST_BYTES: u64 = 16 << 20;

/// Reads the request. None where the input ends before the line break: the host died while it wrote, so what it wanted
/// is not known in full.
///
/// # Errors
///
/// The line is no request, or standard input cannot be read.
pub(crate) fn read() -> io::Result<Option<ShimRequest>> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(MAX_REQUEST_BYTES);
    io::BufRead::read_until(&mut input, b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return if input.limit() == 0 { Err(io::Error::other("the request is too long")) } else { Ok(None) };
    }
    // The parser's message could quote a piece of the line, and the line holds secrets: only the place is told.
    serde_json::from_slice(&line).map(Some).map_err(|error| {
        io::Error::other(format!("the request is not understood (at byte {} of its line)", error.column()))
    })
}

/// Reports. The host may be dead, and then nobody needs to know: errors are ignored.
pub(crate) fn report(report: &ShimReport) {
    let Ok(mut line) = serde_json::to_vec(report) else {
        return;
    };
    line.push(b'\n');
    let mut output = io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
}
