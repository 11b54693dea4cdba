//! A commit whose answer is lost: the server has carried it out, and the connection breaks before it can say so.

use std::time::Duration;

use outlast_core::run::{CancelReason, Phase, Purpose, Status};
use outlast_core::{InstanceId, Seq, Tenant};
use outlast_store::{
    Accept, Accepted, CancelOutcome, Claim, Entropy, Instance, InstanceState, SystemEntropy,
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
