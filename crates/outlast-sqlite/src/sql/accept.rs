//! Accepting a run.

use outlast_core::decide::{self, AcceptDecision, AcceptFacts, ExistingRun, SessionState};
use outlast_core::event::Origin;
use outlast_core::run::{Phase, Status};
use outlast_core::{Nonce, OwnerId, RunId, ThreadId};
use outlast_store::{Accept, AcceptError, Accepted, Claimed, NewEvent};
use rusqlite::{OptionalExtension, named_params};

use super::append::{refuse_terminal, write_events};
use super::context::{Tx, int, millis, parsed, to_json};
use super::ledger::{Session, check_pointers, settle};
use super::messages::{pointer_of, write_message};
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::accept`].
pub(crate) fn accept(tx: &Tx<'_>, request: &Accept) -> Tried<Result<Accepted, AcceptError>> {
    if let Err(error) = refuse_terminal(request.events.iter().map(|chunk| chunk.kind)) {
        return Ok(Err(error.into()));
    }
    let session = Session::of_thread(tx, &request.tenant, &request.thread_id)?;
    let (facts, existing) = facts(tx, request, session.as_ref())?;
    let run = match (decide::accept(&facts, &request.ask()), existing) {
        (Err(refusal), _) => return Ok(Err(refusal.into())),
        (Ok(AcceptDecision::Existing), Some(run)) => {
            return Ok(Ok(Accepted::Existing(Box::new(record::existing(tx, run)?))));
        }
        (Ok(AcceptDecision::Again), Some(run)) => {
            lengthen(tx, run, request)?;
            run
        }
        (Ok(_), _) => {
            let pointers = request.messages.iter().filter_map(pointer_of);
            if let Err(refusal) = check_pointers(tx, session.as_ref(), request.barrier, pointers)? {
                return Ok(Err(AcceptError::Bodies(refusal)));
            }
            let run = insert(tx, request)?;
            // In the same transaction: a run that is accepted is in its thread's ledger, after all that came before it.
            settle(tx, session, &request.tenant, &request.thread_id)?;
            run
        }
    };
    Ok(Ok(Accepted::New(Box::new(Claimed { token: request.token(), run: record::existing(tx, run)? }))))
}

/// Begins the lease of the first claim anew.
fn lengthen(tx: &Tx<'_>, run: i64, request: &Accept) -> Tried<()> {
    tx.db.prepare_cached("UPDATE runs SET lease_boot = ?2, lease_until = ?3 WHERE run = ?1")?.execute((
        run,
        &tx.boot_id,
        int(tx.boot.saturating_add(millis(request.lease))),
    ))?;
    Ok(())
}

/// The run that has the requested id.
struct Found {
    run: i64,
    tenant: String,
    thread_id: String,
    digest: String,
    owner: Option<String>,
    nonce: Option<String>,
}

fn facts(tx: &Tx<'_>, request: &Accept, session: Option<&Session>) -> Tried<(AcceptFacts, Option<i64>)> {
    let existing: Option<Found> = tx
        .db
        .prepare_cached(
            "SELECT run, tenant, thread_id, digest, lease_owner, lease_nonce FROM runs WHERE run_id = ?1",
        )?
        .query_row([request.run_id.as_str()], |row| {
            Ok(Found {
                run: row.get(0)?,
                tenant: row.get(1)?,
                thread_id: row.get(2)?,
                digest: row.get(3)?,
                owner: row.get(4)?,
                nonce: row.get(5)?,
            })
        })
        .optional()?;
    let thread_run: Option<String> = tx
        .db
        .prepare_cached(
            "SELECT run_id FROM runs WHERE tenant = ?1 AND thread_id = ?2 AND status IN ('running', 'interrupted')",
        )?
        .query_row((request.tenant.as_str(), request.thread_id.as_str()), |row| row.get(0))
        .optional()?;
    let workspace_run: Option<String> = match &request.spec.workspace {
        None => None,
        Some(workspace) => tx
            .db
            .prepare_cached(
                "SELECT run_id FROM runs WHERE workspace = ?1 AND status IN ('running', 'interrupted') \
                 AND workspace IS NOT NULL AND (workspace_shared = 0 OR ?2 = 0) LIMIT 1",
            )?
            .query_row((&workspace.path, workspace.shared), |row| row.get(0))
            .optional()?,
    };
    let key = existing.as_ref().map(|found| found.run);
    let existing = match existing {
        None => None,
        // Another tenant's run is another request, whatever it asked for, and nothing of it is told.
        Some(found) if found.tenant != request.tenant.as_str() => Some(ExistingRun {
            thread_id: request.thread_id.clone(),
            digest: format!("not {}", request.digest),
            claim: None,
        }),
        Some(found) => {
            let owner = found.owner.map(|owner| parsed("owner", OwnerId::new(owner))).transpose()?;
            Some(ExistingRun {
                thread_id: parsed("thread id", ThreadId::new(found.thread_id))?,
                digest: found.digest,
                claim: owner.zip(found.nonce.map(Nonce::from_stored)),
            })
        }
    };
    let run_id = |text: Option<String>| text.map(|text| parsed("run id", RunId::new(text))).transpose();
    let facts = AcceptFacts {
        existing,
        thread_run: run_id(thread_run)?,
        workspace_run: run_id(workspace_run)?,
        thread_deleted: session.is_some_and(|session| session.state != SessionState::Active),
    };
    Ok((facts, key))
}

fn insert(tx: &Tx<'_>, request: &Accept) -> Tried<i64> {
    let workspace = request.spec.workspace.as_ref();
    tx.db
        .prepare_cached(
            "INSERT INTO runs (run_id, tenant, thread_id, digest, exit_secret, status, phase, started_at, workspace, \
             workspace_shared, detached_ttl, on_disconnect, epoch, lease_owner, lease_nonce, lease_boot, lease_until, \
             claimed_at, tail, closed, sealed, kind) \
             VALUES (:run_id, :tenant, :thread_id, :digest, :exit_secret, :status, :phase, :now, :workspace, \
             :shared, :detached_ttl, :on_disconnect, 1, :owner, :nonce, :boot_id, :until, :now, :tail, 0, 0, :kind)",
        )?
        .execute(named_params! {
            ":run_id": request.run_id.as_str(),
            ":tenant": request.tenant.as_str(),
            ":thread_id": request.thread_id.as_str(),
            ":digest": request.digest,
            ":exit_secret": tx.entropy.exit_secret().reveal(),
            ":status": Status::Running.as_str(),
            ":phase": Phase::Accepted.as_str(),
            ":now": int(tx.wall),
            ":workspace": workspace.map(|workspace| &workspace.path),
            ":shared": workspace.is_some_and(|workspace| workspace.shared),
            ":detached_ttl": request.detached_ttl.map(|ttl| int(millis(ttl))),
            ":on_disconnect": request.on_disconnect.as_str(),
            ":owner": request.owner.as_str(),
            ":nonce": request.nonce.as_str(),
            ":boot_id": tx.boot_id,
            ":until": int(tx.boot.saturating_add(millis(request.lease))),
            ":tail": int(request.events.len() as u64),
            ":kind": request.spec.kind,
        })?;
    let run = tx.db.last_insert_rowid();
    tx.db
        .prepare_cached("INSERT INTO specs (run, json) VALUES (?1, ?2)")?
        .execute((run, to_json(&request.spec)?))?;
    let events: Vec<NewEvent> =
        request.events.iter().map(|chunk| NewEvent::new(Origin::Host, chunk.clone())).collect();
    write_events(tx, run, 0, &events)?;
    for message in &request.messages {
        write_message(tx, run, message)?;
    }
    tx.touch(&request.run_id);
    Ok(run)
}
