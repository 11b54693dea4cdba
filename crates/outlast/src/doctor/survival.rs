//! Whether agents outlive this program, its service and its container.

use std::sync::Arc;

use outlast_store::Clock;

use super::ask::ask;
use super::check::{Check, Level};
use super::container;
use super::place::{Place, serving};
use super::service::{self, LogOut, PROPERTIES, UnitFacts};
use super::unit::Unit;

/// What becomes of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They work on.
    Outlive,
    /// They end too.
    Die,
    /// It could not be found out.
    Unknown,
}

/// A fate, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub fate: Fate,
    pub finding: String,
    pub advice: Option<String>,
}

impl Verdict {
    pub fn outlive(finding: String) -> Verdict {
        Verdict { fate: Fate::Outlive, finding, advice: None }
    }

    pub fn die(finding: String, advice: String) -> Verdict {
        Verdict { fate: Fate::Die, finding, advice: Some(advice) }
    }

    pub fn unknown(cause: String, advice: String) -> Verdict {
        Verdict { fate: Fate::Unknown, finding: format!("could not tell: {cause}"), advice: Some(advice) }
    }

    /// The same with a restriction.
    pub fn but(self, what: &str) -> Verdict {
        Verdict { finding: format!("{}; but {what}", self.finding), ..self }
    }

    fn check(self, check: &'static str) -> Check {
        let fine = self.fate == Fate::Outlive && self.advice.is_none();
        let level = if fine { Level::Ok } else { Level::Warning };
        Check { check, subject: None, level, finding: self.finding, advice: self.advice }
    }
}

/// Every check of what agents outlive. Blocks while systemd is asked, which takes at most a few seconds.
pub fn checks(clock: &dyn Clock, place: &Place) -> Vec<Check> {
    let own = place.unit_of(&place.cgroup);
    let mut checks = vec![of_own_service(clock, place, own.as_ref()).check("service")];
    // Whoever asks at a terminal wants to know of the service that runs meanwhile.
    let mut others: Vec<(i32, Unit)> =
        serving().into_iter().filter_map(|(pid, cgroup)| Some((pid, place.unit_of(&cgroup)?))).collect();
    others.retain(|(_, unit)| unit.is_service() && Some(unit) != own.as_ref());
    others.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    others.dedup_by(|(_, a), (_, b)| a == b);
    for (pid, unit) in others {
        let verdict = service::judge(&unit, facts(clock, place, &unit).as_ref(), log_out(clock, &unit));
        let verdict = Verdict { finding: format!("`outlast serve` ({pid}): {}", verdict.finding), ..verdict };
        checks.push(verdict.check("service").about(unit.name));
    }
    checks.push(container::judge(place).check("container"));
    checks
}

fn of_own_service(clock: &dyn Clock, place: &Place, own: Option<&Unit>) -> Verdict {
    match own {
        Some(unit) => service::judge(unit, facts(clock, place, unit).as_ref(), log_out(clock, unit)),
        None if place.started_by_systemd => Verdict::unknown(
            "systemd has started this program, but its cgroup names no unit that can be asked".to_owned(),
            "look at `systemctl show -p KillMode UNIT`: only with KillMode=process agents work on".to_owned(),
        ),
        None => Verdict::outlive(
            "in no unit of systemd: nothing is known that ends agents when this program ends".to_owned(),
        ),
    }
}

/// Asks the systemd that the unit belongs to.
fn facts(clock: &dyn Clock, place: &Place, unit: &Unit) -> Option<UnitFacts> {
    let whose = match unit.user {
        None => "--system",
        Some(uid) if uid == place.uid => "--user",
        // Another user's cannot be asked in passing.
        Some(_) => return None,
    };
    let answer = ask(clock, "systemctl", &[whose, "--no-pager", "show", PROPERTIES, "--", &unit.name])?;
    UnitFacts::parse(&answer)
}

fn log_out(clock: &dyn Clock, unit: &Unit) -> LogOut {
    let lingers = |uid: u32| {
        let answer = ask(
            clock,
            "loginctl",
            &["--no-pager", "show-user", "--property=Linger", "--", &uid.to_string()],
        )?;
        yes_or_no(answer.trim().strip_prefix("Linger=")?)
    };
    let kills = || {
        let (service, manager) = ("org.freedesktop.login1", "org.freedesktop.login1.Manager");
        let question = ["get-property", service, "/org/freedesktop/login1", manager, "KillUserProcesses"];
        yes_or_no(ask(clock, "busctl", &question)?.trim().strip_prefix("b ")?)
    };
    LogOut { lingers: unit.user.and_then(lingers), kills: if unit.is_session() { kills() } else { None } }
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// Warns in the log where agents would end with the service or the container. On a thread of its own: nobody waits for
/// systemd's answer.
pub fn warn_at_start(clock: Arc<dyn Clock>) {
    let look = move || {
        let place = Place::of_this_process();
        let own = place.unit_of(&place.cgroup);
        let verdicts = [of_own_service(&*clock, &place, own.as_ref()), container::judge(&place)];
        for verdict in verdicts.into_iter().filter(|verdict| verdict.fate == Fate::Die) {
            let advice = verdict.advice.unwrap_or_default();
            tracing::warn!("{}: {advice} (`outlast doctor` tells more)", verdict.finding);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("doctor".to_owned()).spawn(look) {
        tracing::debug!(%error, "cannot look whether agents outlive the service");
    }
}
