//! Several things at once, and not too many.

use std::future::Future;

use tokio::task::JoinSet;

/// Does the work of every item, so many at a time, and answers in the order of the items; none for one that panicked.
/// Dropped, it drops what is under way.
pub(crate) async fn side_by_side<I, T, F>(
    items: impl IntoIterator<Item = I>,
    at_once: usize,
    work: impl Fn(I) -> F,
) -> Vec<Option<T>>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut answers: Vec<Option<T>> = Vec::new();
    let mut running = JoinSet::new();
    let put = |answers: &mut Vec<Option<T>>, done: Result<(usize, T), tokio::task::JoinError>| match done {
        Ok((at, answer)) => answers[at] = Some(answer),
        Err(error) => tracing::error!(%error, "a task has panicked"),
    };
    for item in items {
        while running.len() >= at_once.max(1) {
            if let Some(done) = running.join_next().await {
                put(&mut answers, done);
            }
        }
        let at = answers.len();
        answers.push(None);
        let work = work(item);
        running.spawn(async move { (at, work.await) });
    }
    while let Some(done) = running.join_next().await {
        put(&mut answers, done);
    }
    answers
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn in_order_not_too_many_and_never_as_a_whole() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let answers = side_by_side(0..20, 3, |n| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..(20 - n) {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                assert_ne!(n, 7, "this one panics");
                n
            }
        })
        .await;
        let expected: Vec<Option<i32>> = (0..20).map(|n| (n != 7).then_some(n)).collect();
        assert_eq!(answers, expected);
        assert!(most.load(Ordering::SeqCst) <= 3);
    }
}
