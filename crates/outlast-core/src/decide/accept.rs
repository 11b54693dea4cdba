//! May this run be accepted?

use crate::{Nonce, OwnerId, RunId, ThreadId};

/// The run that already has the requested id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingRun {
    /// Its thread.
    pub thread_id: ThreadId,
    /// The digest of its request.
    pub digest: String,
    /// Who holds its claim or held it last, and with which nonce; none once it was given back or has ended.
    pub claim: Option<(OwnerId, Nonce)>,
}

/// What the store knows at the moment of the accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptFacts {
    /// The run with the requested id.
    pub existing: Option<ExistingRun>,
    /// The live run of the requested thread.
    pub thread_run: Option<RunId>,
    /// A live run that uses the same lent workspace, where one of the two does not share it.
    pub workspace_run: Option<RunId>,
    /// Whether the thread's session was deleted, or is being deleted.
    pub thread_deleted: bool,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptAsk<'a> {
    /// The run.
    pub run_id: &'a RunId,
    /// Its thread.
    pub thread_id: &'a ThreadId,
    /// Whether the caller chose the thread. One that was left to Outlast is no reason to differ.
    pub thread_chosen: bool,
    /// The digest of the request.
    pub digest: &'a str,
    /// The lent directory.
    pub workspace: Option<&'a str>,
    /// Who would hold the claim.
    pub owner: &'a OwnerId,
    /// Drawn for this request, so that the same request again is known.
    pub nonce: &'a Nonce,
}

/// What the accept does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptDecision {
    /// The request was made before: show its run, start nothing.
    Existing,
    /// This very request was carried out before and its claim is current: the answer was lost, or comes twice. The claim
    /// is the caller's, and its lease begins anew.
    Again,
    /// Record a new run.
    New,
}

/// Why a run is not accepted. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptRefusal {
    /// `run_id_conflict`.
    #[error("run id {run_id:?} is taken by another request ({differs}): choose another run id")]
    RunIdConflict {
        /// The id.
        run_id: RunId,
        /// What differs.
        differs: &'static str,
    },
    /// `thread_busy`.
    #[error("thread {thread_id:?} has a live run, {run_id:?}: attach to it, wait for its end or cancel it")]
    ThreadBusy {
        /// The thread.
        thread_id: ThreadId,
        /// Its live run.
        run_id: RunId,
    },
    /// `thread_busy`, because of the workspace.
    #[error(
        "workspace {path:?} is in use by the live run {run_id:?} of another thread: wait for its end, cancel it, or \
         share the workspace explicitly"
    )]
    WorkspaceBusy {
        /// The lent directory.
        path: String,
        /// The live run that uses it.
        run_id: RunId,
    },
    /// `session_deleted`.
    #[error("thread {thread_id:?} was deleted and is not begun again: choose another thread id")]
    ThreadDeleted {
        /// The thread.
        thread_id: ThreadId,
    },
}

/// Decides.
pub fn accept(facts: &AcceptFacts, ask: &AcceptAsk<'_>) -> Result<AcceptDecision, AcceptRefusal> {
    if let Some(existing) = &facts.existing {
        let differs = if ask.thread_chosen && existing.thread_id != *ask.thread_id {
            "another thread"
        } else if existing.digest != ask.digest {
            "another agent, input or workspace"
        } else if existing
            .claim
            .as_ref()
            .is_some_and(|(owner, nonce)| (owner, nonce) == (ask.owner, ask.nonce))
        {
            return Ok(AcceptDecision::Again);
        } else {
            return Ok(AcceptDecision::Existing);
        };
        return Err(AcceptRefusal::RunIdConflict { run_id: ask.run_id.clone(), differs });
    }
    if facts.thread_deleted {
        return Err(AcceptRefusal::ThreadDeleted { thread_id: ask.thread_id.clone() });
    }
    if let Some(run_id) = &facts.thread_run {
        let thread_id = ask.thread_id.clone();
        return Err(AcceptRefusal::ThreadBusy { thread_id, run_id: run_id.clone() });
    }
    if let Some(run_id) = &facts.workspace_run {
        let path = ask.workspace.unwrap_or_default().to_owned();
        return Err(AcceptRefusal::WorkspaceBusy { path, run_id: run_id.clone() });
    }
    Ok(AcceptDecision::New)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let run = |text: &str| RunId::new(text).expect("id");
        let thread = |text: &str| ThreadId::new(text).expect("id");
        let (me, nonce) = (OwnerId::new("me").expect("id"), Nonce::from_stored("mine"));
        let claim =
            |owner: &str, nonce: &str| Some((OwnerId::new(owner).expect("id"), Nonce::from_stored(nonce)));
        let found = |claim| Some(ExistingRun { thread_id: thread("t"), digest: "d".into(), claim });
        let existing = found(claim("me", "earlier"));
        let facts = |existing: &Option<ExistingRun>,
                     thread_run: Option<&str>,
                     workspace_run: Option<&str>| AcceptFacts {
            existing: existing.clone(),
            thread_run: thread_run.map(run),
            workspace_run: workspace_run.map(run),
            thread_deleted: false,
        };
        let ask = |facts: AcceptFacts, on: &str, chosen, digest| {
            let (run_id, thread_id) = (&run("r"), &thread(on));
            let workspace = Some("/w");
            accept(
                &facts,
                &AcceptAsk {
                    run_id,
                    thread_id,
                    thread_chosen: chosen,
                    digest,
                    workspace,
                    owner: &me,
                    nonce: &nonce,
                },
            )
        };
        // The same request again wins over everything, also while the run is live on the thread.
        assert_eq!(ask(facts(&existing, Some("r"), Some("r")), "t", true, "d"), Ok(AcceptDecision::Existing));
        assert_eq!(ask(facts(&existing, None, None), "minted", false, "d"), Ok(AcceptDecision::Existing));
        for (claim, expected) in [
            (None, AcceptDecision::Existing),
            (claim("another", "mine"), AcceptDecision::Existing),
            (claim("me", "mine"), AcceptDecision::Again),
        ] {
            assert_eq!(ask(facts(&found(claim), Some("r"), None), "t", true, "d"), Ok(expected));
        }
        assert!(matches!(
            ask(facts(&existing, None, None), "other", true, "d"),
            Err(AcceptRefusal::RunIdConflict { differs: "another thread", .. })
        ));
        assert!(matches!(
            ask(facts(&existing, None, None), "t", true, "e"),
            Err(AcceptRefusal::RunIdConflict { .. })
        ));
        let deleted = AcceptFacts { thread_deleted: true, ..facts(&None, None, None) };
        assert!(matches!(ask(deleted, "t", true, "d"), Err(AcceptRefusal::ThreadDeleted { .. })));
        assert!(matches!(
            ask(facts(&None, Some("x"), Some("y")), "t", true, "d"),
            Err(AcceptRefusal::ThreadBusy { run_id, .. }) if run_id == run("x")
        ));
        assert!(matches!(
            ask(facts(&None, None, Some("y")), "t", true, "d"),
            Err(AcceptRefusal::WorkspaceBusy { run_id, .. }) if run_id == run("y")
        ));
        assert_eq!(ask(facts(&None, None, None), "t", true, "d"), Ok(AcceptDecision::New));
    }
}
