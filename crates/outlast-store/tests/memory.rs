//! The in-memory store tells whoever uses it that it keeps nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_store::{MemoryStore, Ports};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// How many warnings there were that runs are lost.
static WARNED: AtomicUsize = AtomicUsize::new(0);

struct Warnings;

struct Message(bool);

impl Visit for Message {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        self.0 |= format!("{value:?}").contains("lost when this process ends");
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(false);
        event.record(&mut message);
        if message.0 {
            WARNED.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn says_once_that_runs_die_with_the_process() {
    tracing::subscriber::set_global_default(Warnings).expect("the only one");
    MemoryStore::for_tests(Ports::system());
    assert_eq!(WARNED.load(Ordering::SeqCst), 0, "a test knows it");
    for _ in 0..3 {
        MemoryStore::new(Ports::system());
        assert_eq!(WARNED.load(Ordering::SeqCst), 1, "said once");
    }
}
