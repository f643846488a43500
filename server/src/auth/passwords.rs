//! Passwords of the web configuration. bcrypt takes a tenth of a second by design, so hashes are
//! computed outside the event loop, one at a time, and verified passwords are cached.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

use super::credentials::Digest;
use crate::lock;

/// The maximum time that a password waits for its check.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of cached passwords. There is one per user, unless a password changes.
const MAX_VERIFIED: usize = 4096;

/// The bcrypt hashes of passwords by user.
pub(crate) type Users = BTreeMap<String, String>;

pub(crate) struct PasswordChecker {
    turn: Arc<Semaphore>,
    right: Mutex<HashSet<Digest>>,
}

/// A password that is to be checked for a user.
pub(crate) struct Guess {
    digest: Digest,
    /// The hash to compare the password with. For an unknown user, another user's hash is used, so
    /// that the check takes equally long.
    hash: String,
    is_of_user: bool,
}

impl Guess {
    /// Creates a guess, or returns `None` if the web configuration has no users.
    pub(crate) fn new(users: &Users, user: &str, password: &str) -> Option<Self> {
        let of_user = users.get(user);
        let hash = of_user.or_else(|| substitute_hash(users, user))?.clone();
        let digest = Digest::new(&[
            b"password",
            user.as_bytes(),
            hash.as_bytes(),
            password.as_bytes(),
        ]);
        Some(Self {
            digest,
            hash,
            is_of_user: of_user.is_some(),
        })
    }
}

impl PasswordChecker {
    pub(crate) fn new() -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
            right: Mutex::default(),
        }
    }

    /// Returns `true` if the password was verified before.
    pub(crate) fn was_verified(&self, guess: &Guess) -> bool {
        lock::lock(&self.right).contains(&guess.digest)
    }

    /// Waits until a password may be checked. Returns `None` if this takes too long, because too
    /// many passwords are waiting for a check.
    pub(crate) async fn acquire_permit(&self) -> Option<OwnedSemaphorePermit> {
        let turn = timeout(QUEUE_TIMEOUT, Arc::clone(&self.turn).acquire_owned()).await;
        turn.ok()?.ok()
    }

    /// Returns `true` if the password is correct, or `None` if the server is shutting down. The
    /// check takes equally long for unknown users.
    pub(crate) async fn check_password(
        &self,
        guess: Guess,
        password: String,
        turn: OwnedSemaphorePermit,
    ) -> Option<bool> {
        let Guess {
            digest,
            hash,
            is_of_user,
        } = guess;
        // The permission is held until the hash is computed, even if the client disconnects before.
        let verify = move || {
            let is_right = bcrypt::verify(password, &hash).unwrap_or(false);
            drop(turn);
            is_right
        };
        let is_right = spawn_blocking(verify).await.ok()? && is_of_user;
        if is_right {
            let mut right = lock::lock(&self.right);
            if right.len() >= MAX_VERIFIED {
                right.clear();
            }
            right.insert(digest);
        }
        Some(is_right)
    }
}

/// Returns another user's hash for an unknown name: always the same one for the same name. Hashes
/// can have different costs. If all unknown names had the same hash, the duration of the check
/// would reveal that a name is unknown.
fn substitute_hash<'a>(users: &'a Users, user: &str) -> Option<&'a String> {
    let number = Digest::new(&[b"name", user.as_bytes()]).numeric_prefix();
    users.values().nth(number.checked_rem(users.len())?)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_correct_password_is_accepted() {
        let passwords = PasswordChecker::new();
        let hash = |password: &str| bcrypt::hash(password, 4).unwrap();
        let mut users = Users::from([
            ("ana".to_owned(), hash("secret")),
            ("bob".to_owned(), hash("other")),
        ]);
        let verify = async |users: &Users, user: &str, password: &str| {
            let Some(guess) = Guess::new(users, user, password) else {
                return false;
            };
            assert!(!passwords.was_verified(&guess));
            let turn = passwords.acquire_permit().await.unwrap();
            let is_right = passwords
                .check_password(guess, password.to_owned(), turn)
                .await
                .unwrap();
            assert_eq!(
                passwords.was_verified(&Guess::new(users, user, password).unwrap()),
                is_right
            );
            is_right
        };
        assert!(verify(&users, "ana", "secret").await);
        for (user, password) in [
            ("ana", "other"),
            ("ana", ""),
            ("eve", "secret"),
            ("eve", "other"),
            ("", ""),
        ] {
            assert!(!verify(&users, user, password).await, "{user} {password}");
        }
        users.insert("ana".to_owned(), hash("new"));
        assert!(!verify(&users, "ana", "secret").await && verify(&users, "ana", "new").await);
        assert!(!verify(&Users::new(), "ana", "secret").await);
    }

    #[tokio::test]
    async fn canceled_password_check_ends_before_next_one() {
        let passwords = PasswordChecker::new();
        let users = Users::from([("ana".to_owned(), bcrypt::hash("secret", 10).unwrap())]);
        let guess = Guess::new(&users, "ana", "wrong").unwrap();
        let turn = passwords.acquire_permit().await.unwrap();
        let mut check = Box::pin(passwords.check_password(guess, "wrong".to_owned(), turn));
        assert!(check.as_mut().now_or_never().is_none(), "it has begun");
        drop(check);
        assert_eq!(passwords.turn.available_permits(), 0);
        assert!(
            passwords.acquire_permit().await.is_some(),
            "when it is done, it is another's turn"
        );
    }

    #[test]
    fn unknown_user_takes_same_time_to_check() {
        let users: Users = (4..8)
            .map(|cost| (format!("user{cost}"), format!("$2b$0{cost}$")))
            .collect();
        let of = |name: &str| substitute_hash(&users, name).unwrap().clone();
        assert_eq!(of("eve"), of("eve"));
        let all: HashSet<_> = (0..100).map(|number| of(&number.to_string())).collect();
        assert_eq!(all.len(), 4);
    }
}
