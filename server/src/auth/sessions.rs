//! Sessions of the web page. After the sign-in, a random value in a cookie replaces the token in
//! the browser.
//!
//! Sessions are kept in memory, and end with the server.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    digest::{Digest, random_bytes},
    identity::{Identity, Proof},
};

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::{super::scope::Scope, *};

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
