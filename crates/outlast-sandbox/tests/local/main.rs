//! The local provider: the suite that every provider passes, once for each fence that the machine grants, as the user
//! who runs the tests and, if that is root, as an ordinary user too; and what is the local provider's own.

mod own;
mod subject;
mod unprivileged;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use outlast_core::shim::FenceChoice;
use outlast_sandbox::conformance;

use subject::Local;

/// The first argument that makes this program a shim.
const SHIM: &str = "__shim";

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == SHIM) {
        return outlast_shim::main(args);
    }
    let mut arguments = Arguments::from_args();
    // Every trial starts processes and waits for most of its time.
    arguments.test_threads.get_or_insert(4);
    let mut trials = Vec::new();
    for (name, fence) in [
        ("auto", FenceChoice::Auto),
        ("pid_namespace", FenceChoice::PidNamespace),
        ("cgroup", FenceChoice::Cgroup),
        ("subreaper", FenceChoice::Subreaper),
    ] {
        // A fence that the machine does not grant is skipped by name, visibly.
        let refusal = subject::refusal(fence);
        if let Some(cause) = &refusal {
            eprintln!("skipped: {name}::*: {cause}");
        }
        let mut add = |case: &str, run: Box<dyn FnOnce(Arc<Local>) + Send>| {
            let trial = Trial::test(format!("{name}::{case}"), move || {
                run(Arc::new(Local::new(fence)));
                Ok(())
            });
            trials.push(trial.with_ignored_flag(refusal.is_some()));
        };
        for case in conformance::cases() {
            add(case.name, Box::new(move |local| subject::block_on((case.run)(local))));
        }
        for (case, run) in own::cases() {
            add(case, Box::new(run));
        }
    }
    trials.extend(unprivileged::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
