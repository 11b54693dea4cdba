//! What to say of it.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_runtime::{Orphan, OrphanState};

use super::super::check::Check;
use super::Facts;
use crate::config::{ReapConfig, show_duration};
use crate::count::count;

/// How far clocks may be apart before anybody is bothered with it, in milliseconds.
const APART: u64 = 5_000;

/// Everything that the facts tell.
pub fn judge(facts: &Facts, reap: &ReapConfig) -> Vec<Check> {
    let stats = &facts.stats;
    let waits = stats.detached + stats.reclaims_pending;
    let mut checks = vec![
        clock(facts.ahead, facts.unsure),
        hosts(&facts.hosts, facts.here.as_deref(), waits),
        overdue(&facts.late, reap.interval),
        undriven(stats.undriven, facts.hosts.len()),
        sandboxes(stats.reclaims_pending, stats.reclaims_failed),
    ];
    checks.extend(facts.orphans.as_ref().map(orphans));
    checks
}

fn millis(time: u64) -> String {
    show_duration(Duration::from_millis(time))
}

fn clock(ahead: i64, unsure: u64) -> Check {
    let apart = ahead.unsigned_abs();
    if apart.saturating_sub(unsure) <= APART {
        return Check::ok("clock", format!("differs from the store's by {}", millis(apart)));
    }
    let way = if ahead > 0 { "behind" } else { "ahead of" };
    Check::warning(
        "clock",
        format!("{} {way} the store's", millis(apart)),
        "set it by the network: the store's clock decides when runs and sandboxes end, but this one the age of orphans and \
         the times that commands show",
    )
}

/// `machines` has one entry for each server; `waits` says how many runs and sandboxes wait for one.
fn hosts(machines: &[Option<String>], here: Option<&str>, waits: u64) -> Check {
    let Some(one) = machines.first() else {
        let advice = "nothing brings runs that nobody watches to their end, nor destroys sandboxes, unless `outlast reap` and \
                      `outlast reclaim` are scheduled";
        let check = Check::warning("servers", "no `outlast serve` is alive", advice);
        return if waits > 0 { check } else { Check { level: super::super::Level::Ok, ..check } };
    };
    let distinct: BTreeSet<_> = machines.iter().flatten().collect();
    let servers = count(machines.len() as u64, "server");
    let finding = match distinct.len() {
        0 | 1 => format!("{servers} alive"),
        n => format!("{servers} alive on {n} machines"),
    };
    let absent = here.is_some_and(|here| one.is_some() && !distinct.iter().any(|machine| *machine == here));
    match absent {
        false => Check::ok("servers", format!("{finding}; /metrics of each tells how its jobs fare")),
        true => Check::warning(
            "servers",
            format!("{finding}, none on this machine"),
            "sandboxes here are driven and destroyed only by processes here: start `outlast serve`, or schedule `outlast reap` \
             and `outlast reclaim`",
        ),
    }
}

/// `late` says by how much each run is past its time, in milliseconds.
fn overdue(late: &[u64], interval: Duration) -> Check {
    let overdue = late.len() as u64;
    let Some(&late) = late.iter().max() else {
        return Check::ok("overdue", "no run has gone on for longer without a viewer than it may");
    };
    let have = if overdue == 1 { "has" } else { "have" };
    let finding = format!(
        "{} {have} gone on without a viewer for up to {} longer than they may",
        count(overdue, "run"),
        millis(late)
    );
    if Duration::from_millis(late) <= interval * 2 {
        return Check::ok("overdue", format!("{finding}; the next sweep stops them"));
    }
    Check::problem("overdue", finding, "no sweep reaches them: `outlast reap` stops them, or says why not")
}

fn undriven(undriven: u64, servers: usize) -> Check {
    let advice =
        "`outlast ps` says what their sandboxes say; `outlast attach RUN` drives one, or says why not";
    match (undriven, servers) {
        (0, _) => Check::ok("undriven", "no live run is without a driver"),
        // Usual where there is no server.
        (n, 0) => Check {
            advice: Some("`outlast attach RUN` drives one; `outlast serve` drives all".to_owned()),
            ..Check::ok("undriven", format!("{} without a driver", count(n, "live run")))
        },
        (n, _) => {
            let finding = format!("{} without a driver although a server is alive", count(n, "live run"));
            Check::warning("undriven", finding, advice)
        }
    }
}

fn sandboxes(pending: u64, failed: u64) -> Check {
    match (pending, failed) {
        (0, 0) => Check::ok("sandboxes", "none is due to be destroyed"),
        (_, 0) => Check::ok("sandboxes", format!("{pending} due to be destroyed")),
        (_, _) => Check::problem(
            "sandboxes",
            format!("{pending} due to be destroyed, of which {failed} could not be and may be costing money"),
            "`outlast sandbox ls` says why; it is tried again, and at once by `outlast sandbox rm ID`",
        ),
    }
}

fn orphans(found: &Result<Vec<Orphan>, String>) -> Check {
    let found = match found {
        Ok(found) => found,
        Err(error) => return Check::unknown("orphans", error),
    };
    let of =
        |wanted: fn(&OrphanState) -> bool| found.iter().filter(|orphan| wanted(&orphan.state)).count() as u64;
    if let Some(error) = found.iter().find_map(|orphan| match &orphan.state {
        OrphanState::Failed { error } => Some(error),
        _ => None,
    }) {
        return Check::unknown("orphans", error);
    }
    let open = of(|state| matches!(state, OrphanState::Unrecorded | OrphanState::Due));
    let aside = of(|state| matches!(state, OrphanState::Quarantined));
    match (open, aside) {
        (0, 0) => Check::ok("orphans", "no sandbox without a record"),
        (0, aside) => {
            Check::ok("orphans", format!("{} put aside, to be destroyed later", count(aside, "sandbox")))
        }
        (open, _) => Check::warning(
            "orphans",
            format!("{} that no record knows of", count(open, "sandbox")),
            "`outlast sandbox orphans` lists them, and with --destroy puts them aside and later destroys them, as a server does",
        ),
    }
}

/// Whether sweeps come often enough for the time that runs have.
pub fn sweep(reap: &ReapConfig) -> Check {
    let ttl = reap.detached_run_ttl.duration();
    let may = match ttl {
        Some(ttl) => format!("runs may go on for {} without a viewer", show_duration(ttl)),
        None => "runs may go on for ever without a viewer".to_owned(),
    };
    if !reap.schedule {
        let advice = "schedule `outlast reap` and `outlast reclaim`, or calls of /v1/reap";
        let finding = format!("servers do not sweep ([reap] schedule = false); {may}");
        return Check { advice: Some(advice.to_owned()), ..Check::ok("sweep", finding) };
    }
    let finding = format!("every {}; {may}", show_duration(reap.interval));
    match ttl {
        Some(ttl) if reap.interval > ttl / 2 => Check::warning(
            "sweep",
            finding,
            "they may go on for half as long again: let [reap] interval be at most half of detached_run_ttl",
        ),
        _ => Check::ok("sweep", finding),
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::InstanceId;

    use super::super::super::Level;
    use super::*;
    use crate::config::Limit;

    #[track_caller]
    fn is(check: Check, level: Level, says: &str) {
        assert_eq!(check.level, level, "{check:?}");
        assert!(check.finding.contains(says), "{says:?}: {check:?}");
        assert!(level == Level::Ok || check.advice.is_some() || says.starts_with("could not"), "{check:?}");
    }

    #[test]
    fn clocks() {
        is(clock(0, 0), Level::Ok, "by 0 ms");
        is(clock(5_000, 0), Level::Ok, "by 5.0 s");
        is(clock(5_001, 0), Level::Warning, "5.0 s behind the store's");
        is(clock(-60_000, 0), Level::Warning, "1 min 0 s ahead of the store's");
        is(clock(-6_000, 1_000), Level::Ok, "6.0 s");
        is(clock(i64::MIN, 0), Level::Warning, "ahead");
    }

    #[test]
    fn servers() {
        let machine = |name: &str| Some(name.to_owned());
        is(hosts(&[], Some("a"), 0), Level::Ok, "no `outlast serve`");
        assert!(hosts(&[], None, 0).advice.expect("advice").contains("outlast reap"));
        is(hosts(&[], Some("a"), 1), Level::Warning, "no `outlast serve`");
        is(hosts(&[machine("a")], Some("a"), 1), Level::Ok, "1 server alive; /metrics");
        is(hosts(&[machine("a"), machine("a")], Some("a"), 1), Level::Ok, "2 servers alive;");
        is(hosts(&[machine("a"), machine("b")], None, 1), Level::Ok, "2 servers alive on 2 machines;");
        is(hosts(&[machine("b")], Some("a"), 0), Level::Warning, "none on this machine");
        is(hosts(&[None], Some("a"), 0), Level::Ok, "1 server");
    }

    #[test]
    fn past_their_time() {
        let minute = Duration::from_secs(60);
        is(overdue(&[], minute), Level::Ok, "no run");
        is(overdue(&[0], minute), Level::Ok, "1 run has");
        is(overdue(&[120_000, 1], minute), Level::Ok, "2 runs have");
        is(overdue(&[1, 120_001], minute), Level::Problem, "up to 2 min 0 s longer");
        assert!(overdue(&[u64::MAX], minute).advice.expect("advice").contains("outlast reap"));
    }

    #[test]
    fn without_a_driver() {
        is(undriven(0, 0), Level::Ok, "no live run");
        is(undriven(1, 0), Level::Ok, "1 live run without");
        is(undriven(2, 1), Level::Warning, "2 live runs without");
    }

    #[test]
    fn due_sandboxes() {
        is(sandboxes(0, 0), Level::Ok, "none is due");
        is(sandboxes(3, 0), Level::Ok, "3 due");
        is(sandboxes(3, 1), Level::Problem, "3 due to be destroyed, of which 1 could not");
        assert!(sandboxes(1, 1).advice.expect("advice").contains("outlast sandbox ls"));
    }

    #[test]
    fn left_behind() {
        let all = |states: &[OrphanState]| {
            Ok(states
                .iter()
                .map(|state| Orphan {
                    name: "n".to_owned(),
                    instance_id: InstanceId::new("i").expect("id"),
                    since: None,
                    state: state.clone(),
                })
                .collect())
        };
        let failed = OrphanState::Failed { error: "no".to_owned() };
        is(orphans(&all(&[])), Level::Ok, "no sandbox");
        is(orphans(&all(&[OrphanState::TooYoung])), Level::Ok, "no sandbox");
        is(orphans(&all(&[OrphanState::Quarantined])), Level::Ok, "1 sandbox put aside");
        is(orphans(&all(&[OrphanState::Unrecorded, OrphanState::Due])), Level::Warning, "2 sandboxes that");
        is(orphans(&all(&[failed])), Level::Warning, "could not tell: no");
        is(orphans(&Err("away".to_owned())), Level::Warning, "could not tell: away");
    }

    #[test]
    fn often_enough() {
        let with = |interval: u64, ttl: Limit, schedule: bool| {
            let interval = Duration::from_secs(interval);
            sweep(&ReapConfig { interval, detached_run_ttl: ttl, schedule, ..ReapConfig::default() })
        };
        let minute = Limit::For(Duration::from_secs(60));
        is(sweep(&ReapConfig::default()), Level::Ok, "every 1 min 0 s; runs may go on for 24 h 0 min");
        is(with(30, minute, true), Level::Ok, "every 30.0 s");
        is(with(31, minute, true), Level::Warning, "every 31.0 s");
        is(with(31, Limit::None, true), Level::Ok, "for ever");
        is(with(31, minute, false), Level::Ok, "do not sweep");
    }
}
