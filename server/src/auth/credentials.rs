//! The credentials of a request: a token or password in the `Authorization` header, or a session
//! cookie. The server stores and compares only their digests.

use std::sync::LazyLock;

use axum::http::{HeaderMap, header};
use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use subtle::ConstantTimeEq;

/// The parsed header `Authorization`.
pub(super) enum Authorization {
    Bearer(String),
    Basic { user: String, password: String },
}

/// The error for an `Authorization` header that cannot be parsed.
pub(super) struct InvalidAuthorization;

/// Parses the `Authorization` header. Returns `None` if the request does not have one.
///
/// # Errors
/// Returns an error if there are two headers, or if the scheme is neither `Bearer` nor `Basic`.
pub(super) fn parse_authorization(
    headers: &HeaderMap,
) -> Result<Option<Authorization>, InvalidAuthorization> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(InvalidAuthorization);
    }
    let value = value.to_str().map_err(|_| InvalidAuthorization)?;
    let (scheme, rest) = value.split_once(' ').ok_or(InvalidAuthorization)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Some(Authorization::Bearer(rest.to_owned())));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(InvalidAuthorization);
    }
    let decoded = BASE64_STANDARD
        .decode(rest)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or(InvalidAuthorization)?;
    let (user, password) = decoded.split_once(':').ok_or(InvalidAuthorization)?;
    Ok(Some(Authorization::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    }))
}

const DIGEST_BYTES: usize = 32;

/// The key of the hashes. Each process generates a different key, so that nobody can prepare inputs
/// with similar hashes.
static DIGEST_KEY: LazyLock<hmac::Key> =
    LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, &random_bytes()));

/// A keyed hash of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; DIGEST_BYTES]);

impl Digest {
    /// Returns the hash of several parts. The lengths are hashed too, so that different lists of
    /// parts never have the same input.
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let mut context = hmac::Context::with_key(&DIGEST_KEY);
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

    fn describe_parsed_headers(values: &[&str]) -> Option<String> {
        let headers = values
            .iter()
            .map(|value| (header::AUTHORIZATION, value.parse().unwrap()))
            .collect();
        match parse_authorization(&headers) {
            Ok(None) => Some("nothing".to_owned()),
            Ok(Some(Authorization::Bearer(token))) => Some(format!("token {token}")),
            Ok(Some(Authorization::Basic { user, password })) => Some(format!("{user} {password}")),
            Err(InvalidAuthorization) => None,
        }
    }

    #[test]
    fn only_single_bearer_or_basic_header_is_accepted() {
        assert_eq!(describe_parsed_headers(&[]).as_deref(), Some("nothing"));
        assert_eq!(
            describe_parsed_headers(&["Bearer abc"]).as_deref(),
            Some("token abc")
        );
        assert_eq!(
            describe_parsed_headers(&["bearer  abc "]).as_deref(),
            Some("token abc")
        );
        assert_eq!(
            describe_parsed_headers(&["Basic YW5hOnNlOmNyZXQ="]).as_deref(),
            Some("ana se:cret")
        );
        for refused in [
            "abc",
            "Bearer",
            "Basic",
            "Basic !",
            "Basic YW5h",
            "Basic /w==",
            "Digest a",
            "Basic  ",
        ] {
            assert_eq!(describe_parsed_headers(&[refused]), None, "{refused}");
        }
        assert_eq!(describe_parsed_headers(&["Bearer abc", "Bearer def"]), None);
    }
}

#[cfg(test)]
mod digest_tests {
    use super::*;

    #[test]
    fn digest_depends_on_boundaries_between_parts() {
        let digest = Digest::new(&[b"a", b"bc"]);
        assert!(digest.is_equal(&Digest::new(&[b"a", b"bc"])));
        assert!(
            !digest.is_equal(&Digest::new(&[b"ab", b"c"]))
                && !digest.is_equal(&Digest::new(&[b"abc"]))
        );
        assert_ne!(random_bytes(), random_bytes());
    }
}
