//! The session cookie.
//!
//! Over TLS, its name begins with `__Host-`: browsers then accept it only from this host and only
//! over TLS. All ports of a host share their cookies, so the name contains the port.

use axum::http::{HeaderMap, HeaderValue, header};

use super::sessions::LASTS;

const NAME: &str = "gpumon-session-";
const SECURE: &str = "__Host-";

pub(super) fn set(value: &str, port: u16, is_secure: bool) -> HeaderValue {
    written(value, port, is_secure, LASTS.as_secs())
}

pub(super) fn cleared(port: u16, is_secure: bool) -> HeaderValue {
    written("", port, is_secure, 0)
}

fn written(value: &str, port: u16, is_secure: bool, seconds: u64) -> HeaderValue {
    let (prefix, secure) = if is_secure {
        (SECURE, "; Secure")
    } else {
        ("", "")
    };
    let text = format!(
        "{prefix}{NAME}{port}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    HeaderValue::from_str(&text).expect("a session is named in hexadecimal")
}

/// Returns the values of the session cookies of a request. Over TLS, cookies that another host of
/// the domain can have set are ignored.
pub(super) fn values(headers: &HeaderMap, port: u16, is_tls: bool) -> Vec<&str> {
    let names = [format!("{SECURE}{NAME}{port}"), format!("{NAME}{port}")];
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
    fn a_cookie_is_for_this_server_alone_and_for_no_script() {
        let secure = set("abc", 9123, true);
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
        let plain = set("abc", 9123, false);
        assert!(
            !plain.to_str().unwrap().contains("Secure")
                && !plain.to_str().unwrap().contains("__Host-")
        );
        assert!(
            cleared(9123, true)
                .to_str()
                .unwrap()
                .contains("=; Path=/; Max-Age=0;")
        );
    }

    #[test]
    fn only_the_own_cookie_is_read() {
        let text = "other=1; gpumon-session-9123=plain; __Host-gpumon-session-9123=secure; gpumon-session-9124=next";
        let headers: HeaderMap = [(header::COOKIE, text.parse().unwrap())]
            .into_iter()
            .collect();
        assert_eq!(values(&headers, 9123, true), ["secure"]);
        assert_eq!(values(&headers, 9123, false), ["plain", "secure"]);
        assert!(values(&HeaderMap::new(), 9123, true).is_empty());
    }
}
