//! What may be launched.

use std::time::Duration;

use outlast_core::run::{LaunchSpec, OnDisconnect};

/// How a run of an agent is launched, and the defaults of what a request may change.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The launch, without model and prompt of the request.
    pub spec: LaunchSpec,
    /// How long it may go on without a viewer; none: for ever.
    pub detached_ttl: Option<Duration>,
    /// What happens when the last viewer leaves.
    pub on_disconnect: OnDisconnect,
}

/// The agents that requests may name. Requests choose among them; they cannot bring a command of their own.
pub trait Catalog: std::fmt::Debug + Send + Sync {
    /// The plan of this agent; none named: of the default one. An error says which agents there are.
    fn plan(&self, agent: Option<&str>) -> Result<Plan, String>;
}
