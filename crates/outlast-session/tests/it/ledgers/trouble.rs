//! What was done, in order, and what is to go wrong.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use outlast_store::StoredRecord;

type Deed = Box<dyn Fn() + Send>;
type Alter = Box<dyn Fn(&mut StoredRecord) + Send>;

/// Shared by the store and the object storage of a world.
#[derive(Default)]
pub struct Trouble {
    done: Mutex<Vec<String>>,
    /// The one after so many operations fails; negative: none.
    left: AtomicI64,
    /// Every operation that begins so fails.
    failing: Mutex<Option<String>>,
    /// What happens when an operation begins so, once.
    when: Mutex<Option<(String, Deed)>>,
    /// What becomes of each record that is read.
    alter: Mutex<Option<Alter>>,
    /// When objects were written, in the words of the storage.
    pub modified: Mutex<BTreeMap<String, u64>>,
}

impl std::fmt::Debug for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trouble").finish_non_exhaustive()
    }
}

impl Trouble {
    pub fn fail_after(&self, operations: i64) {
        self.left.store(operations + 1, Ordering::SeqCst);
    }

    pub fn fail_on(&self, what: &str) {
        *self.failing.lock().unwrap() = Some(what.to_owned());
    }

    pub fn when(&self, what: &str, deed: impl Fn() + Send + 'static) {
        *self.when.lock().unwrap() = Some((what.to_owned(), Box::new(deed)));
    }

    pub fn alter_records(&self, alter: impl Fn(&mut StoredRecord) + Send + 'static) {
        *self.alter.lock().unwrap() = Some(Box::new(alter));
    }

    pub fn heal(&self) {
        self.left.store(0, Ordering::SeqCst);
        *self.failing.lock().unwrap() = None;
        *self.alter.lock().unwrap() = None;
    }

    /// What was done since the last time that this was asked.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.done.lock().unwrap())
    }

    /// Whether the operation may be carried out.
    pub fn goes(&self, what: &str) -> bool {
        self.done.lock().unwrap().push(what.to_owned());
        let deed = self.when.lock().unwrap().take_if(|(when, _)| what.starts_with(when.as_str()));
        if let Some((_, deed)) = deed {
            deed();
        }
        let failing = self.failing.lock().unwrap().as_ref().is_some_and(|failing| what.starts_with(failing));
        let before = self.left.fetch_sub(1, Ordering::SeqCst);
        before != 1 && !failing
    }

    pub fn alter(&self, record: &mut StoredRecord) {
        if let Some(alter) = &*self.alter.lock().unwrap() {
            alter(record);
        }
    }
}
