//! Bodies of objects: compressed for the way only. What is checked is what comes out.

use std::io::Read;

use super::MAX_CHUNK_BYTES;

/// Fast, and nearly as small as the slow ones.
const LEVEL: i32 = 1;

/// Why a body is not what it was.
#[derive(Debug, thiserror::Error)]
pub(in crate::workspace) enum BodyError {
    #[error("it cannot be decompressed: {0}")]
    Damaged(std::io::Error),
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
}

/// Compresses a chunk or a manifest.
pub(in crate::workspace) fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

/// The inverse, of a body that may be hostile: never more than `max` bytes.
pub(in crate::workspace) fn decompress(body: &[u8], max: u64) -> Result<Vec<u8>, BodyError> {
    let decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(BodyError::Damaged)?;
    let mut out = Vec::with_capacity(max.min(MAX_CHUNK_BYTES as u64) as usize);
    decoder.take(max.saturating_add(1)).read_to_end(&mut out).map_err(BodyError::Damaged)?;
    if out.len() as u64 > max { Err(BodyError::TooLarge(max)) } else { Ok(out) }
}

/// How large the body of so many bytes may be: what cannot be compressed grows a little.
pub(in crate::workspace) fn max_body_bytes(bytes: u64) -> u64 {
    bytes + (bytes >> 7) + 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let noise: Vec<u8> =
            (0..1000u32).flat_map(|n| *crate::workspace::Digest::of(&n.to_le_bytes()).bytes()).collect();
        for bytes in [&b""[..], b"x", &[7; 100_000], &noise] {
            let body = compress(bytes).expect("compresses");
            assert!(body.len() as u64 <= max_body_bytes(bytes.len() as u64));
            assert_eq!(decompress(&body, bytes.len() as u64).expect("whole"), bytes);
            if !bytes.is_empty() {
                assert!(matches!(decompress(&body, bytes.len() as u64 - 1), Err(BodyError::TooLarge(_))));
                assert!(decompress(&body[..body.len() - 1], 1 << 20).is_err(), "cut short");
            }
        }
        assert!(matches!(decompress(b"not compressed", 100), Err(BodyError::Damaged(_))));
    }
}
