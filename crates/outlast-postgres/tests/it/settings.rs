//! A server whose own settings are not those that a store needs.

use std::time::Duration;

use outlast_store::AppendError;

use crate::support::{Cluster, RowLock, host, numbered};

/// What a connection is told wins over the server's defaults, so that whoever loses a race is told so.
#[tokio::test(flavor = "multi_thread")]
async fn of_isolation_and_of_time_do_not_matter() {
    let cluster = Cluster::start();
    cluster.set("default_transaction_isolation = 'serializable'\nstatement_timeout = 200\nlock_timeout = 1");
    cluster.restart();
    let a = host(&cluster.url(), "a").await;
    let token = a.accept("r", "r").await.token;
    for tail in 1..20 {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let (a, append) = (a.clone(), numbered(&token, tail));
                tokio::spawn(async move { a.store.append(append).await })
            })
            .collect();
        let mut written = 0;
        for writer in writers {
            match writer.await.expect("it ends") {
                Ok(_) => written += 1,
                Err(AppendError::TailMoved { .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(written, 1);
    }
    let lock = RowLock::of(&cluster.url(), "r").await;
    let waiting = tokio::spawn({
        let (a, append) = (a.clone(), numbered(&token, 20));
        async move { a.store.append(append).await }
    });
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!waiting.is_finished(), "it waits for longer than the server's own settings allow");
    lock.release().await;
    waiting.await.expect("it ends").expect("written");
}
