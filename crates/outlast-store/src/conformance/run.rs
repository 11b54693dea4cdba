//! Runs one case.

use std::future::Future;
use std::time::Duration;

use super::{Backend, World};

/// No case takes this long unless something hangs.
const AT_MOST: Duration = Duration::from_secs(120);

/// Runs a case on a fresh backend, with threads of its own, and fails it where it hangs.
#[allow(clippy::disallowed_methods, reason = "a test that hangs is stopped on the real clock")]
pub fn run_case<B, M, C, F>(backend: M, case: C)
where
    B: Backend + 'static,
    M: Future<Output = B>,
    C: FnOnce(World) -> F,
    F: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let world = World::new(Box::new(backend.await));
        tokio::time::timeout(AT_MOST, Box::pin(case(world))).await.expect("the case hangs");
    });
}
