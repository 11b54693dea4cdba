//! Accepting a run.

use outlast_core::decide::{self, AcceptDecision, AcceptFacts, ExistingRun};
use outlast_core::event::Origin;
use outlast_core::run::{Phase, Status};
use outlast_core::{Nonce, OwnerId, RunId, ThreadId};
use outlast_store::{Accept, AcceptError, Accepted, Claimed, NewEvent};

use super::append::{refuse_terminal, write_events};
use super::context::{Tx, get, int, millis, parsed, to_json};
use super::messages::write_messages;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::accept`]. Of several that insert the same id, or on the same thread, all but one fail on a
/// unique index and look again.
pub(crate) async fn accept(tx: &Tx<'_>, request: &Accept) -> Tried<Result<Accepted, AcceptError>> {
    if let Err(error) = refuse_terminal(request.events.iter().map(|chunk| chunk.kind)) {
        return Ok(Err(error.into()));
    }
    let (facts, existing) = facts(tx, request).await?;
    let run = match (decide::accept(&facts, &request.ask()), existing) {
        (Err(refusal), _) => return Ok(Err(refusal.into())),
        (Ok(AcceptDecision::Existing), Some(run)) => {
            return Ok(Ok(Accepted::Existing(Box::new(record::existing(tx, run).await?))));
        }
        (Ok(AcceptDecision::Again), Some(run)) => {
            lengthen(tx, run, request).await?;
            run
        }
        (Ok(_), _) => insert(tx, request).await?,
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

async fn facts(tx: &Tx<'_>, request: &Accept) -> Tried<(AcceptFacts, Option<i64>)> {
    let thread_run = tx
        .maybe(
            "SELECT run_id FROM runs WHERE tenant = $1 AND thread_id = $2 AND status IN ('running', 'interrupted')",
            &[&request.tenant.as_str(), &request.thread_id.as_str()],
        )
        .await?;
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
    let run_id = |row: Option<tokio_postgres::Row>| {
        row.map(|row| parsed("run id", RunId::new(get::<&str>(&row, 0)?))).transpose()
    };
    Ok((
        AcceptFacts { existing, thread_run: run_id(thread_run)?, workspace_run: run_id(workspace_run)? },
        key,
    ))
}

async fn insert(tx: &Tx<'_>, request: &Accept) -> Tried<i64> {
    let secret = tx.entropy.exit_secret();
    let workspace = request.spec.workspace.as_ref();
    let row = tx
        .one(
            "INSERT INTO runs (run_id, tenant, thread_id, digest, exit_secret, status, phase, started_at, workspace, \
             workspace_shared, detached_ttl, on_disconnect, epoch, lease_owner, lease_nonce, lease_until, claimed_at, \
             tail, closed, sealed, kind) \
             SELECT $1, $2, $3, $4, $5, $6, $7, now, $8, $9, $10, $11, 1, $12, $13, now + $14, now, $15, false, false, \
             $16 FROM outlast_now() AS now RETURNING run",
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
            ],
        )
        .await?;
    let run: i64 = get(&row, 0)?;
    tx.write("INSERT INTO specs (run, json) VALUES ($1, $2)", &[&run, &to_json(&request.spec)?]).await?;
    let events: Vec<NewEvent> =
        request.events.iter().map(|chunk| NewEvent { origin: Origin::Host, chunk: chunk.clone() }).collect();
    write_events(tx, run, 0, &events).await?;
    // The turn's input stands before the first event.
    let first = -(request.messages.len() as i64);
    write_messages(tx, run, (first..).zip(&request.messages)).await?;
    tx.touch(&request.run_id);
    Ok(run)
}
