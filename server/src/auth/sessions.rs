//! Sessions of the web page, and their cookies. After the sign-in, a random value in a cookie
//! replaces the token in the browser.
//!
//! Sessions are kept in memory, and end with the server.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue, header};
use tokio::time::Instant;

use super::{
    client::{Identity, Proof},
    credentials::{Digest, random_bytes},
};
use crate::lock;

pub(crate) const SESSION_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The maximum number of sessions. Beyond it, a new session replaces the oldest one.
const MAX_SESSIONS: usize = 10_000;
const MAX_SESSIONS_PER_NAME: usize = 100;

struct Session {
    identity: Identity,
    begun: Instant,
}

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Digest, Session>>);

impl Sessions {
    /// Starts a session and returns the value of its cookie.
    pub(crate) fn start_session(&self, identity: &Identity, now: Instant) -> String {
        let id = random_bytes().iter().fold(String::new(), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        });
        let mut sessions = self.lock();
        sessions.retain(|_, session| now.duration_since(session.begun) < SESSION_LIFETIME);
        let of_this_one = |session: &Session| session.identity.name == identity.name;
        if sessions
            .values()
            .filter(|session| of_this_one(session))
            .count()
            >= MAX_SESSIONS_PER_NAME
        {
            remove_oldest(&mut sessions, of_this_one);
        }
        if sessions.len() >= MAX_SESSIONS {
            remove_oldest(&mut sessions, |_| true);
        }
        sessions.insert(
            digest_cookie(&id),
            Session {
                identity: identity.clone(),
                begun: now,
            },
        );
        id
    }

    /// Returns the identity of the session with this cookie.
    pub(crate) fn find_by_cookie(&self, cookie: &str, now: Instant) -> Option<Identity> {
        self.find_by_digest(digest_cookie(cookie), now)
    }

    /// Returns the identity of the session with this digest.
    pub(crate) fn find_by_digest(&self, id: Digest, now: Instant) -> Option<Identity> {
        let sessions = self.lock();
        let session = sessions
            .get(&id)
            .filter(|session| now.duration_since(session.begun) < SESSION_LIFETIME)?;
        let Identity { name, scope, proof } = session.identity.clone();
        Some(Identity {
            name,
            scope,
            proof: Proof::Session {
                id,
                by: Box::new(proof),
            },
        })
    }

    /// Ends a session. Returns `false` if no session has this cookie.
    pub(crate) fn end_session(&self, cookie: &str) -> bool {
        self.lock().remove(&digest_cookie(cookie)).is_some()
    }

    /// Ends all sessions whose credentials are no longer valid.
    pub(crate) fn retain_valid(&self, is_valid: impl Fn(&Identity) -> bool) {
        self.lock().retain(|_, session| is_valid(&session.identity));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        lock::lock(&self.0)
    }
}

fn digest_cookie(cookie: &str) -> Digest {
    Digest::new(&[b"session", cookie.as_bytes()])
}

fn remove_oldest(sessions: &mut HashMap<Digest, Session>, may: impl Fn(&Session) -> bool) {
    let candidates = sessions.iter().filter(|(_, session)| may(session));
    if let Some(oldest) = candidates
        .min_by_key(|(_, session)| session.begun)
        .map(|(id, _)| *id)
    {
        sessions.remove(&oldest);
    }
}

// The session cookie. Over TLS, its name begins with `__Host-`, so that browsers accept the cookie
// only from this host and only over TLS. All ports of a host share their cookies, so the name
// contains the port.

pub(crate) const SESSION_COOKIE_PREFIX: &str = "gpumon-session-";
pub(crate) const HOST_COOKIE_PREFIX: &str = "__Host-";

pub(super) fn make_cookie(value: &str, port: u16, is_secure: bool) -> HeaderValue {
    format_cookie(value, port, is_secure, SESSION_LIFETIME.as_secs())
}

pub(super) fn make_expired_cookie(port: u16, is_secure: bool) -> HeaderValue {
    format_cookie("", port, is_secure, 0)
}

fn format_cookie(value: &str, port: u16, is_secure: bool, seconds: u64) -> HeaderValue {
    let (prefix, secure) = if is_secure {
        (HOST_COOKIE_PREFIX, "; Secure")
    } else {
        ("", "")
    };
    let text = format!(
        "{prefix}{SESSION_COOKIE_PREFIX}{port}={value}; Path=/; Max-Age={seconds}; HttpOnly; \
         SameSite=Strict{secure}"
    );
    HeaderValue::from_str(&text).expect("the name of a session is hexadecimal")
}

/// Returns the values of a request's session cookies.
pub(super) fn session_cookie_values(headers: &HeaderMap, port: u16, is_tls: bool) -> Vec<&str> {
    let name = format!("{SESSION_COOKIE_PREFIX}{port}");
    cookie_values(headers, HOST_COOKIE_PREFIX, &name, is_tls)
}

/// Returns the values of a request's cookies with this name. Over TLS, only cookies whose names
/// begin with `secure_prefix` count, because other hosts of the domain can set cookies without it.
pub(crate) fn cookie_values<'a>(
    headers: &'a HeaderMap,
    secure_prefix: &str,
    name: &str,
    is_tls: bool,
) -> Vec<&'a str> {
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let pairs = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .filter(|(known, _)| {
            known.strip_prefix(secure_prefix) == Some(name) || (!is_tls && *known == name)
        })
        .map(|(_, value)| value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::client::Scope, *};

    fn make_identity(name: &str) -> Identity {
        Identity {
            name: name.into(),
            scope: Scope::Read,
            proof: Proof::Token(Digest::new(&[name.as_bytes()])),
        }
    }

    #[test]
    fn session_ends_with_sign_out_or_token() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [ana, bob] =
            ["ana", "bob"].map(|name| sessions.start_session(&make_identity(name), now));
        let name = |cookie: &str, at| {
            sessions
                .find_by_cookie(cookie, at)
                .map(|identity| identity.name.to_string())
        };
        assert_eq!(name(&ana, now).as_deref(), Some("ana"));
        assert_eq!(name(&ana[1..], now), None);
        assert_eq!((ana.len(), name(&bob, now + SESSION_LIFETIME)), (64, None));
        sessions.retain_valid(|identity| &*identity.name != "ana");
        assert_eq!(
            (name(&ana, now), name(&bob, now).as_deref()),
            (None, Some("bob"))
        );
        sessions.end_session(&bob);
        assert_eq!(name(&bob, now), None);
    }

    #[test]
    fn frequent_sign_ins_end_oldest_sessions_of_client() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let other = sessions.start_session(&make_identity("other"), now);
        let first = sessions.start_session(&make_identity("ana"), now + Duration::from_secs(1));
        for second in 0..MAX_SESSIONS_PER_NAME as u64 {
            sessions.start_session(&make_identity("ana"), now + Duration::from_secs(2 + second));
        }
        let later = now + Duration::from_secs(200);
        assert!(
            sessions.find_by_cookie(&first, later).is_none()
                && sessions.find_by_cookie(&other, later).is_some()
        );
        assert_eq!(sessions.lock().len(), MAX_SESSIONS_PER_NAME + 1);
    }
}

#[cfg(test)]
mod cookie_tests {
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
        assert_eq!(session_cookie_values(&headers, 9123, true), ["secure"]);
        assert_eq!(
            session_cookie_values(&headers, 9123, false),
            ["plain", "secure"]
        );
        assert!(session_cookie_values(&HeaderMap::new(), 9123, true).is_empty());
    }
}
