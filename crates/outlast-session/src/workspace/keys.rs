//! Under which keys the objects lie.

use outlast_core::WorkspaceRef;

use super::Digest;

/// Every key begins with this segment.
pub(super) const ROOT: &str = "workspaces";
/// What a collection has put aside lies here.
pub(super) const QUARANTINE: &str = "workspaces/quarantine";

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Chunk,
    Manifest,
}

impl Kind {
    fn segment(self) -> &'static str {
        match self {
            Kind::Chunk => "chunks",
            Kind::Manifest => "manifests",
        }
    }
}

/// An object, wherever it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) digest: Digest,
}

impl Object {
    pub(super) fn chunk(digest: Digest) -> Object {
        Object { kind: Kind::Chunk, digest }
    }

    pub(super) fn manifest(reference: &WorkspaceRef) -> Object {
        Object { kind: Kind::Manifest, digest: Digest::from(*reference.digest()) }
    }

    /// Where it belongs.
    pub(super) fn key(&self) -> String {
        format!("{ROOT}/{}/{}", self.kind.segment(), self.digest.hex())
    }

    /// Where it lies after it was put aside at this time (milliseconds since 1970).
    pub(super) fn quarantine_key(&self, at: u64) -> String {
        format!("{QUARANTINE}/{at:013}/{}/{}", self.kind.segment(), self.digest.hex())
    }
}

/// A key that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) object: Object,
    /// When it was put aside, in milliseconds since 1970; none where it belongs.
    pub(super) aside_since: Option<u64>,
}

/// Reads a key; none for one that this program would not write.
pub(super) fn parse(key: &str) -> Option<Place> {
    let segments: Vec<&str> = key.split('/').collect();
    let (aside_since, kind, digest) = match segments.as_slice() {
        ["workspaces", kind, digest] => (None, kind, digest),
        ["workspaces", "quarantine", at, kind, digest] => {
            let known = at.len() == 13 && at.bytes().all(|b| b.is_ascii_digit());
            (Some(known.then(|| at.parse().ok()).flatten()?), kind, digest)
        }
        _ => return None,
    };
    let kind = match *kind {
        "chunks" => Kind::Chunk,
        "manifests" => Kind::Manifest,
        _ => return None,
    };
    Some(Place { object: Object { kind, digest: Digest::parse(digest)? }, aside_since })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in [Kind::Chunk, Kind::Manifest] {
            let object = Object { kind, digest: Digest::of(b"x") };
            assert_eq!(parse(&object.key()), Some(Place { object, aside_since: None }));
            for at in [0, 1, 1_700_000_000_000, 9_999_999_999_999] {
                let place = Place { object, aside_since: Some(at) };
                assert_eq!(parse(&object.quarantine_key(at)), Some(place), "{at}");
            }
        }
    }

    #[test]
    fn nothing_else_is_understood() {
        let hex = Digest::of(b"x").hex();
        for key in [
            String::new(),
            format!("workspaces/{hex}"),
            format!("workspaces/blobs/{hex}"),
            format!("workspaces/chunks/{hex}/more"),
            format!("workspaces/chunks/{}", &hex[1..]),
            format!("workspaces/chunks/{}", hex.to_uppercase()),
            format!("workspaces/chunks/{hex}.tmp"),
            format!("elsewhere/chunks/{hex}"),
            format!("workspaces/quarantine/chunks/{hex}"),
            format!("workspaces/quarantine/170000000000/chunks/{hex}"),
            format!("workspaces/quarantine/17000000000000/chunks/{hex}"),
            format!("workspaces/quarantine/+170000000000/chunks/{hex}"),
            format!("workspaces/quarantine/1700000000000/blobs/{hex}"),
        ] {
            assert_eq!(parse(&key), None, "{key}");
        }
    }
}
