//! What comes from outside (envelopes, manifests, exported files), mutated from valid samples for a bounded time: it is
//! refused or read, and what is read means the same when it is written again. Longer by hand: `OUTLAST_FUZZ_SECONDS=600`.

use std::io::Cursor;

use outlast_core::ledger::{Envelope, Record, SessionStopped, StopReason, message_id};
use outlast_core::transcript::{Message, Role};
use outlast_core::{RunId, WorkspaceRef};
use outlast_session::transfer::FileReader;
use outlast_session::workspace::{Digest, Entry, EntryKind, Manifest};
use outlast_store::{Clock, SystemClock};

/// Chance from a seed (xorshift64*).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).expect("small")
    }
}

/// Pieces that decoders look for.
const WORDS: &[&str] = &[
    "\"",
    "\\",
    "{",
    "}",
    "[",
    ",",
    ":",
    "\n",
    "\r\n",
    " ",
    "\0",
    "../",
    "/",
    ".",
    "0",
    "-1",
    "18446744073709551616",
    "1e999",
    "null",
    "true",
    "\"v\":1",
    "\"v\":2",
    "\"kind\":",
    "\"sum\":",
    "\"body\":",
    "\\ud800",
    "\u{1F980}",
    "d 755 ",
    "f 644 ",
    "l ",
    "\\xff",
    "sha256",
    "outlast",
];

/// The sample, changed in one to four places.
fn mutate(sample: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] = chance.next().to_le_bytes()[0],
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 => bytes.truncate(at),
            3 => {
                let end = (at + chance.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + chance.below(200)).min(bytes.len());
                let copied = bytes[at..end].to_vec();
                let to = chance.below(bytes.len() + 1);
                bytes.splice(to..to, copied);
            }
            _ => {
                let word = WORDS[chance.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
        }
    }
    bytes
}

/// Feeds mutations of the samples until the time is over.
fn fuzz(name: &str, samples: &[Vec<u8>], target: impl Fn(&[u8]) -> bool) {
    let seconds = std::env::var("OUTLAST_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let clock = SystemClock::new();
    let seed = clock.wall_ms() | 1;
    let mut chance = Chance(seed);
    let until = clock.boot_ms() + seconds * 1000;
    for sample in samples {
        assert!(target(sample), "{name}: the samples themselves are read");
    }
    let (mut tried, mut read) = (0_u64, 0_u64);
    while clock.boot_ms() < until || tried < 1000 {
        let bytes = mutate(&samples[chance.below(samples.len())], &mut chance);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&bytes)));
        read += u64::from(done.unwrap_or_else(|_| {
            panic!("{name}, seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
        }));
        tried += 1;
    }
    // Something of both kinds came, or it was not worth much.
    assert!(read > 0 && read < tried, "{name}: {read} of {tried} were read");
}

fn records() -> Vec<(String, Record)> {
    let run_id = RunId::new("r/1").expect("id");
    let message = Message::text("m", Role::Tool, "text \u{0} \u{1F980} \" \\ \n");
    vec![
        (message_id(&run_id, -1), Record::Message { run_id, ordinal: -1, message }),
        ("s".to_owned(), Record::SessionStopped(SessionStopped { reason: StopReason::Idle })),
        ("b".to_owned(), Record::Barrier { epoch: u64::MAX }),
    ]
}

#[test]
fn envelopes() {
    let samples: Vec<Vec<u8>> = records()
        .iter()
        .flat_map(|(id, record)| [None, Some("salt".to_owned())].map(|salt| record.envelope(id, salt)))
        .map(|envelope| envelope.encode().into_bytes())
        .collect();
    fuzz("envelopes", &samples, |bytes| {
        let Ok(envelope) = Envelope::decode(bytes) else { return false };
        let again =
            Envelope::decode(envelope.encode().as_bytes()).expect("what was read is written and read");
        assert_eq!((again.sum(), &again.id), (envelope.sum(), &envelope.id));
        let _ = Record::decode(&envelope.kind, envelope.skip, &envelope.id, envelope.body.get());
        true
    });
}

#[test]
fn manifests() {
    let file = |path: &[u8], size: u64| Entry {
        path: path.to_vec(),
        kind: EntryKind::File { mode: 0o644, size, chunks: vec![Digest::of(path); usize::from(size > 0)] },
    };
    let entries = vec![
        file(b"a", 5),
        Entry { path: b"d".to_vec(), kind: EntryKind::Directory { mode: 0o755 } },
        file(b"d/\xff \n", 0),
        Entry { path: b"d/l".to_vec(), kind: EntryKind::Symlink { target: b"../../etc/passwd".to_vec() } },
    ];
    let whole = Manifest::new(entries).expect("a manifest").encode();
    let empty = Manifest::new(Vec::new()).expect("a manifest").encode();
    fuzz("manifests", &[whole, empty], |bytes| {
        let Ok(manifest) = Manifest::decode(bytes) else { return false };
        assert_eq!(manifest.encode(), bytes, "one text for one tree");
        for entry in manifest.entries() {
            let path = &entry.path;
            let harmless = !path.starts_with(b"/")
                && !path
                    .split(|byte| *byte == b'/')
                    .any(|name| name.is_empty() || name == b"." || name == b"..");
            assert!(harmless, "{path:?}");
        }
        let _: WorkspaceRef = manifest.reference();
        true
    });
}

#[test]
fn exported_files() {
    let header = concat!(
        r#"{"outlast":"session","version":1,"sessionId":"5661ca72-6bf4-5519-8ea0-43353f7591d0","#,
        r#""threadId":"t","exportedAt":1}"#,
        "\n"
    );
    let mut text = header.to_owned();
    for (seq, (id, record)) in (1..).zip(records()) {
        text.push_str(&format!(
            "{{\"seq\":{seq},\"at\":5,\"record\":{}}}\n",
            record.envelope(&id, None).encode()
        ));
    }
    use sha2::Digest as _;
    let digest = outlast_core::hex::encode(&sha2::Sha256::digest(text.as_bytes()));
    text.push_str(&format!("{{\"records\":3,\"incomplete\":0,\"sha256\":\"{digest}\"}}\n"));
    let whole = text.into_bytes();
    fuzz("exported files", std::slice::from_ref(&whole), |bytes| {
        let Ok((_, reader)) = FileReader::open(Cursor::new(bytes)) else { return false };
        let Ok(trailer) = reader.check() else { return false };
        assert_eq!(trailer.records, 3, "nothing is left out unnoticed");
        // Only what comes after the digest may have changed.
        let end = whole.len() - 140;
        assert_eq!(bytes.get(..end), Some(&whole[..end]));
        true
    });
}
