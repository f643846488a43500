//! Passwords of the web configuration. bcrypt takes a tenth of a second by design: off the event loop, one at a time, and
//! not again for one that was right.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

use super::digest::Digest;

/// How long a password waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many are remembered. There are as many as users, unless one changes.
const MOST_KNOWN: usize = 4096;

/// bcrypt hashes by user.
pub(crate) type Users = BTreeMap<String, String>;

pub(crate) struct Passwords {
    turn: Semaphore,
    right: Mutex<HashSet<Digest>>,
}

/// Too many passwords are being checked.
pub(crate) struct Busy;

impl Passwords {
    pub(crate) fn new() -> Self {
        Self { turn: Semaphore::new(1), right: Mutex::default() }
    }

    /// Whether it is this user's. For a user who does not exist, it takes the same time as for one who does.
    ///
    /// # Errors
    /// [`Busy`] where others are checked for too long.
    pub(crate) async fn verify(&self, users: &Users, user: &str, password: &str) -> Result<bool, Busy> {
        let of_user = users.get(user);
        let Some(hash) = of_user.or_else(|| stand_in(users, user)).cloned() else { return Ok(false) };
        let digest = Digest::new(&[b"password", user.as_bytes(), hash.as_bytes(), password.as_bytes()]);
        if self.right.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest) {
            return Ok(true);
        }
        let turn = timeout(PATIENCE, self.turn.acquire()).await.map_err(|_| Busy)?.map_err(|_| Busy)?;
        let password = password.to_owned();
        let is_right =
            spawn_blocking(move || bcrypt::verify(password, &hash).unwrap_or(false)).await.map_err(|_| Busy)?;
        drop(turn);
        let is_right = is_right && of_user.is_some();
        if is_right {
            let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
            if right.len() >= MOST_KNOWN {
                right.clear();
            }
            right.insert(digest);
        }
        Ok(is_right)
    }
}

/// Some user's hash, always the same one for the same name: hashes may cost differently, and a name that is none must not
/// be known by that.
fn stand_in<'a>(users: &'a Users, user: &str) -> Option<&'a String> {
    let number = Digest::new(&[b"name", user.as_bytes()]).number();
    users.values().nth(number.checked_rem(users.len())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_password_of_a_user_and_no_other() {
        let passwords = Passwords::new();
        let hash = |password: &str| bcrypt::hash(password, 4).unwrap();
        let mut users = Users::from([("ana".to_owned(), hash("secret")), ("bob".to_owned(), hash("other"))]);
        let verify = async |users: &Users, user: &str, password: &str| {
            let twice = [(); 2].map(|()| passwords.verify(users, user, password));
            let [first, again] = futures_util::future::join_all(twice).await.try_into().ok().unwrap();
            let (first, again) = (first.ok().unwrap(), again.ok().unwrap());
            assert_eq!(first, again);
            first
        };
        assert!(verify(&users, "ana", "secret").await);
        for (user, password) in [("ana", "other"), ("ana", ""), ("eve", "secret"), ("eve", "other"), ("", "")] {
            assert!(!verify(&users, user, password).await, "{user} {password}");
        }
        users.insert("ana".to_owned(), hash("new"));
        assert!(!verify(&users, "ana", "secret").await && verify(&users, "ana", "new").await);
        assert!(!verify(&Users::new(), "ana", "secret").await);
    }

    #[test]
    fn a_name_that_is_none_costs_what_some_user_costs() {
        let users: Users = (4..8).map(|cost| (format!("user{cost}"), format!("$2b$0{cost}$"))).collect();
        let of = |name: &str| stand_in(&users, name).unwrap().clone();
        assert_eq!(of("eve"), of("eve"));
        let all: HashSet<_> = (0..100).map(|number| of(&number.to_string())).collect();
        assert_eq!(all.len(), 4);
    }
}
