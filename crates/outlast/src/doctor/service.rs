//! What systemd does to agents when the unit that Outlast runs in is stopped.

use super::survival::{Fate, Verdict};
use super::unit::Unit;

/// Whom systemd ends when it stops a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KillMode {
    /// Every process of the unit: SIGTERM, later SIGKILL. The default.
    ControlGroup,
    /// The main process by SIGTERM; once it has ended, all others by SIGKILL.
    Mixed,
    /// The main process.
    Process,
    /// Nobody.
    None,
}

/// What systemd says of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    pub kill_mode: KillMode,
    /// Whether what SIGTERM does not end is killed.
    pub send_sigkill: bool,
    /// Whether the unit has a `/tmp` of its own, which goes when the unit stops.
    pub private_tmp: bool,
}

/// What is asked of `systemctl show`.
pub const PROPERTIES: &str = "--property=LoadState,KillMode,SendSIGKILL,PrivateTmp";

impl UnitFacts {
    /// Reads the answer. None where systemd does not know the unit, for which it would tell defaults.
    pub fn parse(answer: &str) -> Option<UnitFacts> {
        let value =
            |name: &str| answer.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
        if value("LoadState") != Some("loaded") {
            return None;
        }
        let kill_mode = match value("KillMode")? {
            "control-group" => KillMode::ControlGroup,
            "mixed" => KillMode::Mixed,
            "process" => KillMode::Process,
            "none" => KillMode::None,
            _ => return None,
        };
        let says = |name: &str, usual: bool| value(name).map_or(usual, |value| value != "no");
        Some(UnitFacts {
            kill_mode,
            send_sigkill: says("SendSIGKILL", true),
            private_tmp: says("PrivateTmp", false),
        })
    }
}

/// What else is known of whoever runs this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogOut {
    /// Whether the user's systemd outlives the user's last session (`loginctl enable-linger`).
    pub lingers: Option<bool>,
    /// Whether logging out kills what the session has started (`KillUserProcesses` of logind).
    pub kills: Option<bool>,
}

/// What becomes of agents that a process in this unit has started, when the unit stops or its session ends.
pub fn judge(unit: &Unit, facts: Option<&UnitFacts>, log_out: LogOut) -> Verdict {
    let verdict = match unit.is_service() {
        true => of_service(unit, facts),
        false if unit.is_session() => of_session(unit, log_out.kills),
        false => Verdict::outlive(format!(
            "in {}, no service: agents work on when this program ends, and end when somebody stops that unit",
            unit.name
        )),
    };
    match unit.user {
        Some(uid) if verdict.fate == Fate::Outlive => of_user(verdict, uid, log_out.lingers),
        _ => verdict,
    }
}

fn of_service(unit: &Unit, facts: Option<&UnitFacts>) -> Verdict {
    let name = &unit.name;
    let user = if unit.user.is_some() { "--user " } else { "" };
    let advice = format!(
        "set KillMode=process (`systemctl {user}edit {name}`: [Service], KillMode=process), as the shipped unit has it"
    );
    let Some(facts) = facts else {
        return Verdict::unknown(
            format!("systemd does not say how {name} is stopped"),
            format!(
                "look at `systemctl {user}show -p KillMode {name}`: only with KillMode=process agents work on"
            ),
        );
    };
    let verdict = match facts.kill_mode {
        KillMode::ControlGroup => Verdict::die(
            format!(
                "KillMode=control-group: a stop or restart of {name} ends every process of it, so the agents end with \
                 the service"
            ),
            advice,
        ),
        KillMode::Mixed if facts.send_sigkill => Verdict::die(
            format!(
                "KillMode=mixed: once outlast has ended, systemd kills (SIGKILL) whatever else is in {name}, so the \
                 agents end with the service"
            ),
            advice,
        ),
        KillMode::Mixed => Verdict::outlive(format!(
            "KillMode=mixed with SendSIGKILL=no: a stop or restart of {name} ends outlast alone, agents work on"
        )),
        KillMode::Process => Verdict::outlive(format!(
            "KillMode=process: a stop or restart of {name} ends outlast alone, agents work on"
        )),
        KillMode::None => Verdict::outlive(format!(
            "KillMode=none: a stop or restart of {name} ends no process; agents work on, but so does an outlast that \
             hangs (KillMode=process would end it)"
        )),
    };
    match verdict.fate {
        Fate::Outlive if facts.private_tmp => Verdict {
            advice: Some("set PrivateTmp=no, or let agents use another TMPDIR".to_owned()),
            ..verdict.but("PrivateTmp=yes empties their /tmp at every stop")
        },
        _ => verdict,
    }
}

fn of_session(unit: &Unit, kills: Option<bool>) -> Verdict {
    let name = &unit.name;
    let finding = format!("in the log-in {name}: agents work on when this program ends");
    let advice =
        "`loginctl enable-linger` and `systemd-run --user` run it apart from a log-in; so does a service";
    match kills {
        Some(false) => Verdict::outlive(format!("{finding}, and after logging out")),
        Some(true) => Verdict::die(
            format!("{finding}, but end when you log out (KillUserProcesses=yes of logind)"),
            advice.to_owned(),
        ),
        None => Verdict::unknown(
            format!("{finding}; whether they end when you log out (KillUserProcesses of logind)"),
            advice.to_owned(),
        ),
    }
}

/// Everything of a user's systemd ends with it.
fn of_user(verdict: Verdict, uid: u32, lingers: Option<bool>) -> Verdict {
    let advice = "`loginctl enable-linger` lets it run without a log-in".to_owned();
    match lingers {
        Some(true) => verdict,
        Some(false) => Verdict {
            fate: Fate::Die,
            advice: Some(advice),
            ..verdict.but(&format!("user@{uid}.service, and with it everything, ends when you log out"))
        },
        None => Verdict {
            fate: Fate::Unknown,
            advice: Some(advice),
            ..verdict.but(&format!("could not tell whether user@{uid}.service ends when you log out"))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, user: Option<u32>) -> Unit {
        Unit { name: name.to_owned(), user }
    }

    fn facts(kill_mode: &str, rest: &str) -> Option<UnitFacts> {
        UnitFacts::parse(&format!("LoadState=loaded\nKillMode={kill_mode}\n{rest}"))
    }

    #[test]
    fn what_each_way_to_stop_a_service_does() {
        const LINGERS: Option<bool> = Some(true);
        for (kill_mode, rest, user, lingers, fate, says) in [
            ("control-group", "SendSIGKILL=yes", None, None, Fate::Die, "every process"),
            ("control-group", "SendSIGKILL=no", None, None, Fate::Die, "every process"),
            ("mixed", "SendSIGKILL=yes", None, None, Fate::Die, "SIGKILL"),
            ("mixed", "", None, None, Fate::Die, "SIGKILL"),
            ("mixed", "SendSIGKILL=no", None, None, Fate::Outlive, "alone"),
            ("process", "SendSIGKILL=yes\nPrivateTmp=no", None, None, Fate::Outlive, "alone"),
            ("process", "PrivateTmp=yes", None, None, Fate::Outlive, "empties their /tmp"),
            ("none", "", None, None, Fate::Outlive, "hangs"),
            ("later", "", None, None, Fate::Unknown, "does not say"),
            ("process", "", Some(1000), LINGERS, Fate::Outlive, "alone"),
            ("process", "", Some(1000), Some(false), Fate::Die, "user@1000.service"),
            ("process", "", Some(1000), None, Fate::Unknown, "user@1000.service"),
            ("control-group", "", Some(1000), LINGERS, Fate::Die, "every process"),
        ] {
            let log_out = LogOut { lingers, kills: None };
            let verdict = judge(&unit("o.service", user), facts(kill_mode, rest).as_ref(), log_out);
            assert_eq!(verdict.fate, fate, "{kill_mode} {rest} {user:?}");
            assert!(verdict.finding.contains(says), "{says:?}: {verdict:?}");
            assert!(verdict.finding.contains("o.service"), "{verdict:?}");
            assert_eq!(
                verdict.advice.is_some(),
                fate != Fate::Outlive || rest == "PrivateTmp=yes",
                "{verdict:?}"
            );
        }
        let of_user = judge(&unit("o.service", Some(1)), facts("mixed", "").as_ref(), LogOut::default());
        assert!(of_user.advice.expect("advice").contains("systemctl --user edit o.service"));
    }

    #[test]
    fn a_unit_that_systemd_does_not_know_is_not_judged_by_defaults() {
        for answer in
            ["LoadState=not-found\nKillMode=control-group\n", "KillMode=process", "", "LoadState=loaded"]
        {
            assert_eq!(UnitFacts::parse(answer), None, "{answer}");
        }
    }

    #[test]
    fn sessions_and_other_scopes() {
        let session = unit("session-3.scope", None);
        for (kills, fate) in [(Some(true), Fate::Die), (Some(false), Fate::Outlive), (None, Fate::Unknown)] {
            let verdict = judge(&session, None, LogOut { kills, lingers: None });
            assert_eq!(verdict.fate, fate, "{verdict:?}");
        }
        let scope = judge(&unit("run-1.scope", None), None, LogOut::default());
        assert_eq!(scope.fate, Fate::Outlive);
        let of_user = judge(&unit("tab.scope", Some(7)), None, LogOut { lingers: Some(false), kills: None });
        assert_eq!(of_user.fate, Fate::Die);
        assert!(of_user.finding.contains("user@7.service"), "{of_user:?}");
    }
}
