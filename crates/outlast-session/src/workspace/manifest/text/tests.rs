use proptest::prelude::*;

use super::*;
use crate::workspace::{MAX_CHUNK_BYTES, MAX_ENTRIES, MAX_PATH_BYTES, MAX_TOTAL_BYTES, Manifest};

fn digest(n: u8) -> String {
    Digest::from([n; 32]).hex()
}

fn fault(body: &str) -> Option<ManifestFault> {
    let text = format!("{HEADER}\n{body}");
    match Manifest::decode(text.as_bytes()) {
        Ok(manifest) => {
            assert_eq!(manifest.encode(), text.as_bytes());
            None
        }
        Err(error) => Some(error.fault),
    }
}

#[test]
fn the_format_is_pinned() {
    let d = digest(0xab);
    let text = format!(
        "{HEADER}\nd 755 a\nf 644 0 a-b\nf 600 3 a/b {d}\nd 000 a/c\nl a/l ../%20x\nf 755 5000000 z%FFé {d} {d}\n"
    );
    let manifest = Manifest::decode(text.as_bytes()).expect("a manifest");
    assert_eq!(manifest.encode(), text.as_bytes());
    assert_eq!(manifest.entries().len(), 6);
    assert_eq!(
        Manifest::decode(HEADER.as_bytes()).unwrap_err().fault,
        ManifestFault::Header,
        "without the line's end"
    );
    let empty = Manifest::decode(format!("{HEADER}\n").as_bytes()).expect("an empty one");
    assert_eq!(
        empty.reference().to_string(),
        "v1:sha256:bc8d4fe7c3eeb1d1e2f484b6afcefad8dd84ef124448f779fce1f52ff5a4977d",
        "names that are stored depend on it"
    );
}

#[test]
fn hostile_ones_are_refused() {
    use ManifestFault::*;
    let d = digest(1);
    let long = "x/".repeat(MAX_PATH_BYTES / 2);
    let cap = MAX_CHUNK_BYTES;
    for (body, expected) in [
        ("d 755 ../x\n".to_owned(), Some(Path)),
        ("d 755 ..\n".to_owned(), Some(Path)),
        ("d 755 .\n".to_owned(), Some(Path)),
        ("d 755 a\nd 755 a/..\n".to_owned(), Some(Path)),
        ("d 755 a\nd 755 a/./b\n".to_owned(), Some(Path)),
        ("d 755 a\nd 755 a//b\n".to_owned(), Some(Path)),
        ("d 755 a/\n".to_owned(), Some(Path)),
        ("d 755 /etc\n".to_owned(), Some(Path)),
        ("d 755 \n".to_owned(), Some(Path)),
        ("d 755 a%00b\n".to_owned(), Some(Path)),
        (format!("d 755 {}\n", &long[..MAX_PATH_BYTES - 1]), Some(Parent)),
        (format!("d 755 {long}x\n"), Some(PathTooLong)),
        ("d 755 b\nd 755 a\n".to_owned(), Some(Order)),
        ("d 755 a\nd 755 a\n".to_owned(), Some(Order)),
        ("d 755 a\nf 644 0 a\n".to_owned(), Some(Order)),
        ("f 644 0 a/b\n".to_owned(), Some(Parent)),
        ("f 644 0 a\nf 644 0 a/b\n".to_owned(), Some(Parent)),
        ("l a /etc\nf 644 0 a/passwd\n".to_owned(), Some(Parent)),
        ("d 755 a\nl a/b .\nd 755 a/b/c\n".to_owned(), Some(Parent)),
        ("d 1777 a\n".to_owned(), Some(Mode)),
        (format!("f 4755 1 a {d}\n"), Some(Mode)),
        ("d 75 a\n".to_owned(), Some(Line)),
        ("d 0755 a\n".to_owned(), Some(Line)),
        ("d +75 a\n".to_owned(), Some(Line)),
        ("d 758 a\n".to_owned(), Some(Line)),
        ("f 644 1 a\n".to_owned(), Some(Chunks)),
        (format!("f 644 0 a {d}\n"), Some(Chunks)),
        (format!("f 644 1 a {d} {d}\n"), Some(Chunks)),
        (format!("f 644 2 a {d} {d}\n"), None),
        (format!("f 644 {cap} a {d}\n"), None),
        (format!("f 644 {} a {d}\n", cap + 1), Some(Chunks)),
        (format!("f 644 {} a {d}\n", u64::MAX), Some(Chunks)),
        (format!("f 644 18446744073709551616 a {d}\n"), Some(Line)),
        (format!("f 644 01 a {d}\n"), Some(Line)),
        (format!("f 644 -1 a {d}\n"), Some(Line)),
        (format!("f 644 1 a {}\n", d.to_uppercase().replace('0', "A")), Some(Line)),
        (format!("f 644 1 a {}\n", &d[1..]), Some(Line)),
        (format!("f 644 1 a  {d}\n"), Some(Line)),
        (format!("f 644 1 a {d} \n"), Some(Line)),
        (format!("f 644 1 a {d}\r\n"), Some(Line)),
        ("l a \n".to_owned(), Some(Target)),
        ("l a\n".to_owned(), Some(Line)),
        ("l a x%00\n".to_owned(), Some(Target)),
        (format!("l a {}\n", "x".repeat(4096)), Some(Target)),
        ("l a b c\n".to_owned(), Some(Line)),
        ("d 755 a".to_owned(), Some(Line)),
        ("\n".to_owned(), Some(Line)),
        ("p 755 a\n".to_owned(), Some(Line)),
        ("d 755 %41\n".to_owned(), Some(Line)),
        ("d 755 a\u{7}\n".to_owned(), Some(Line)),
        ("d 755 a extra\n".to_owned(), Some(Line)),
    ] {
        assert_eq!(fault(&body), expected, "{body:?}");
    }
    assert_eq!(Manifest::decode(b"outlast-workspace 2\n").unwrap_err().fault, Header);
    assert_eq!(Manifest::decode(b"").unwrap_err().fault, Header);
    assert_eq!(Manifest::decode(b"\xff").unwrap_err().fault, Line);
}

#[test]
fn bounds() {
    let body: String = (0..=MAX_ENTRIES).map(|n| format!("d 755 {n:07}\n")).collect();
    assert_eq!(fault(&body), Some(ManifestFault::TooManyEntries));
    // As much as the chunks allow.
    let count = usize::try_from(MAX_TOTAL_BYTES).expect("fits") / MAX_CHUNK_BYTES;
    let file = |path: &str, size, count| Entry {
        path: path.into(),
        kind: EntryKind::File { mode: 0, size, chunks: vec![Digest::of(b"x"); count] },
    };
    let largest = file("a", MAX_TOTAL_BYTES, count);
    assert!(Manifest::new(vec![largest.clone()]).is_ok());
    let more = Manifest::new(vec![largest, file("b", 1, 1)]).expect_err("too much");
    assert_eq!(more.fault, ManifestFault::TooManyBytes);
}

pub(super) fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let name = proptest::collection::vec(any::<u8>(), 1..5)
        .prop_filter("a name", |n| !n.contains(&0) && !n.contains(&b'/') && n != b"." && n != b"..");
    let kind = prop_oneof![
        (0u16..=0o777).prop_map(|mode| EntryKind::Directory { mode }),
        (0u16..=0o777, 0u64..9_000_000).prop_map(|(mode, size)| {
            let count = size.div_ceil(MAX_CHUNK_BYTES as u64);
            EntryKind::File { mode, size, chunks: (0..count).map(|n| Digest::of(&n.to_le_bytes())).collect() }
        }),
        proptest::collection::vec(1u8.., 1..6).prop_map(|target| EntryKind::Symlink { target }),
    ];
    proptest::collection::vec((name, kind, any::<proptest::sample::Index>()), 0..20).prop_map(|parts| {
        let mut found: std::collections::BTreeMap<Vec<u8>, EntryKind> = Default::default();
        let mut directories = vec![Vec::new()];
        for (name, kind, at) in parts {
            let parent: &Vec<u8> = &directories[at.index(directories.len())];
            let path = if parent.is_empty() { name } else { [parent, &b"/"[..], &name].concat() };
            if found.contains_key(&path) {
                continue;
            }
            if matches!(kind, EntryKind::Directory { .. }) {
                directories.push(path.clone());
            }
            found.insert(path, kind);
        }
        found.into_iter().map(|(path, kind)| Entry { path, kind }).collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in entries()) {
        let mut shuffled = entries.clone();
        shuffled.reverse();
        let manifest = Manifest::new(shuffled).expect("well-formed");
        prop_assert_eq!(manifest.entries(), &entries[..]);
        let bytes = manifest.encode();
        prop_assert_eq!(&Manifest::decode(&bytes).expect("canonical"), &manifest);
    }

    #[test]
    fn damage_is_refused_or_canonical(entries in entries(), at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = encode(&entries);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(manifest) = Manifest::decode(&bytes) {
            prop_assert_eq!(manifest.encode(), bytes);
        }
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::decode(&bytes);
        let _ = Manifest::decode(&[b"outlast-workspace 1\n", &bytes[..]].concat());
    }
}
