//! One job.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use outlast_store::Ports;

use super::Jobs;

/// Does the work at once and then every so often, for ever. Work that fails, or panics, is done again all the same.
pub(super) async fn every<F>(
    ports: Ports,
    jobs: Jobs,
    name: &'static str,
    interval: Duration,
    work: impl Fn() -> F,
) where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let clock = Arc::clone(&ports.clock);
    jobs.add(name, interval, clock.boot_ms());
    loop {
        let began = clock.boot_ms();
        // A task of its own, so that what panics does not end the job. It is dropped with this one.
        let mut task = tokio::task::JoinSet::new();
        task.spawn(work());
        let failed = match task.join_next().await {
            Some(Ok(Ok(()))) => None,
            Some(Ok(Err(why))) => Some(why),
            Some(Err(error)) => Some(format!("it has panicked: {error}")),
            None => None,
        };
        let now = clock.boot_ms();
        jobs.done(name, now, Duration::from_millis(now - began), failed.is_none());
        if let Some(why) = failed {
            tracing::error!(job = name, why, again_in = ?interval, "a job has failed");
        }
        clock.sleep(jittered(interval, ports.entropy.bytes()[0])).await;
    }
}

/// The interval, give or take a tenth.
fn jittered(interval: Duration, random: u8) -> Duration {
    interval.mul_f64(0.9 + 0.2 * f64::from(random) / 255.0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn give_or_take_a_tenth() {
        let interval = Duration::from_secs(100);
        assert_eq!(jittered(interval, 0), Duration::from_secs(90));
        assert_eq!(jittered(interval, 255), Duration::from_secs(110));
    }

    #[tokio::test]
    async fn a_job_that_fails_or_panics_is_done_again() {
        let (jobs, count) = (Jobs::default(), Arc::new(AtomicU32::new(0)));
        let work = {
            let count = Arc::clone(&count);
            move || {
                let n = count.fetch_add(1, Ordering::SeqCst);
                async move {
                    match n {
                        0 => Err("no".to_owned()),
                        1 => panic!("worse"),
                        _ => Ok(()),
                    }
                }
            }
        };
        let job = every(Ports::system(), jobs.clone(), "test", Duration::from_millis(5), work);
        let three = async {
            while jobs.all().first().is_none_or(|status| status.succeeded == 0) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = job => unreachable!("it goes on for ever"),
            () = three => {}
        }
        let status = &jobs.all()[0];
        assert_eq!((status.failed, status.succeeded), (2, 1));
    }
}
