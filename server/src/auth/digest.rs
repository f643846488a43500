//! Keyed hashes of secrets. The server keeps these and not the secrets themselves, and compares
//! nothing else.

use std::sync::LazyLock;

use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use subtle::ConstantTimeEq;

const LENGTH: usize = 32;

/// Another one in each process, so that nobody can prepare texts whose hashes look alike.
static KEY: LazyLock<hmac::Key> = LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, &random()));

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; LENGTH]);

impl Digest {
    /// Of several parts, each told apart from the next.
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

    /// Whether both are of the same, in a time that says nothing of how alike they are.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// A number that depends on it alone.
    pub(crate) fn number(&self) -> usize {
        self.0
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | usize::from(*byte))
    }
}

/// Unpredictable bytes.
///
/// # Panics
/// Where the system has no random numbers, without which no secret is one.
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
