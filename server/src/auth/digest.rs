//! Keyed hashes of secrets. The server stores and compares these instead of the secrets.

use std::sync::LazyLock;

use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use subtle::ConstantTimeEq;

const LENGTH: usize = 32;

/// The key is different in each process, so that nobody can prepare texts with similar hashes.
static KEY: LazyLock<hmac::Key> = LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, &random()));

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; LENGTH]);

impl Digest {
    /// Returns the hash of several parts. Their lengths are included, so that different parts never
    /// have the same hash.
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let mut context = hmac::Context::with_key(&KEY);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut digest = [0; LENGTH];
        digest.copy_from_slice(context.sign().as_ref());
        Self(digest)
    }

    /// Compares two hashes in constant time.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Returns a number that depends only on the hash.
    pub(crate) fn number(&self) -> usize {
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
pub(crate) fn random() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_parts_match() {
        let digest = Digest::new(&[b"a", b"bc"]);
        assert!(digest.matches(&Digest::new(&[b"a", b"bc"])));
        assert!(
            !digest.matches(&Digest::new(&[b"ab", b"c"]))
                && !digest.matches(&Digest::new(&[b"abc"]))
        );
        assert_ne!(random(), random());
    }
}
