//! The credentials of a request: a token or password in `Authorization`, or a session cookie.

use axum::http::{HeaderMap, header};
use base64::{Engine, prelude::BASE64_STANDARD};

/// The parsed header `Authorization`.
pub(super) enum Authorization {
    Bearer(String),
    Basic { user: String, password: String },
}

/// The error for an `Authorization` header that cannot be parsed.
pub(super) struct NotUnderstood;

/// Parses the header. Returns `None` if the request does not have one.
///
/// # Errors
/// Returns an error if there are two headers, or another scheme than `Bearer` and `Basic`.
pub(super) fn authorization(headers: &HeaderMap) -> Result<Option<Authorization>, NotUnderstood> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(NotUnderstood);
    }
    let value = value.to_str().map_err(|_| NotUnderstood)?;
    let (scheme, rest) = value.split_once(' ').ok_or(NotUnderstood)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Some(Authorization::Bearer(rest.to_owned())));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(NotUnderstood);
    }
    let decoded = BASE64_STANDARD
        .decode(rest)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or(NotUnderstood)?;
    let (user, password) = decoded.split_once(':').ok_or(NotUnderstood)?;
    Ok(Some(Authorization::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<String> {
        let headers = values
            .iter()
            .map(|value| (header::AUTHORIZATION, value.parse().unwrap()))
            .collect();
        match authorization(&headers) {
            Ok(None) => Some("nothing".to_owned()),
            Ok(Some(Authorization::Bearer(token))) => Some(format!("token {token}")),
            Ok(Some(Authorization::Basic { user, password })) => Some(format!("{user} {password}")),
            Err(NotUnderstood) => None,
        }
    }

    #[test]
    fn one_header_of_two_schemes() {
        assert_eq!(read(&[]).as_deref(), Some("nothing"));
        assert_eq!(read(&["Bearer abc"]).as_deref(), Some("token abc"));
        assert_eq!(read(&["bearer  abc "]).as_deref(), Some("token abc"));
        assert_eq!(
            read(&["Basic YW5hOnNlOmNyZXQ="]).as_deref(),
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
            assert_eq!(read(&[refused]), None, "{refused}");
        }
        assert_eq!(read(&["Bearer abc", "Bearer def"]), None);
    }
}
