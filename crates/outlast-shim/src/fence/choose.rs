//! Which fence the machine grants: found by trying, never by asking for versions or rights.

use outlast_core::shim::FenceChoice;

use super::active::{ActiveFence, Kind};
use super::cgroup;
use crate::keeper::{self, Enclosure, Orders};

/// Makes the fence with its keeper inside, waiting. `name` is unique on this machine at this time.
///
/// # Errors
///
/// Why it cannot be had, for people. Nothing is left behind.
pub(crate) fn choose(
    choice: FenceChoice,
    name: &str,
    orders: &mut Orders<'_>,
) -> Result<ActiveFence, String> {
    match choice {
        FenceChoice::PidNamespace => pid_namespace(orders),
        FenceChoice::Cgroup => in_cgroup(name, orders),
        FenceChoice::Subreaper => subreaper(orders),
        FenceChoice::Auto => pid_namespace(orders).or_else(|first| {
            in_cgroup(name, orders).or_else(|second| {
                subreaper(orders).map_err(|third| {
                    format!(
                        "no fence can be had: PID namespace: {first}; cgroup: {second}; subreaper: {third}"
                    )
                })
            })
        }),
    }
}

fn pid_namespace(orders: &mut Orders<'_>) -> Result<ActiveFence, String> {
    orders.enclosure = Enclosure::Namespaces { user: false };
    let made = keeper::spawn(orders).or_else(|cause| {
        // Root that may not make namespaces could still make them in a user namespace, but there it would own no
        // file but root's, and an agent that works as root expects to.
        if rustix::process::geteuid().is_root() {
            return Err(cause);
        }
        orders.enclosure = Enclosure::Namespaces { user: true };
        keeper::spawn(orders)
    });
    let (keeper, channel) = made?;
    Ok(ActiveFence { keeper: Some(keeper), channel, kind: Kind::PidNamespace })
}

fn in_cgroup(name: &str, orders: &mut Orders<'_>) -> Result<ActiveFence, String> {
    let path = cgroup::create(name)?;
    let made = subreaper(orders).and_then(|mut fence| {
        // The keeper waits and has no children yet, so nothing can be left outside.
        let keeper = fence.keeper.map_or(0, |keeper| keeper.as_raw_nonzero().get());
        match cgroup::enter(&path, keeper) {
            Ok(()) => {
                fence.kind = Kind::Cgroup(path.clone());
                Ok(fence)
            }
            Err(error) => {
                fence.dismantle();
                Err(format!("cannot put a process into the cgroup {}: {error}", path.display()))
            }
        }
    });
    if made.is_err() {
        cgroup::remove(&path);
    }
    made
}

fn subreaper(orders: &mut Orders<'_>) -> Result<ActiveFence, String> {
    // If the keeper is killed, its orphans must not escape to the machine's init.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("adopting orphans: {error}"))?;
    orders.enclosure = Enclosure::Adoption;
    let (keeper, channel) = keeper::spawn(orders)?;
    Ok(ActiveFence { keeper: Some(keeper), channel, kind: Kind::Subreaper })
}
