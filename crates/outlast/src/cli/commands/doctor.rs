//! `outlast doctor`.

use std::io::Write;

use outlast_store::Ports;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::printable;
use crate::doctor::{Check, Level, Subject, examine};

pub async fn doctor(context: &Context) -> Result<u8, Failure> {
    let objects = context.objects();
    let subject = Subject {
        data_dir: &context.data_dir,
        store: context.store(),
        objects: objects.as_deref(),
        config: &context.config,
    };
    let checks = examine(subject, &Ports::system()).await;
    let mut out = std::io::stdout().lock();
    let written = if context.json {
        writeln!(out, "{}", json!(checks))
    } else {
        checks.iter().try_for_each(|check| writeln!(out, "{}", line(check)))
    };
    let problem = checks.iter().any(|check| check.level == Level::Problem);
    Ok(match written {
        // Whoever reads is gone.
        Err(_) => 141,
        Ok(()) if problem => FAILED,
        Ok(()) => 0,
    })
}

fn line(check: &Check) -> String {
    let level = match check.level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Problem => "problem",
    };
    let what = check.check.replace('_', " ");
    let subject = check.subject.as_ref().map_or_else(String::new, |subject| format!(" {subject}"));
    let advice = check.advice.as_ref().map_or_else(String::new, |advice| format!(" -> {advice}"));
    printable(&format!("{level:<8} {what}{subject}: {}{advice}", check.finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_check() {
        let check = Check::problem("data_directory", "not\nthere", "make it");
        assert_eq!(line(&check), "problem  data directory: not\u{240a}there -> make it");
        assert_eq!(line(&Check::ok("agent", "/bin/x").about("mine")), "ok       agent mine: /bin/x");
    }
}
