//! A commit whose answer is lost: the server has carried it out, and the connection breaks before it can say so.

use std::time::Duration;

use outlast_core::ledger::{Record, SessionStopped, StopReason};
use outlast_core::run::{CancelReason, Phase, Purpose, Status};
use outlast_core::{InstanceId, Seq, Tenant, ThreadId};
use outlast_store::{
    Accept, Accepted, AcquireLease, AppendRecords, CancelOutcome, Claim, Entropy, Instance, InstanceState,
    LeaseOn, NewRecord, RecordAppended, SessionName, SystemEntropy,
};

use crate::support::{Stage, ending, eventually, host, numbered};

#[tokio::test(flavor = "multi_thread")]
async fn of_every_write_of_a_driver() {
    let stage = Stage::new().await;
    let token = stage.a.accept("r", "r").await.token;
    let instance = Instance {
        instance_id: InstanceId::new("i").expect("id"),
        sandbox_key: "key".to_owned(),
        provider: "local".to_owned(),
        machine: None,
        state: InstanceState::Creating,
        created_at: 1,
        tenant: Tenant::default(),
        thread_id: None,
        lent: false,
        keep_alive: None,
        reclaim: None,
    };
    let created = stage.twice("COMMIT", async |a| a.store.create_instance(&token, &instance).await).await;
    created.expect("settled");
    let live = stage.twice("COMMIT", async |a| a.store.instance_created(&instance.instance_id).await).await;
    live.expect("settled");
    let launched = stage.twice("COMMIT", async |a| a.store.launched(&token, Seq(1), vec![]).await).await;
    assert_eq!(launched.expect("settled").tail, Seq(1));
    assert_eq!(stage.a.record("r").await.phase, Phase::Launched);

    for tail in 1..5 {
        let append = numbered(&token, tail);
        let appended =
            stage.twice(append.batch.as_str(), async |a| a.store.append(append.clone()).await).await;
        assert_eq!(appended.expect("settled").tail, Seq(tail + 1));
        assert_eq!(stage.a.log("r").await.len() as u64, tail + 1);
    }

    let finish = ending(&token, 5);
    let finished = stage.twice("COMMIT", async |a| a.store.finish(finish.clone()).await).await;
    let finished = finished.expect("settled").run;
    assert_eq!((finished.status, finished.tail), (Status::Completed, 6));
    assert_eq!(finished, stage.a.record("r").await);
    assert_eq!(stage.a.log("r").await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_wish_to_stop() {
    let stage = Stage::new().await;
    let token = stage.a.accept("r", "r").await.token;
    let outcome = stage
        .twice("COMMIT", async |a| {
            a.store.request_cancel(&a.tenant, &token.run_id, CancelReason::User, None).await
        })
        .await;
    assert!(matches!(outcome, Ok(CancelOutcome::AlreadyRequested(_))), "{outcome:?}");
    stage.twice("COMMIT", async |a| a.store.release(&token).await).await.expect("settled");
    assert_eq!(stage.a.record("r").await.driver, None);
}

/// The same request again is granted what the first was, at once and with a lease from now. Another one of the same host
/// waits: whoever asked first knows nothing of the claim, so it runs out, whatever else the host holds and renews.
#[tokio::test(flavor = "multi_thread")]
async fn of_an_acceptance_and_of_a_claim() {
    let stage = Stage::new().await;
    let a = &stage.a;
    let b = host(&stage.schema.url, "b").await;
    let lease = Duration::from_secs(1);
    let kept = a.accept_with(Accept { lease, ..a.request("kept", "kept") }).await.token;
    let renewing = tokio::spawn({
        let (a, claims) = (a.clone(), [(kept.run_id.clone(), 1)]);
        async move {
            loop {
                let _ = a.store.renew(&a.owner, &claims, lease).await;
                tokio::time::sleep(lease / 5).await;
            }
        }
    });
    let request = Accept { lease, ..a.request("r", "r") };
    let accepted = stage.twice("COMMIT", async |a| a.store.accept(request.clone()).await).await;
    assert!(matches!(accepted, Ok(Accepted::New(claimed)) if claimed.token.epoch == 1));
    assert_eq!(a.log("r").await.len(), 1);
    let another = Accept { nonce: SystemEntropy.nonce(), ..request };
    assert!(
        matches!(a.store.accept(another).await, Ok(Accepted::Existing(run)) if run.run_id.as_str() == "r")
    );

    let first = a.accept("again", "again").await.token;
    a.store.release(&first).await.expect("released");
    let wish = a.wish("again", Purpose::Drive);
    let claimed = stage.twice("COMMIT", async |a| a.store.claim(wish.clone()).await).await.expect("granted");
    assert_eq!(claimed.token.epoch, 2);

    stage.proxy.lose_answer_to("COMMIT");
    let mut epochs = Vec::new();
    eventually("the claim is granted", Duration::from_secs(20), async || {
        let run = a.record("r").await;
        if run.driver.is_none()
            && let Ok(claimed) = a.store.claim(Claim { lease, ..a.wish("r", Purpose::Drive) }).await
        {
            epochs.push(claimed.token.epoch);
        }
        !epochs.is_empty()
    })
    .await;
    assert_eq!(epochs, [3], "the second claim's answer was lost, the third was told");
    assert!(b.claim("kept", Purpose::Drive).await.is_err(), "what is known to be held is held");
    renewing.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_upkeep_of_a_session() {
    let stage = Stage::new().await;
    let token = stage.a.accept("r", "t").await.token;
    let finish = ending(&token, 1);
    stage.twice("COMMIT", async |a| a.store.finish(finish.clone()).await).await.expect("settled");
    let thread_id = ThreadId::new("t").expect("id");
    let name = SessionName::Thread(thread_id.clone());
    let session = async || {
        stage.a.store.session(&Tenant::default(), &name).await.expect("answered").expect("a session")
    };
    assert_eq!(session().await.tip, 2, "an end is in the ledger once");

    let on = LeaseOn::Session(session().await.session_id);
    let lasts = Duration::from_secs(600);
    let (owner, nonce) = (stage.a.owner.clone(), SystemEntropy.nonce());
    let wish = AcquireLease { on, owner, nonce, lasts };
    let lease = stage.twice("COMMIT", async |a| a.store.acquire_lease(&wish).await).await;
    let lease = lease.expect("settled").token;
    assert_eq!((lease.epoch, session().await.lease.map(|lease| lease.epoch)), (1, Some(1)));
    let renewed = stage.twice("COMMIT", async |a| a.store.renew_lease(&lease, lasts).await).await;
    assert!(renewed.expect("settled"));

    let pin = SystemEntropy.nonce();
    let since = stage.twice("COMMIT", async |a| a.store.pin(&pin, &a.owner, lasts).await).await;
    assert!(since.expect("settled").is_some());
    let stopped = Record::SessionStopped(SessionStopped { reason: StopReason::User });
    let append = AppendRecords {
        tenant: Tenant::default(),
        thread_id,
        expected_tip: Some(2),
        barrier: None,
        lease: Some(lease.clone()),
        pin: Some(pin.clone()),
        create: false,
        records: vec![NewRecord::new("s", stopped)],
    };
    let appended = stage.twice("COMMIT", async |a| a.store.append_records(append.clone()).await).await;
    assert_eq!(appended.expect("settled"), [RecordAppended { seq: 3, appended: false }]);
    assert_eq!((session().await.tip, stage.a.store.pins().await.expect("answered")), (3, vec![]));

    let keys = [format!("{}/{}", session().await.session_id.blobs_prefix(), "0".repeat(64))];
    let condemned = stage.twice("COMMIT", async |a| a.store.condemn(&lease, &keys).await).await;
    assert_eq!(condemned.expect("settled"), keys);
    stage.twice("COMMIT", async |a| a.store.release_lease(&lease, Some(3)).await).await.expect("settled");
    assert_eq!(session().await.note.map(|note| note.0), Some(3));

    stage
        .twice("COMMIT", async |a| a.store.begin_delete(&a.tenant, &name, None).await)
        .await
        .expect("settled");
    let id = session().await.session_id;
    let swept = stage.twice("COMMIT", async |a| a.store.delete_rows(&id, 500).await).await.expect("settled");
    assert_eq!((swept.rows, swept.more), (0, false), "the first attempt has deleted all");
    stage.twice("COMMIT", async |a| a.store.end_delete(&id).await).await.expect("settled");
    assert!(session().await.deleted_at.is_some());
}
