//! A server whose own settings are not those that a store needs.

use outlast_store::AppendError;

use crate::support::{Cluster, host, numbered};

/// What a connection is told wins over the server's defaults, so that whoever loses a race is told so.
#[tokio::test(flavor = "multi_thread")]
async fn of_isolation_and_of_time_do_not_matter() {
    let cluster = Cluster::start();
    cluster.set("default_transaction_isolation = 'serializable'\nstatement_timeout = 1\nlock_timeout = 1");
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
}
