//! Reading a journal while it grows.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::ExitSecret;
use outlast_core::journal::exit::ExitRecord;
use outlast_core::journal::files;
use outlast_shim::lock;
use outlast_store::Clock;

use super::errors::Attempting;
use super::watch::Watch;
use crate::{Journal, JournalRead, ProviderError};

/// Between two looks where there is no watch: short after a change, since output comes in bursts.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LAST_LOOK: Duration = Duration::from_millis(50);
/// Between two looks where there is one: some file systems do not tell everything.
const DOUBT: Duration = Duration::from_secs(1);
/// How long after the closing of a file its lock may still seem held: the kernel tells first and unlocks then.
const UNLOCK_PATIENCE: Duration = Duration::from_secs(1);

/// A journal in a local file.
#[derive(Debug)]
pub(super) struct LocalJournal {
    clock: Arc<dyn Clock>,
    secret: ExitSecret,
    watch: Option<Watch>,
    journal: Lazy,
    exit: Lazy,
    lock: PathBuf,
    position: u64,
    known_exit: Option<ExitRecord>,
}

/// A file that may not exist yet. It is never made by looking for it.
#[derive(Debug)]
struct Lazy {
    path: PathBuf,
    file: Option<File>,
}

impl Lazy {
    fn get(&mut self) -> io::Result<Option<&File>> {
        self.get_if(|_| Ok(true))
    }

    /// The same, where a file that is opened counts only if this holds.
    fn get_if(&mut self, counts: impl FnOnce(&File) -> io::Result<bool>) -> io::Result<Option<&File>> {
        if self.file.is_none() {
            match File::options().read(true).custom_flags(libc_flags()).open(&self.path) {
                Ok(file) => self.file = counts(&file)?.then_some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.file.as_ref())
    }
}

/// Shares the lock that keeps the journal, and with it the run's other files, from being deleted while it is read. A
/// journal that is being deleted at this moment, or was since it was opened, is none any more. Where the file system knows
/// no such locks nothing is ever deleted.
fn share(journal: &File) -> io::Result<bool> {
    let held = matches!(lock::try_share(journal), Ok(lock::Attempt::Held));
    Ok(!held && journal.metadata()?.nlink() > 0)
}

/// Links are not followed, and nothing that an agent could put there makes the open wait.
fn libc_flags() -> i32 {
    (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32
}

impl LocalJournal {
    /// Opens the journal at a byte.
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        runs: &Path,
        enc: &str,
        secret: ExitSecret,
        position: u64,
        watch: Option<Watch>,
    ) -> Self {
        let lazy = |suffix| Lazy { path: runs.join(format!("{enc}{suffix}")), file: None };
        let mut journal = LocalJournal {
            clock,
            secret,
            watch,
            journal: lazy(files::JOURNAL),
            exit: lazy(files::EXIT),
            lock: runs.join(format!("{enc}{}", files::LOCK)),
            position,
            known_exit: None,
        };
        // From the opening on, nobody deletes it. What is wrong with it the first read will say.
        let _ = journal.journal.get_if(share);
        journal
    }

    fn read_now(&mut self, max: usize) -> Result<JournalRead, ProviderError> {
        let (bytes, size) = self.read_bytes(max).attempting(|| "cannot read the journal".to_owned())?;
        // After the bytes: the shim writes the exit before the sentinel, so bytes that hold any of the sentinel never
        // come without it.
        self.read_exit().attempting(|| "cannot read the run's exit".to_owned())?;
        Ok(JournalRead { bytes, size, exit: self.known_exit.clone(), missing: self.journal.file.is_none() })
    }

    fn read_bytes(&mut self, max: usize) -> io::Result<(Vec<u8>, u64)> {
        let position = self.position;
        let Some(file) = self.journal.get_if(share)? else {
            return Ok((Vec::new(), 0));
        };
        // No more than is there: most reads are of a few lines.
        let size = file.metadata()?.len();
        let there = usize::try_from(size.saturating_sub(position)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; there.min(max)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        self.position += filled as u64;
        Ok((bytes, size))
    }

    fn read_exit(&mut self) -> io::Result<()> {
        if self.known_exit.is_some() {
            return Ok(());
        }
        let mut bytes = [0; files::EXIT_BYTES];
        let Some(file) = self.exit.get()? else {
            return Ok(());
        };
        let read = file.read_at(&mut bytes, 0)?;
        self.known_exit = ExitRecord::parse(&bytes[..read], &self.secret);
        Ok(())
    }
}

#[async_trait]
impl Journal for LocalJournal {
    async fn read(&mut self, max: usize, patience: Duration) -> Result<JournalRead, ProviderError> {
        // A journal that always has something to say must not keep other tasks from running.
        tokio::task::consume_budget().await;
        let patience = outlast_core::duration::millis(patience);
        let deadline = self.clock.boot_ms().saturating_add(patience);
        let mut look = FIRST_LOOK;
        // Until when a shim that seems to have closed its files is given time to be dead.
        let mut turned: Option<u64> = None;
        loop {
            let free = turned.is_some() && !lock::is_held(&self.lock).unwrap_or(true);
            let found = self.read_now(max)?;
            let now = self.clock.boot_ms();
            let left = Duration::from_millis(deadline.saturating_sub(now));
            let over = free || turned.is_some_and(|until| now >= until) || left.is_zero();
            if !found.bytes.is_empty() || found.exit.is_some() || over {
                return Ok(found);
            }
            match self.watch.as_ref().filter(|_| turned.is_none()) {
                Some(watch) => tokio::select! {
                    biased;
                    change = watch.changed() => {
                        turned = change.then(|| now.saturating_add(UNLOCK_PATIENCE.as_millis() as u64));
                    }
                    () = self.clock.sleep(left.min(DOUBT)) => {}
                },
                None => {
                    self.clock.sleep(left.min(look)).await;
                    look = (look * 2).min(LAST_LOOK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use outlast_store::SystemClock;

    use super::*;
    use crate::local::watch::Watches;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(future)
    }

    async fn follows(runs: &Path, watch: Option<Watch>) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let secret = ExitSecret::from_bytes([1; 16]);
        let mut journal = LocalJournal::new(Arc::clone(&clock), runs, "r.1", secret.clone(), 0, watch);
        let path = runs.join("r.1.ndjson");
        let write = || File::options().create(true).append(true).open(&path).expect("open").write_all(b"x\n");
        for _ in 0..20 {
            let (read, ()) = tokio::join!(journal.read(4096, Duration::from_secs(60)), async {
                clock.sleep(Duration::from_millis(5)).await;
                write().expect("write");
            });
            assert_eq!(read.expect("read").bytes, b"x\n");
        }
        let exit = ExitRecord { exit: 1, signal: None, stdout_bytes: 40, nonce: secret, cause: None };
        let (read, ()) = tokio::join!(journal.read(4096, Duration::from_secs(60)), async {
            clock.sleep(Duration::from_millis(5)).await;
            std::fs::write(runs.join("r.1.exit"), serde_json::to_vec(&exit).expect("json")).expect("exit");
        });
        assert_eq!(read.expect("read").exit, Some(exit));
    }

    #[test]
    fn a_journal_is_followed_with_and_without_a_watch() {
        for watched in [true, false] {
            let dir = tempfile::tempdir().expect("dir");
            let watches = Watches::default();
            block_on(async {
                let watch = watches.watch(dir.path(), "r.1").filter(|_| watched);
                assert_eq!(watch.is_some(), watched);
                follows(dir.path(), watch).await;
            });
        }
    }

    #[test]
    fn watches_outlive_the_runtime_that_began_them() {
        let dir = tempfile::tempdir().expect("dir");
        let watches = Watches::default();
        block_on(async { drop(watches.watch(dir.path(), "r.1").expect("a watch")) });
        let begun = std::cell::Cell::new(0);
        block_on(async {
            let watch = watches.watch(dir.path(), "r.1");
            let clock = SystemClock::new();
            begun.set(clock.boot_ms());
            follows(dir.path(), watch).await;
            let took = clock.boot_ms() - begun.get();
            assert!(took < 10_000, "woken by looking only: {took} ms");
        });
    }

    #[test]
    fn neighbours_are_not_woken() {
        let dir = tempfile::tempdir().expect("dir");
        let watches = Watches::default();
        block_on(async {
            let (mine, other) = (watches.watch(dir.path(), "r"), watches.watch(dir.path(), "r.1"));
            let (mine, other) = (mine.expect("a watch"), other.expect("a watch"));
            std::fs::write(dir.path().join("r.1.ndjson"), "x").expect("write");
            std::fs::write(dir.path().join("r.err"), "x").expect("write");
            other.changed().await;
            tokio::select! {
                biased;
                _ = mine.changed() => panic!("woken by a neighbour"),
                () = async { for _ in 0..100 { tokio::task::yield_now().await } } => {}
            }
        });
    }

    /// Opened in the middle of a deletion, it is missing, and not a part of itself.
    #[test]
    fn what_is_being_deleted_is_missing() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("r.ndjson");
        std::fs::write(&path, "x\n").expect("journal");
        let deleter = File::options().write(true).open(&path).expect("open");
        assert_eq!(lock::try_take(&deleter).expect("lock"), lock::Attempt::Taken);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let secret = ExitSecret::from_bytes([1; 16]);
        let mut journal = LocalJournal::new(clock, dir.path(), "r", secret, 0, None);
        let read = journal.read_now(100).expect("read");
        assert!(read.missing && read.bytes.is_empty(), "{read:?}");
        // Opened before the name went, and locked after the deleter had left.
        let opened = File::open(&path).expect("open");
        std::fs::remove_file(&path).expect("deleted");
        drop(deleter);
        assert!(!share(&opened).expect("share"));
        // A deleter that went away without deleting.
        std::fs::write(&path, "x\n").expect("journal");
        let read = journal.read_now(100).expect("read");
        assert!(!read.missing && read.bytes == b"x\n", "{read:?}");
        assert!(lock::is_held(&path).expect("held"), "from now on nobody deletes it");
    }
}
