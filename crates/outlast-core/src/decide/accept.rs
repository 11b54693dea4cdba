//! May this run be accepted?

use crate::{RunId, ThreadId};

/// The run that already has the requested id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingRun {
    /// Its thread.
    pub thread_id: ThreadId,
    /// The digest of its request.
    pub digest: String,
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
}

/// What the accept does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptDecision {
    /// The request was made before: show its run, start nothing.
    Existing,
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
}

/// Decides. `thread` is none where the caller left the thread to Outlast, which then is no reason to differ.
pub fn accept(
    facts: &AcceptFacts,
    run_id: &RunId,
    thread_id: &ThreadId,
    thread_chosen: bool,
    digest: &str,
    workspace: Option<&str>,
) -> Result<AcceptDecision, AcceptRefusal> {
    if let Some(existing) = &facts.existing {
        let differs = if thread_chosen && existing.thread_id != *thread_id {
            "another thread"
        } else if existing.digest != digest {
            "another agent, input or workspace"
        } else {
            return Ok(AcceptDecision::Existing);
        };
        return Err(AcceptRefusal::RunIdConflict { run_id: run_id.clone(), differs });
    }
    if let Some(run_id) = &facts.thread_run {
        return Err(AcceptRefusal::ThreadBusy { thread_id: thread_id.clone(), run_id: run_id.clone() });
    }
    if let Some(run_id) = &facts.workspace_run {
        let path = workspace.unwrap_or_default().to_owned();
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
        let existing = Some(ExistingRun { thread_id: thread("t"), digest: "d".into() });
        let facts = |existing: &Option<ExistingRun>,
                     thread_run: Option<&str>,
                     workspace_run: Option<&str>| AcceptFacts {
            existing: existing.clone(),
            thread_run: thread_run.map(run),
            workspace_run: workspace_run.map(run),
        };
        let ask = |facts: AcceptFacts, on: &str, chosen, digest| {
            accept(&facts, &run("r"), &thread(on), chosen, digest, Some("/w"))
        };
        // The same request again wins over everything, also while the run is live on the thread.
        assert_eq!(ask(facts(&existing, Some("r"), Some("r")), "t", true, "d"), Ok(AcceptDecision::Existing));
        assert_eq!(ask(facts(&existing, None, None), "minted", false, "d"), Ok(AcceptDecision::Existing));
        assert!(matches!(
            ask(facts(&existing, None, None), "other", true, "d"),
            Err(AcceptRefusal::RunIdConflict { differs: "another thread", .. })
        ));
        assert!(matches!(
            ask(facts(&existing, None, None), "t", true, "e"),
            Err(AcceptRefusal::RunIdConflict { .. })
        ));
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
