//! The states of a run.

use serde::{Deserialize, Serialize};

macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The stored and printed form.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// Reads the stored form; `None` for any other text.
            pub fn parse(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

text_enum! {
    /// What a run is doing. The last three are terminal and never overwritten.
    Status {
        /// The agent works, or is about to.
        Running => "running",
        /// The run waits for a person. Never driven, reaped or pruned.
        Interrupted => "interrupted",
        /// The agent ended its work.
        Completed => "completed",
        /// The agent failed, was lost, or could not be started.
        Failed => "failed",
        /// Somebody, or a time limit, stopped the run.
        Aborted => "aborted",
    }
}

impl Status {
    /// Whether the run has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Aborted)
    }
}

text_enum! {
    /// How far the launch of a run's agent is known to be.
    Phase {
        /// The run is recorded; nothing exists outside the store.
        Accepted => "accepted",
        /// A sandbox is bound; a shim may have been started. Only the latch in the sandbox knows.
        Launching => "launching",
        /// The latch is known to be taken.
        Launched => "launched",
    }
}

text_enum! {
    /// What a claim is for.
    Purpose {
        /// To turn the journal into the log.
        Drive => "drive",
        /// To bring the run to its end. A cancelled run grants only this.
        End => "end",
    }
}

text_enum! {
    /// Who wanted the run to stop.
    CancelReason {
        /// A person or a program said Stop.
        User => "user",
        /// The last viewer of a run with `on_disconnect = "cancel"` left.
        Disconnect => "disconnect",
        /// The run was without a viewer for too long.
        Ttl => "ttl",
    }
}

text_enum! {
    /// What happens when the last viewer leaves.
    OnDisconnect {
        /// The agent works on.
        Detach => "detach",
        /// The run is cancelled.
        Cancel => "cancel",
    }
}

text_enum! {
    /// Why a run ended.
    EndReason {
        /// The agent exited with status 0 and reported no failure.
        Exited => "exited",
        /// The agent reported a failure, or exited with another status.
        AgentFailed => "agent_failed",
        /// The agent could not be started.
        LaunchFailed => "launch_failed",
        /// The agent and its shim died without leaving an exit.
        AgentLost => "agent_lost",
        /// The agent printed too much.
        OutputLimit => "output_limit",
        /// A cancel.
        Cancelled => "cancelled",
        /// A cancel whose kill could not be verified: processes of the agent may still live.
        CancelledUnverified => "cancelled_unverified",
        /// The time limit of a run without viewers.
        Expired => "expired",
        /// The sandbox is gone.
        SandboxGone => "sandbox_gone",
        /// No live host reaches the sandbox, and the run's time is up.
        SandboxUnreachable => "sandbox_unreachable",
        /// Its agent had ended, and what it had printed could not be delivered in the time that a sweep gives it.
        BudgetExceeded => "budget_exceeded",
        /// The journal is not the one that the log was made from.
        ReplayDiverged => "replay_diverged",
    }
}
