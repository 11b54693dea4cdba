//! Accepting a run.

use outlast_core::decide::{self, AcceptDecision, AcceptFacts, ExistingRun, SessionState};
use outlast_core::event::Origin;
use outlast_core::run::{Phase, Status};
use outlast_core::{Nonce, OwnerId, RunId, ThreadId};
use outlast_store::{Accept, AcceptError, Accepted, Claimed, NewEvent, run_started};

use super::append::{refuse_terminal, write_events};
use super::context::{Tx, get, int, millis, parsed, to_json, word};
use super::ledger::{Session, add_once, pointers_of, settle};
use super::messages::write_messages;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::accept`]. Of several that insert the same id, or on the same thread, all but one fail on a
/// unique index and look again.
pub(crate) async fn accept(tx: &Tx<'_>, request: &Accept) -> Tried<Result<Accepted, AcceptError>> {
    if let Err(error) = refuse_terminal(request.events.iter().map(|chunk| chunk.kind)) {
        return Ok(Err(error.into()));
    }
    let Facts { facts, existing, has_session } = facts(tx, request).await?;
    let run = match (decide::accept(&facts, &request.ask()), existing) {
        (Err(refusal), _) => return Ok(Err(refusal.into())),
        (Ok(AcceptDecision::Existing), Some(run)) => {
            return Ok(Ok(Accepted::Existing(Box::new(record::existing(tx, run).await?))));
        }
        (Ok(AcceptDecision::Again), Some(run)) => {
            lengthen(tx, run, request).await?;
            run
        }
        (Ok(_), _) => match insert(tx, request, facts, has_session).await? {
            Ok(run) => run,
            Err(error) => return Ok(Err(error)),
        },
    };
    Ok(Ok(Accepted::New(Box::new(Claimed { token: request.token(), run: record::existing(tx, run).await? }))))
}

/// Begins the lease of the first claim anew, unless it is another's by now: then the caller is told so by its first write.
async fn lengthen(tx: &Tx<'_>, run: i64, request: &Accept) -> Tried<()> {
    tx.write(
        "UPDATE runs SET lease_until = outlast_now() + $2 WHERE run = $1 AND lease_nonce = $3",
        &[&run, &millis(request.lease), &request.nonce.as_str()],
    )
    .await?;
    Ok(())
}

/// What is known before anything is written.
struct Facts {
    facts: AcceptFacts,
    /// The key of the run that has the requested id.
    existing: Option<i64>,
    /// Whether the thread has had a session at that moment.
    has_session: bool,
}

async fn facts(tx: &Tx<'_>, request: &Accept) -> Tried<Facts> {
    let thread = tx
        .one(
            "SELECT (SELECT run_id FROM runs WHERE tenant = $1 AND thread_id = $2 \
             AND status IN ('running', 'interrupted')), \
             (SELECT state FROM sessions WHERE tenant = $1 AND thread_id = $2)",
            &[&request.tenant.as_str(), &request.thread_id.as_str()],
        )
        .await?;
    let state = get::<Option<&str>>(&thread, 1)?;
    let state = state.map(|state| word("state of a session", state, SessionState::parse)).transpose()?;
    let workspace_run = match &request.spec.workspace {
        None => None,
        Some(workspace) => {
            // Whether two runs may share a workspace is said by both, which no unique index can express.
            tx.write("SELECT pg_advisory_xact_lock(hashtextextended($1, 1332769908))", &[&workspace.path])
                .await?;
            tx.maybe(
                "SELECT run_id FROM runs WHERE workspace = $1 AND status IN ('running', 'interrupted') \
                 AND workspace IS NOT NULL AND NOT (workspace_shared AND $2) LIMIT 1",
                &[&workspace.path, &workspace.shared],
            )
            .await?
        }
    };
    // Last, since each statement sees what was committed until it began: the run that is in the way may be the very run
    // that is asked for, and then it is to be found here.
    let found = tx
        .maybe(
            "SELECT run, tenant, thread_id, digest, lease_owner, lease_nonce FROM runs WHERE run_id = $1",
            &[&request.run_id.as_str()],
        )
        .await?;
    let (existing, key) = match &found {
        None => (None, None),
        // Another tenant's run is another request, whatever it asked for, and nothing of it is told.
        Some(row) if get::<&str>(row, 1)? != request.tenant.as_str() => {
            let digest = format!("not {}", request.digest);
            (Some(ExistingRun { thread_id: request.thread_id.clone(), digest, claim: None }), None)
        }
        Some(row) => {
            let thread_id = parsed("thread id", ThreadId::new(get::<&str>(row, 2)?))?;
            let owner = get::<Option<&str>>(row, 4)?;
            let owner = owner.map(|owner| parsed("owner", OwnerId::new(owner))).transpose()?;
            let claim = owner.zip(get::<Option<String>>(row, 5)?.map(Nonce::from_stored));
            (Some(ExistingRun { thread_id, digest: get(row, 3)?, claim }), Some(get(row, 0)?))
        }
    };
    let run_id = |id: Option<&str>| id.map(|id| parsed("run id", RunId::new(id))).transpose();
    let workspace_run = workspace_run.as_ref().map(|row| get::<&str>(row, 0)).transpose()?;
    Ok(Facts {
        facts: AcceptFacts {
            existing,
            thread_run: run_id(get(&thread, 0)?)?,
            workspace_run: run_id(workspace_run)?,
            thread_deleted: state.is_some_and(|state| state != SessionState::Active),
        },
        existing: key,
        has_session: state.is_some(),
    })
}

/// The run's row first, then the lock of its thread's session: whoever begins to delete the session has that lock while it
/// looks for live runs. So either it finds this one, or its mark is found here.
async fn insert(
    tx: &Tx<'_>,
    request: &Accept,
    facts: AcceptFacts,
    has_session: bool,
) -> Tried<Result<i64, AcceptError>> {
    let run = insert_run(tx, request).await?;
    let (tenant, thread) = (&request.tenant, &request.thread_id);
    let mut session = Session::lock_or_make(tx, tenant, thread, run, has_session).await?;
    if !session.is_active() {
        let deleted = AcceptFacts { thread_deleted: true, ..facts };
        if let Err(refusal) = decide::accept(&deleted, &request.ask()) {
            return Ok(Err(refusal.into()));
        }
    }
    let keys = pointers_of(&[], &request.messages);
    if let Err(refusal) = session.may_point_to(tx, request.barrier, &keys).await? {
        return Ok(Err(AcceptError::Bodies(refusal)));
    }
    let events: Vec<NewEvent> =
        request.events.iter().map(|chunk| NewEvent::new(Origin::Host, chunk.clone())).collect();
    write_events(tx, run, 0, &events).await?;
    write_messages(tx, run, &request.messages).await?;
    settle(tx, &mut session, run).await?;
    let spec = &request.spec;
    let input = request.messages.iter().filter(|new| new.ordinal < 0).map(|new| &new.message);
    let started = run_started(&request.run_id, &spec.agent, spec.model.as_deref(), input);
    add_once(tx, session, &started).await?;
    tx.touch(&request.run_id);
    Ok(Ok(run))
}

/// Writes the rows of the run and of its spec. Its start is added to the ledger in the same transaction.
async fn insert_run(tx: &Tx<'_>, request: &Accept) -> Tried<i64> {
    let secret = tx.entropy.exit_secret();
    let workspace = request.spec.workspace.as_ref();
    let row = tx
        .one(
            "WITH added AS (\
                INSERT INTO runs (run_id, tenant, thread_id, digest, exit_secret, status, phase, started_at, workspace, \
                workspace_shared, detached_ttl, on_disconnect, epoch, lease_owner, lease_nonce, lease_until, claimed_at, \
                tail, closed, sealed, kind, ledgered) \
                SELECT $1, $2, $3, $4, $5, $6, $7, now, $8, $9, $10, $11, 1, $12, $13, now + $14, now, $15, false, false, \
                $16, 1 FROM outlast_now() AS now RETURNING run\
             ) INSERT INTO specs (run, json) SELECT run, $17 FROM added RETURNING run",
            &[
                &request.run_id.as_str(),
                &request.tenant.as_str(),
                &request.thread_id.as_str(),
                &request.digest,
                &secret.reveal(),
                &Status::Running.as_str(),
                &Phase::Accepted.as_str(),
                &workspace.map(|workspace| workspace.path.as_str()),
                &workspace.is_some_and(|workspace| workspace.shared),
                &request.detached_ttl.map(millis),
                &request.on_disconnect.as_str(),
                &request.owner.as_str(),
                &request.nonce.as_str(),
                &millis(request.lease),
                &int(request.events.len() as u64),
                &request.spec.kind,
                &to_json(&request.spec)?,
            ],
        )
        .await?;
    get(&row, 0)
}
