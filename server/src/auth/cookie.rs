//! The session cookie.
//!
//! Over TLS, its name begins with `__Host-`, so that browsers accept the cookie only from this host
//! and only over TLS. All ports of a host share their cookies, so the name contains the port.

use axum::http::{HeaderMap, HeaderValue, header};

use super::sessions::SESSION_LIFETIME;

const NAME_PREFIX: &str = "gpumon-session-";
const SECURE_PREFIX: &str = "__Host-";

pub(super) fn make_cookie(value: &str, port: u16, is_secure: bool) -> HeaderValue {
    format_cookie(value, port, is_secure, SESSION_LIFETIME.as_secs())
}

pub(super) fn make_expired_cookie(port: u16, is_secure: bool) -> HeaderValue {
    format_cookie("", port, is_secure, 0)
}

fn format_cookie(value: &str, port: u16, is_secure: bool, seconds: u64) -> HeaderValue {
    let (prefix, secure) = if is_secure {
        (SECURE_PREFIX, "; Secure")
    } else {
        ("", "")
    };
    let text = format!(
        "{prefix}{NAME_PREFIX}{port}={value}; Path=/; Max-Age={seconds}; HttpOnly; \
         SameSite=Strict{secure}"
    );
    HeaderValue::from_str(&text).expect("the name of a session is hexadecimal")
}

/// Returns the values of a request's session cookies. Over TLS, only cookies with the `__Host-`
/// prefix count, because other hosts of the domain can set cookies without it.
pub(super) fn session_values(headers: &HeaderMap, port: u16, is_tls: bool) -> Vec<&str> {
    let names = [
        format!("{SECURE_PREFIX}{NAME_PREFIX}{port}"),
        format!("{NAME_PREFIX}{port}"),
    ];
    let names = if is_tls { &names[..1] } else { &names[..] };
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .filter(|(name, _)| names.iter().any(|known| known == name))
        .map(|(_, value)| value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_restricted_to_server_and_http() {
        let secure = make_cookie("abc", 9123, true);
        let secure = secure.to_str().unwrap();
        assert!(
            secure.starts_with("__Host-gpumon-session-9123=abc; Path=/; "),
            "{secure}"
        );
        for part in ["HttpOnly", "SameSite=Strict", "Secure", "Max-Age=2592000"] {
            assert!(
                secure.split("; ").any(|found| found == part),
                "{part}: {secure}"
            );
        }
        assert!(!secure.contains("Domain"));
        let plain = make_cookie("abc", 9123, false);
        assert!(
            !plain.to_str().unwrap().contains("Secure")
                && !plain.to_str().unwrap().contains("__Host-")
        );
        assert!(
            make_expired_cookie(9123, true)
                .to_str()
                .unwrap()
                .contains("=; Path=/; Max-Age=0;")
        );
    }

    #[test]
    fn cookies_of_other_ports_are_ignored() {
        let text = "other=1; gpumon-session-9123=plain; __Host-gpumon-session-9123=secure; \
                    gpumon-session-9124=next";
        let headers: HeaderMap = [(header::COOKIE, text.parse().unwrap())]
            .into_iter()
            .collect();
        assert_eq!(session_values(&headers, 9123, true), ["secure"]);
        assert_eq!(session_values(&headers, 9123, false), ["plain", "secure"]);
        assert!(session_values(&HeaderMap::new(), 9123, true).is_empty());
    }
}
