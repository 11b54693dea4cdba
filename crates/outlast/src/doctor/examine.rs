//! All checks, in the order in which they are told.

use std::path::Path;

use outlast_store::Ports;

use super::check::{Check, Level};
use super::directory::{self, DirectoryFacts};
use super::ending::{self, Facts};
use super::place::Place;
use super::trial::{self, Trials};
use super::{agents, fence, machine, memory, objects, store, survival};
use crate::config::Config;
use crate::{Environment, StoreChoice};

/// What is examined.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub data_dir: &'a Path,
    pub store: &'a StoreChoice,
    /// Where objects are; none: in the data directory.
    pub objects: Option<&'a str>,
    pub config: &'a Config,
}

/// Looks at everything that runs need here, and at what they outlive. Makes no data directory, and nothing in one of
/// another user.
pub async fn examine(subject: Subject<'_>, ports: &Ports) -> Vec<Check> {
    let Subject { data_dir, store, objects, config } = subject;
    let place = Place::of_this_process();
    let facts = DirectoryFacts::of(data_dir);
    let embedded = *store == StoreChoice::Embedded;
    let mut checks = vec![directory::judge(&facts, embedded), store::check(store, &facts, ports).await];
    checks.push(objects::check(objects, embedded, &facts, ports).await);
    let trials = trials(&facts, config, ports).await;
    checks.push(fence::shim(&trials));
    checks.push(fence::fence(config.sandbox.fence, &trials));
    checks.push(fence::separation(place.uid));
    checks.push(machine::check(data_dir));
    checks.push(ending::sweep(&config.reap));
    checks.extend(endings(subject, &facts, &checks, ports).await);
    checks.extend(agents::gather(config, &Environment::of_process()).iter().map(agents::judge));
    checks.extend(survival::checks(&*ports.clock, &place));
    checks.push(memory::check());
    checks
}

/// In the data directory, whose file system matters; where it does not exist yet, in the directory for temporary files.
async fn trials(facts: &DirectoryFacts, config: &Config, ports: &Ports) -> Result<Trials, String> {
    if let Some(hindrance) = facts.hindrance() {
        return Err(hindrance);
    }
    let temporary = std::env::temp_dir();
    let parent = if facts.exists() { &facts.path } else { &temporary };
    trial::run(parent, config.sandbox.fence, ports).await
}

/// Nothing where the store has been told to be a problem: once is enough.
async fn endings(
    subject: Subject<'_>,
    facts: &DirectoryFacts,
    checks: &[Check],
    ports: &Ports,
) -> Vec<Check> {
    let reap = &subject.config.reap;
    if checks.iter().any(|check| check.check == "store" && check.level != Level::Ok) {
        return Vec::new();
    }
    match Facts::gather(subject.store, facts, reap.orphan_grace, ports).await {
        None => Vec::new(),
        Some(Ok(facts)) => ending::judge(&facts, reap),
        Some(Err(error)) => vec![Check::unknown("servers", error)],
    }
}
