//! Identities that are made rather than given: content hashes and stable event ids.

use sha2::{Digest, Sha256};

/// The SHA-256 of a payload's text, in lower-case hex. Names the payload in R2 and tells whether a repeated event brought
/// the same one.
pub fn payload_hash(payload: &str) -> String {
    content_hash(payload.as_bytes())
}

/// The SHA-256 of any bytes, in lower-case hex.
pub fn content_hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The id of an event that its sender gave none, or that the platform itself makes: `evt_` and the parts' stable hash. A
/// step that runs again makes the same id.
pub fn stable_event_id<P: AsRef<[u8]>>(parts: &[P]) -> String {
    format!("evt_{}", stable_hash(parts))
}

/// 16 bytes of SHA-256 over the parts, in hex.
///
/// Each part is hashed with its length in front, so `["ab", "c"]` and `["a", "bc"]` differ.
pub fn stable_hash<P: AsRef<[u8]>>(parts: &[P]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let (half, _) = digest.split_at(16);
    hex::encode(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stable_id_depends_on_every_part_and_on_where_parts_end() {
        let id = stable_event_id(&["stripe", "acme", "{}"]);
        assert_eq!(id, stable_event_id(&["stripe", "acme", "{}"]));
        assert_eq!(id.len(), 36);
        assert_ne!(stable_event_id(&["ab", "c"]), stable_event_id(&["a", "bc"]));
        assert_ne!(stable_event_id(&["a", ""]), stable_event_id(&["a"]));
    }

    #[test]
    fn a_payload_hash_is_plain_sha256() {
        assert_eq!(payload_hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
