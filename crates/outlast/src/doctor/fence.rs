//! What the trial launches say of shim, fence and separation.

use outlast_core::shim::FenceChoice;

use super::check::Check;
use super::trial::Trials;

/// Whether the shim can be started.
pub fn shim(trials: &Result<Trials, String>) -> Check {
    match trials {
        Err(cause) => Check::unknown("shim", cause),
        Ok(Trials { asked: Ok(_), .. }) => Check::ok("shim", "starts, keeps an agent and records its end"),
        Ok(Trials { others, .. }) if others.iter().any(|(_, tried)| tried.is_ok()) => {
            Check::ok("shim", "starts, but not under the fence that is asked for")
        }
        Ok(Trials { asked: Err(cause), .. }) => Check::problem(
            "shim",
            format!("cannot launch anything: {cause}"),
            "no run can be launched until this is mended",
        ),
    }
}

/// Which fence a run gets, and what that guarantees.
pub fn fence(choice: FenceChoice, trials: &Result<Trials, String>) -> Check {
    let trials = match trials {
        Err(cause) => return Check::unknown("fence", cause),
        Ok(trials) => trials,
    };
    let got = match &trials.asked {
        Ok(got) => *got,
        Err(cause) => {
            let advice = if choice == FenceChoice::Auto {
                "see the shim's check"
            } else {
                "grant it, or ask for fence = \"auto\" in [sandbox]"
            };
            return Check::problem("fence", format!("{} cannot be had: {cause}", name(choice)), advice);
        }
    };
    let why: Vec<String> = trials
        .others
        .iter()
        .filter_map(|(fence, tried)| Some(format!("no {}: {}", name(*fence), tried.as_ref().err()?)))
        .collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
    let finding = format!("{}: {}{why}", name(got), guarantee(got));
    match got {
        FenceChoice::Subreaper => Check::warning(
            "fence",
            finding,
            if choice == FenceChoice::Auto {
                "allow user namespaces, or delegate a cgroup v2 (Delegate=yes in the unit)"
            } else {
                "ask for fence = \"auto\" in [sandbox], which takes the strongest"
            },
        ),
        _ => Check::ok("fence", finding),
    }
}

/// As the configuration says it.
fn name(fence: FenceChoice) -> &'static str {
    match fence {
        FenceChoice::Auto => "auto",
        FenceChoice::PidNamespace => "pid-namespace",
        FenceChoice::Cgroup => "cgroup",
        FenceChoice::Subreaper => "subreaper",
    }
}

fn guarantee(fence: FenceChoice) -> &'static str {
    match fence {
        FenceChoice::Auto => "the strongest that can be had",
        FenceChoice::PidNamespace => "a kill ends every process of a run, also after its shim has died",
        FenceChoice::Cgroup => "a kill ends every process of a run at once, also after its shim has died",
        FenceChoice::Subreaper => {
            "a kill ends every process of a run as long as its shim lives; if that is killed, what the agent had started \
             cannot be found any more"
        }
    }
}

/// What local sandboxes do not do.
pub fn separation(uid: u32) -> Check {
    let who = if uid == 0 { "root".to_owned() } else { format!("user {uid}") };
    Check::warning(
        "isolation",
        format!(
            "local sandboxes guard against accidents only: an agent works as {who}, with that user's files, keys and \
             network; one that means harm can read and forge every run of this data directory"
        ),
        "run agents that you do not trust as a user of their own or in a virtual machine: docs/security.md",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;
    use FenceChoice::{Auto, Cgroup, PidNamespace, Subreaper};

    #[test]
    fn what_the_launches_mean() {
        let no = |why: &str| Err(why.to_owned());
        for (choice, asked, others, shim_level, level, says) in [
            (Auto, Ok(PidNamespace), vec![], Level::Ok, Level::Ok, "pid-namespace: "),
            (
                Auto,
                Ok(Cgroup),
                vec![(PidNamespace, no("EPERM"))],
                Level::Ok,
                Level::Ok,
                "no pid-namespace: EPERM",
            ),
            (
                Auto,
                Ok(Subreaper),
                vec![(PidNamespace, no("EPERM")), (Cgroup, no("none"))],
                Level::Ok,
                Level::Warning,
                "(no pid-namespace: EPERM; no cgroup: none)",
            ),
            (Auto, no("no fence"), vec![], Level::Problem, Level::Problem, "auto cannot be had: no fence"),
            (Subreaper, Ok(Subreaper), vec![], Level::Ok, Level::Warning, "as long as its shim lives"),
            (
                Cgroup,
                no("none"),
                vec![(Subreaper, Ok(Subreaper))],
                Level::Ok,
                Level::Problem,
                "cgroup cannot be had: none",
            ),
            (Cgroup, no("dead"), vec![(Subreaper, no("dead"))], Level::Problem, Level::Problem, "dead"),
        ] {
            let trials = Ok(Trials { asked, others });
            let (shim, fence) = (shim(&trials), fence(choice, &trials));
            assert_eq!((shim.level, fence.level), (shim_level, level), "{trials:?}: {shim:?} {fence:?}");
            assert!(fence.finding.contains(says), "{says:?}: {fence:?}");
        }
        let untried = Err("read-only".to_owned());
        assert!(shim(&untried).finding.contains("could not tell: read-only"));
        assert_eq!(fence(Auto, &untried).level, Level::Warning);
    }

    #[test]
    fn separation_is_never_claimed() {
        for (uid, says) in [(0, "as root"), (1000, "as user 1000")] {
            let check = separation(uid);
            assert_eq!(check.level, Level::Warning);
            assert!(check.finding.contains(says) && check.finding.contains("accidents only"), "{check:?}");
        }
    }
}
