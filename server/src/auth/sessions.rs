//! Sessions of the page: after signing in, a random value in a cookie replaces the token in the
//! browser.
//!
//! Sessions are in memory, and end with the server.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    digest::{Digest, random},
    identity::{Identity, Proof},
};

pub(crate) const LASTS: Duration = Duration::from_hours(30 * 24);

/// The maximum number of sessions. A new one replaces the oldest.
const MOST: usize = 10_000;
const MOST_OF_ONE: usize = 100;

struct Session {
    identity: Identity,
    begun: Instant,
}

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Digest, Session>>);

impl Sessions {
    /// Starts a session and returns the value of its cookie.
    pub(crate) fn begin(&self, identity: &Identity, now: Instant) -> String {
        let id = random().iter().fold(String::new(), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        });
        let mut sessions = self.lock();
        sessions.retain(|_, session| now.duration_since(session.begun) < LASTS);
        let of_this_one = |session: &Session| session.identity.name == identity.name;
        if sessions
            .values()
            .filter(|session| of_this_one(session))
            .count()
            >= MOST_OF_ONE
        {
            forget_oldest(&mut sessions, of_this_one);
        }
        if sessions.len() >= MOST {
            forget_oldest(&mut sessions, |_| true);
        }
        sessions.insert(
            digest(&id),
            Session {
                identity: identity.clone(),
                begun: now,
            },
        );
        id
    }

    /// Returns the identity of the session with this cookie.
    pub(crate) fn find(&self, cookie: &str, now: Instant) -> Option<Identity> {
        self.get(digest(cookie), now)
    }

    /// Returns the identity of the session with this digest.
    pub(crate) fn get(&self, id: Digest, now: Instant) -> Option<Identity> {
        let sessions = self.lock();
        let session = sessions
            .get(&id)
            .filter(|session| now.duration_since(session.begun) < LASTS)?;
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

    /// Ends a session. Returns `false` if there is none with this cookie.
    pub(crate) fn end(&self, cookie: &str) -> bool {
        self.lock().remove(&digest(cookie)).is_some()
    }

    /// Ends all sessions whose credentials are no longer valid.
    pub(crate) fn keep(&self, is_valid: impl Fn(&Identity) -> bool) {
        self.lock().retain(|_, session| is_valid(&session.identity));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(cookie: &str) -> Digest {
    Digest::new(&[b"session", cookie.as_bytes()])
}

fn forget_oldest(sessions: &mut HashMap<Digest, Session>, may: impl Fn(&Session) -> bool) {
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

    fn identity(name: &str) -> Identity {
        Identity {
            name: name.into(),
            scope: Scope::Read,
            proof: Proof::Token(Digest::new(&[name.as_bytes()])),
        }
    }

    #[test]
    fn a_session_lasts_until_it_ends_or_its_token_does() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [ana, bob] = ["ana", "bob"].map(|name| sessions.begin(&identity(name), now));
        let name = |cookie: &str, at| {
            sessions
                .find(cookie, at)
                .map(|identity| identity.name.to_string())
        };
        assert_eq!(name(&ana, now).as_deref(), Some("ana"));
        assert_eq!(name(&ana[1..], now), None);
        assert_eq!((ana.len(), name(&bob, now + LASTS)), (64, None));
        sessions.keep(|identity| &*identity.name != "ana");
        assert_eq!(
            (name(&ana, now), name(&bob, now).as_deref()),
            (None, Some("bob"))
        );
        sessions.end(&bob);
        assert_eq!(name(&bob, now), None);
    }

    #[test]
    fn whoever_signs_in_all_the_time_ends_his_own_oldest_sessions() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let other = sessions.begin(&identity("other"), now);
        let first = sessions.begin(&identity("ana"), now + Duration::from_secs(1));
        for second in 0..MOST_OF_ONE as u64 {
            sessions.begin(&identity("ana"), now + Duration::from_secs(2 + second));
        }
        let later = now + Duration::from_secs(200);
        assert!(sessions.find(&first, later).is_none() && sessions.find(&other, later).is_some());
        assert_eq!(sessions.lock().len(), MOST_OF_ONE + 1);
    }
}
