//! No reader slows a writer.

use std::time::Duration;

use crate::support::{Schema, config, host_with, numbered, within};

/// More read than there are connections, and none of them gets an answer.
#[tokio::test(flavor = "multi_thread")]
async fn that_wait_for_their_answers_leave_connections_to_those_who_write() {
    let schema = Schema::new().await;
    let mut few = config(&schema.url, "a");
    few.connections = 4;
    let a = host_with(few).await;
    let token = a.accept("r", "r").await.token;
    let lock = schema.client().await;
    lock.batch_execute("BEGIN; LOCK TABLE specs IN ACCESS EXCLUSIVE MODE").await.expect("locked");
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let a = a.clone();
            tokio::spawn(async move { a.record("r").await.tail })
        })
        .collect();
    for tail in 1..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let append = a.store.append(numbered(&token, tail));
        within(Duration::from_secs(1), "an append", append).await.expect("written");
    }
    lock.batch_execute("COMMIT").await.expect("released");
    for reader in readers {
        assert_eq!(reader.await.expect("it is answered"), 20);
    }
}
