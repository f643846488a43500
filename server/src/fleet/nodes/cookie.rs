//! Session cookies of nodes, which the browser stores for this server.
//!
//! This server renames a node's cookie and includes the original name in the value. The cookie has
//! no path, so that browsers send it only to that node's API, even behind a proxy that adds a
//! prefix to all paths. This server does not store the cookies.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::connections::Arrival;

const NAME_PREFIX: &str = "gpumon-node-";
const SECURE_PREFIX: &str = "__Secure-";

/// The prefix of the names under which browsers store nodes' cookies.
const NODE_PREFIX: &str = "gpumon-session-";
const HOST_PREFIX: &str = "__Host-";

/// Returns the node's cookie as sent to the browser, or `None` if the cookie is not a session.
pub(super) fn rename_cookie_for_browser(
    set: &HeaderValue,
    arrival: &Arrival,
    is_secure: bool,
) -> Option<HeaderValue> {
    let mut parts = set.to_str().ok()?.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let is_hexadecimal = value.len() <= 256 && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !(is_session_cookie_name(name) && is_hexadecimal) {
        return None;
    }
    let seconds = parts
        .find_map(|part| part.strip_prefix("Max-Age="))
        .and_then(|text| text.parse::<u32>().ok())?;
    let (prefix, secure) = if is_secure {
        (SECURE_PREFIX, "; Secure")
    } else {
        ("", "")
    };
    let port = arrival.port();
    let value = if value.is_empty() {
        String::new()
    } else {
        format!("{name}.{value}")
    };
    let text = format!(
        "{prefix}{NAME_PREFIX}{port}={value}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    HeaderValue::from_str(&text).ok()
}

/// Returns the original cookie of a node from the cookies that the browser sent for it.
pub(super) fn restore_cookie_for_node(
    headers: &HeaderMap,
    arrival: &Arrival,
) -> Option<HeaderValue> {
    let port = arrival.port();
    let names = [
        format!("{SECURE_PREFIX}{NAME_PREFIX}{port}"),
        format!("{NAME_PREFIX}{port}"),
    ];
    let names = if arrival.is_tls {
        &names[..1]
    } else {
        &names[..]
    };
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, kept) =
        pairs.find(|(name, value)| names.iter().any(|known| known == name) && !value.is_empty())?;
    let (name, value) = kept.split_once('.')?;
    let is_whole =
        is_session_cookie_name(name) && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut cookie = is_whole.then(|| HeaderValue::from_str(&format!("{name}={value}")).ok())??;
    cookie.set_sensitive(true);
    Some(cookie)
}

fn is_session_cookie_name(name: &str) -> bool {
    let port = name
        .strip_prefix(HOST_PREFIX)
        .unwrap_or(name)
        .strip_prefix(NODE_PREFIX);
    port.is_some_and(|port| {
        (1..=5).contains(&port.len()) && port.bytes().all(|digit| digit.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;

    fn make_arrival(is_tls: bool) -> Arrival {
        let peer = Peer::Port {
            ip: [127, 0, 0, 1].into(),
            uid: None,
        };
        Arrival {
            is_tls,
            ..Arrival::new(peer, Some(([127, 0, 0, 1], 9125).into()))
        }
    }

    fn restore_cookie(cookie: &str, is_tls: bool) -> Option<String> {
        let headers: HeaderMap = [(header::COOKIE, cookie.parse().unwrap())]
            .into_iter()
            .collect();
        restore_cookie_for_node(&headers, &make_arrival(is_tls))
            .map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn session_cookie_survives_round_trip() {
        let set = HeaderValue::from_static(
            "__Host-gpumon-session-9123=0a1b; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict; \
             Secure",
        );
        let secure = rename_cookie_for_browser(&set, &make_arrival(true), true).unwrap();
        assert_eq!(
            secure,
            "__Secure-gpumon-node-9125=__Host-gpumon-session-9123.0a1b; Max-Age=2592000; \
             HttpOnly; SameSite=Strict; Secure"
        );
        let pair = secure.to_str().unwrap().split(';').next().unwrap();
        assert_eq!(
            restore_cookie(&format!("gpumon-session-9125=feed; {pair}"), true).unwrap(),
            "__Host-gpumon-session-9123=0a1b"
        );
        assert_eq!(
            rename_cookie_for_browser(&set, &make_arrival(false), false).unwrap(),
            "gpumon-node-9125=__Host-gpumon-session-9123.0a1b; Max-Age=2592000; HttpOnly; \
             SameSite=Strict"
        );
        let cleared = HeaderValue::from_static(
            "gpumon-session-9123=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
        );
        assert_eq!(
            rename_cookie_for_browser(&cleared, &make_arrival(false), false).unwrap(),
            "gpumon-node-9125=; Max-Age=0; HttpOnly; SameSite=Strict"
        );
        assert_eq!(restore_cookie("gpumon-node-9125=", false), None);
    }

    #[test]
    fn only_session_cookies_are_passed_on() {
        for set in [
            "gpumon-session-9125x=ab; Max-Age=1",
            "other=ab; Max-Age=1",
            "gpumon-session-9123=no; Max-Age=1",
            "gpumon-session-9123=ab",
            "gpumon-session-9123",
        ] {
            assert_eq!(
                rename_cookie_for_browser(
                    &HeaderValue::from_static(set),
                    &make_arrival(false),
                    false
                ),
                None,
                "{set}"
            );
        }
        for cookie in [
            "gpumon-session-9125=ab",
            "gpumon-node-9124=gpumon-session-9123.ab",
            "gpumon-node-9125=other.ab",
            "gpumon-node-9125=gpumon-session-9123.x",
            "gpumon-node-9125=ab",
        ] {
            assert_eq!(restore_cookie(cookie, false), None, "{cookie}");
        }
        let plain = "gpumon-node-9125=gpumon-session-9123.ab";
        assert_eq!(
            (
                restore_cookie(plain, false).is_some(),
                restore_cookie(plain, true)
            ),
            (true, None)
        );
    }
}
