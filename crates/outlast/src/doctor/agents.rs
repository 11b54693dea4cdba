//! Whether agents can be started here.

use std::path::{Path, PathBuf};

use outlast_agents::LaunchRequest;

use super::check::Check;
use crate::Environment;
use crate::config::Config;

/// What is known of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFacts {
    pub name: String,
    /// Whether somebody wants it here: the configuration defines it, or requests that name none get it.
    pub wanted: bool,
    /// The program that would be started; the error: why nothing would.
    pub program: Result<String, String>,
    pub place: Place,
    /// Variables that it is not launched without and that are not set.
    pub missing: Vec<String>,
    /// Variables that it would get besides what every agent gets. Names, never values.
    pub passed: Vec<String>,
}

/// Where a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    At(PathBuf),
    /// There, and it may not be executed.
    NotExecutable(PathBuf),
    /// Nowhere in this `PATH`, or not at this path.
    Nowhere,
    /// It depends on the workspace.
    InTheWorkspace,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    Program,
    Other,
    None,
}

/// The agents of the configuration.
pub fn gather(config: &Config, environment: &Environment) -> Vec<AgentFacts> {
    let names = config.agents.keys();
    names.filter_map(|name| of(config, environment, name, look)).collect()
}

fn of(
    config: &Config,
    environment: &Environment,
    name: &str,
    look: impl Fn(&Path) -> File,
) -> Option<AgentFacts> {
    let mut spec = config.spec(name).ok()?;
    // What every run of an agent that is not a plain command has.
    spec.prompt = Some("doctor".to_owned());
    let agent = outlast_agents::agent(&spec.kind)?;
    let planned = agent.plan(&LaunchRequest {
        deployment: "doctor",
        run_id: "doctor",
        thread_id: "doctor",
        spec: &spec,
        history: &[],
        session: None,
        as_root: false,
    });
    let program = match planned {
        Ok(plan) => plan.argv.into_iter().next().ok_or_else(|| "it has no command".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let path = spec.env.get("PATH").map(String::as_str).or_else(|| environment.get("PATH"));
    let is_set = |name: &str| environment.get(name).is_some();
    let usual = agent.usual_env().iter().map(|name| (*name).to_owned());
    let passed = spec.needed_env.iter().cloned().chain(usual).filter(|name| is_set(name)).collect();
    Some(AgentFacts {
        wanted: config.own_agents.iter().any(|own| own == name)
            || config.serve.agent.as_deref() == Some(name),
        place: program.as_ref().map_or(Place::Nowhere, |program| find(program, path, look)),
        program,
        missing: spec.needed_env.iter().filter(|name| !is_set(name)).cloned().collect(),
        passed,
        name: name.to_owned(),
    })
}

/// Looks a program up as the shim does.
fn find(program: &str, path: Option<&str>, look: impl Fn(&Path) -> File) -> Place {
    // As the runtime says to agents where this host's environment names none.
    const FALLBACK: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![program.into()]
    } else {
        path.unwrap_or(FALLBACK).split(':').map(|directory| Path::new(directory).join(program)).collect()
    };
    let mut found = Place::Nowhere;
    for candidate in candidates {
        if !candidate.is_absolute() {
            if found == Place::Nowhere {
                found = Place::InTheWorkspace;
            }
            continue;
        }
        match look(&candidate) {
            File::Program => return Place::At(candidate),
            File::Other if !matches!(found, Place::NotExecutable(_)) => {
                found = Place::NotExecutable(candidate)
            }
            File::Other | File::None => {}
        }
    }
    found
}

fn look(path: &Path) -> File {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    match std::fs::metadata(path) {
        Ok(facts) if facts.is_file() => match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => File::Program,
            Err(_) => File::Other,
        },
        Ok(_) => File::Other,
        Err(_) => File::None,
    }
}

/// What to say of an agent.
pub fn judge(facts: &AgentFacts) -> Check {
    let check = program(facts).about(&facts.name);
    let missing = facts.missing.join(", ");
    if missing.is_empty() {
        return check;
    }
    // Without them a program that is there is not started either.
    Check {
        level: check.level.max(super::Level::Problem),
        finding: format!("{}; not set: {missing}", check.finding),
        advice: Some(
            [
                check.advice.as_deref(),
                Some("set them in the environment of whatever launches it, `outlast serve` for one"),
            ]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; "),
        ),
        ..check
    }
}

fn program(facts: &AgentFacts) -> Check {
    let program = match &facts.program {
        Ok(program) => program,
        Err(cause) => return Check::problem("agent", cause, "correct its definition"),
    };
    match &facts.place {
        Place::At(path) => {
            let passed = match facts.passed.as_slice() {
                [] => String::new(),
                names => format!("; gets {}", names.join(", ")),
            };
            Check::ok("agent", format!("{}{passed}", path.display()))
        }
        Place::InTheWorkspace => {
            Check::unknown("agent", format!("{program} is looked up in the working directory of each run"))
        }
        Place::NotExecutable(path) => Check::problem(
            "agent",
            format!("{} is no program that this user may execute", path.display()),
            "make it executable",
        ),
        Place::Nowhere if facts.wanted => Check::problem(
            "agent",
            format!(
                "{program} is not there{}",
                if program.contains('/') { "" } else { " (in no directory of PATH)" }
            ),
            "install it, or say argv in its definition",
        ),
        // Nobody has asked for it.
        Place::Nowhere => Check::ok("agent", format!("not installed: {program} is in no directory of PATH")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;

    const CONFIG: &str = r#"
        [agents.mine]
        kind = "command"
        argv = ["tool", "x"]
        pass_env = ["KEY", "OTHER"]
        [agents.fixed]
        kind = "command"
        argv = ["/opt/tool"]
        env = { PATH = "/opt" }
        [agents.here]
        kind = "command"
        argv = ["./tool"]
    "#;

    fn check(config: &str, name: &str, set: &[&str], programs: &[&str], others: &[&str]) -> Check {
        let config = Config::parse(config).expect("valid");
        let variable =
            |name: &&str| ((*name).to_owned(), if *name == "PATH" { "/a:/b" } else { "secret" }.to_owned());
        let environment = Environment::of(set.iter().map(variable));
        let look = |path: &Path| match path.to_str() {
            Some(path) if programs.contains(&path) => File::Program,
            Some(path) if others.contains(&path) => File::Other,
            _ => File::None,
        };
        judge(&of(&config, &environment, name, look).expect("facts"))
    }

    #[test]
    fn programs_and_variables() {
        let all = &["PATH", "KEY", "OTHER"][..];
        let serves = format!("{CONFIG}\n[serve]\nagent = \"codex\"\n");
        for (config, name, set, programs, others, level, says) in [
            (CONFIG, "mine", all, &["/b/tool"][..], &[][..], Level::Ok, "/b/tool; gets KEY, OTHER"),
            (CONFIG, "mine", all, &["/b/tool"], &["/a/tool"], Level::Ok, "/b/tool"),
            (CONFIG, "mine", all, &[], &["/a/tool"], Level::Problem, "/a/tool is no program"),
            (CONFIG, "mine", all, &[], &[], Level::Problem, "tool is not there (in no directory of PATH)"),
            (CONFIG, "mine", &["PATH", "KEY"], &["/a/tool"], &[], Level::Problem, "not set: OTHER"),
            (CONFIG, "mine", &["KEY", "OTHER"], &["/usr/bin/tool"], &[], Level::Ok, "/usr/bin/tool"),
            (CONFIG, "fixed", &[], &["/opt/tool"], &[], Level::Ok, "/opt/tool"),
            (CONFIG, "fixed", &[], &[], &[], Level::Problem, "/opt/tool is not there"),
            (CONFIG, "here", all, &["./tool"], &[], Level::Warning, "could not tell"),
            (CONFIG, "codex", all, &[], &[], Level::Ok, "not installed: codex"),
            (&serves, "codex", all, &[], &[], Level::Problem, "codex is not there"),
            (
                CONFIG,
                "claude-code",
                &["PATH", "ANTHROPIC_API_KEY"],
                &["/a/claude"],
                &[],
                Level::Ok,
                "gets ANTHROPIC_API_KEY",
            ),
        ] {
            let check = check(config, name, set, programs, others);
            assert_eq!(check.level, level, "{name} {set:?}: {check:?}");
            assert!(check.finding.contains(says), "{says:?}: {check:?}");
            assert_eq!(check.subject.as_deref(), Some(name));
            assert!(!format!("{check:?}").contains("secret"), "{check:?}");
        }
    }

    #[test]
    fn files_of_every_kind() {
        assert_eq!(look(Path::new("/bin/sh")), File::Program);
        assert_eq!(look(Path::new("/")), File::Other);
        assert_eq!(look(Path::new("/no/such/file")), File::None);
    }
}
