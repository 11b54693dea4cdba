//! Making instances.

use std::sync::Arc;

use super::Subject;
use super::bench::Bench;

pub(super) async fn repeating_is_harmless(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("echo kept > file; echo hi").await;
    bench.read_to_end(0, 4096).await;
    bench.provider.create(&bench.instance, None).await.expect("create again");
    assert!(bench.provider.exists(&bench.instance).await.expect("exists"));
    assert_eq!(std::fs::read_to_string(bench.workspace().join("file")).expect("file"), "kept\n");
    assert_eq!(bench.read_to_end(0, 4096).await.0, b"hi\n");
}

pub(super) async fn an_unknown_instance_does_not_exist(subject: Arc<dyn Subject>) {
    let instance = subject.ports().entropy.instance_id();
    assert!(!subject.provider().exists(&instance).await.expect("exists"));
}
