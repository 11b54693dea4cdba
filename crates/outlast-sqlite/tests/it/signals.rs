//! Who is woken by what.

use std::time::Duration;

use outlast_core::RunId;

use super::support::host;

/// Commits of another process wake those who watch here, soon, by way of the write-ahead log.
#[tokio::test(flavor = "multi_thread")]
async fn commits_of_other_processes_wake() {
    let dir = tempfile::tempdir().unwrap();
    let (here, other) = (host(dir.path(), "here"), host(dir.path(), "other"));
    let token = other.accept("r", "t").await.token;
    let mut signal = here.store.subscribe(&RunId::new("r").unwrap());
    for tail in 1..20 {
        let wait = async {
            while here.log("r").await.len() as u64 <= tail {
                signal.changed().await;
            }
        };
        let (appended, woken) = tokio::join!(
            other.append(&token, tail, &["x"]),
            tokio::time::timeout(Duration::from_secs(10), wait)
        );
        appended.unwrap();
        woken.expect("woken");
    }
}

/// Commits of this process wake only those who watch their run.
#[tokio::test(flavor = "multi_thread")]
async fn own_commits_do_not_wake_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    host.accept("quiet", "t1").await;
    let token = host.accept("busy", "t2").await.token;
    let mut quiet = host.store.subscribe(&RunId::new("quiet").unwrap());
    let writing = async {
        for tail in 1..500 {
            host.append(&token, tail, &["x"]).await.unwrap();
        }
    };
    let mut woken = 0;
    tokio::pin!(writing);
    loop {
        tokio::select! {
            biased;
            () = &mut writing => break,
            () = quiet.changed() => woken += 1,
        }
    }
    assert!(woken <= 5, "woken {woken} times by 499 commits of another run");
}
