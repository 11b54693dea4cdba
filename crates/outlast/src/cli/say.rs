//! Words on the standard streams.
//!
//! The terminal may be gone, which is when a viewer has most to say. `println!` and `eprintln!` panic then; these do
//! not: whoever could have read it is not there.

/// Says a line on standard error.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

/// Prints a line to standard output.
macro_rules! print_line {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

pub(super) use {print_line, tell};
