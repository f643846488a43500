//! Keyed hashes of secrets. The server stores and compares the hashes instead of the secrets.

use std::sync::LazyLock;

use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use subtle::ConstantTimeEq;

const DIGEST_BYTES: usize = 32;

/// The key of the hashes. Each process generates a different key, so that nobody can prepare inputs
/// with similar hashes.
static KEY: LazyLock<hmac::Key> =
    LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, &random_bytes()));

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; DIGEST_BYTES]);

impl Digest {
    /// Returns the hash of several parts. The lengths are hashed too, so that different lists of
    /// parts never have the same input.
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let mut context = hmac::Context::with_key(&KEY);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(context.sign().as_ref());
        Self(digest)
    }

    /// Compares two hashes in constant time.
    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Returns a number derived from the hash.
    pub(crate) fn numeric_prefix(&self) -> usize {
        self.0
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | usize::from(*byte))
    }
}

/// Returns unpredictable bytes.
///
/// # Panics
/// Panics if the system does not provide random numbers, because no secret would be safe without
/// them.
pub(crate) fn random_bytes() -> [u8; DIGEST_BYTES] {
    let mut bytes = [0; DIGEST_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_only_for_equal_parts() {
        let digest = Digest::new(&[b"a", b"bc"]);
        assert!(digest.is_equal(&Digest::new(&[b"a", b"bc"])));
        assert!(
            !digest.is_equal(&Digest::new(&[b"ab", b"c"]))
                && !digest.is_equal(&Digest::new(&[b"abc"]))
        );
        assert_ne!(random_bytes(), random_bytes());
    }
}
