//! A host that stands still in the middle of a transaction, with a run's row locked.

use std::time::{Duration, Instant};

use outlast_core::run::Purpose;
use outlast_store::Claim;

use crate::support::{Stage, eventually, host, numbered, within};

/// The server ends what stands still; until then the others of its locks' runs wait, and nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn is_ended_by_the_server_and_the_others_go_on() {
    let stage = Stage::new().await;
    let a = host(&stage.schema.url, "a").await;
    let token = a.accept("r", "r").await.token;
    let other = a.accept("other", "other").await.token;
    // The statement after the one that locks the row does not leave the frozen host.
    stage.proxy.freeze_at("SELECT r.started_at");
    let frozen = tokio::spawn({
        let frozen = stage.a.clone();
        let wish = Claim { detached_for: Some(Duration::ZERO), ..frozen.wish("r", Purpose::Drive) };
        async move { frozen.store.claim(wish).await }
    });
    eventually("it is frozen", Duration::from_secs(10), async || stage.proxy.is_frozen()).await;
    let began = Instant::now();

    let free = a.store.append(numbered(&other, 1));
    within(Duration::from_secs(2), "another run is not held up", free).await.expect("written");
    let claims = [(other.run_id.clone(), 1), (token.run_id.clone(), 1)];
    let lease = Duration::from_secs(10);
    let renewals = a.store.renew(&a.owner, &claims, lease);
    let renewed = within(lease / 3, "renewals are not held up", renewals).await.expect("renewed");
    assert_eq!(renewed.len(), 2, "nothing counts as lost that is merely locked");
    for one in renewed {
        assert_eq!(one.lease == lease, one.run_id.as_str() == "other", "{one:?}");
    }

    let held_up = a.store.append(numbered(&token, 1));
    within(Duration::from_secs(9), "the server ends the frozen transaction", held_up).await.expect("written");
    assert!(began.elapsed() > Duration::from_secs(3), "it was held up: {:?}", began.elapsed());
    // Thawed, it finds its connection gone, and has changed nothing.
    stage.proxy.thaw();
    frozen.await.expect("it ends").expect_err("its transaction was ended");
    assert_eq!(a.record("r").await.driver_epoch, 1);
    let renewed = a.store.renew(&a.owner, &claims, lease).await.expect("renewed");
    assert!(renewed.len() == 2 && renewed.iter().all(|one| one.lease == lease), "{renewed:?}");
}
