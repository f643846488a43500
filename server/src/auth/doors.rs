//! The access policy of one server: its credentials, sessions and limits.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use thiserror::Error;
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::{
    digest::Digest,
    identity::{Identity, Proof},
    limits::{Guesser, Requester},
    passwords::Passwords,
    rate::{Rate, RatePerClient},
    scope::Scope,
    sessions::Sessions,
    tokens::{Token, Tokens},
};
use crate::{
    audit::RefusalLog, peer::Who, refused_credentials::RefusedCredentials, watched::Watched,
    web_config::WebConfig,
};

/// The interval at which files are checked for changes.
const LOOK: Duration = Duration::from_secs(1);

/// The sources of credentials.
#[derive(Default)]
pub struct DoorSettings {
    /// The path of the web configuration in Prometheus' format.
    pub web_config: Option<PathBuf>,
    /// The path of the token file.
    pub token_file: Option<PathBuf>,
    /// A token with all scopes, and the name of its source for error messages.
    pub token: Option<(&'static str, String)>,
    /// Whether users and certificates may also start runs.
    pub users_may_run: bool,
}

/// The reason why the access policy cannot be loaded.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct DoorError(String);

/// The access policy of a server.
pub struct Doors {
    web: Option<Watched<WebConfig>>,
    token_file: Option<Watched<Tokens>>,
    token: Option<Tokens>,
    users_may_run: AtomicBool,
    pub(super) passwords: Passwords,
    pub(super) sessions: Sessions,
    /// The counts of wrong passwords.
    pub(super) guesses: RatePerClient<Guesser>,
    pub(super) handshakes: RatePerClient<Who>,
    pub(super) requests: RatePerClient<Requester>,
    pub(super) refusals: RefusalLog,
    /// The number of changes that can have revoked access.
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for Doors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doors").finish_non_exhaustive()
    }
}

impl Doors {
    /// Reads the files.
    ///
    /// # Errors
    /// Returns the problem of a file, and its cure.
    pub fn open(settings: DoorSettings) -> Result<Self, DoorError> {
        let web = settings
            .web_config
            .map(|path| Watched::new(move || WebConfig::read(&path)));
        let token_file = settings.token_file.map(|path| {
            let watched = Watched::new({
                let path = path.clone();
                move || (vec![path.clone()], Tokens::read(&path))
            })?;
            if watched.current().is_empty() {
                Err(without_token(&path))
            } else {
                Ok(watched)
            }
        });
        let token = settings.token.map(|(name, token)| {
            Tokens::single("environment", &token).map_err(|why| format!("{name}: {why}"))
        });
        Ok(Self {
            web: web.transpose().map_err(DoorError)?,
            token_file: token_file.transpose().map_err(DoorError)?,
            token: token.transpose().map_err(DoorError)?,
            users_may_run: settings.users_may_run.into(),
            passwords: Passwords::new(),
            sessions: Sessions::default(),
            guesses: RatePerClient::new(),
            handshakes: RatePerClient::new(),
            requests: RatePerClient::new(),
            refusals: RefusalLog::new(),
            changes: watch::Sender::new(0),
        })
    }

    /// Returns a policy without files, under which nobody has to sign in.
    ///
    /// # Panics
    /// Never panics, because no file is read.
    pub fn none() -> Self {
        Self::open(DoorSettings::default()).expect("nothing to read")
    }

    /// Returns `true` if connections use TLS. This cannot change while the server runs.
    pub fn has_tls(&self) -> bool {
        self.web().is_some_and(|web| web.tls.is_some())
    }

    /// Returns `true` if clients on a port have to sign in.
    pub fn asks(&self) -> bool {
        self.takes_tokens() || self.web().is_some_and(|web| asks(&web))
    }

    pub(crate) fn takes_tokens(&self) -> bool {
        self.token_file.is_some() || self.token.is_some()
    }

    pub(crate) fn takes_passwords(&self) -> bool {
        self.web().is_some_and(|web| !web.users.is_empty())
    }

    pub(crate) fn web(&self) -> Option<Arc<WebConfig>> {
        self.web.as_ref().map(Watched::current)
    }

    /// Returns the rate limit of requests of a client.
    pub(super) fn request_rate(&self) -> Rate {
        // A page sends a dozen requests, and a dashboard with many panels some more.
        const USUAL: Rate = Rate {
            burst: 500,
            spacing: Duration::from_millis(10),
        };
        self.web().and_then(|web| web.rate).unwrap_or(USUAL)
    }

    /// Returns the counts of wrong tokens and passwords since the server's start.
    pub(crate) fn refused(&self) -> Arc<RefusedCredentials> {
        self.refusals.counts()
    }

    /// Returns the identity of the token with this digest.
    pub(super) fn token(&self, digest: &Digest) -> Option<Identity> {
        let identity = |token: &Token| Identity {
            name: Arc::clone(&token.name),
            scope: token.scope,
            proof: Proof::Token(token.digest),
        };
        let of_file = self
            .token_file
            .as_ref()
            .and_then(|file| file.current().find(digest).map(identity));
        of_file.or(self
            .token
            .as_ref()
            .and_then(|token| token.find(digest).map(identity)))
    }

    /// Returns the scope of users and certificates.
    pub(super) fn user_scope(&self) -> Scope {
        if self.users_may_run.load(Relaxed) {
            Scope::Run
        } else {
            Scope::Read
        }
    }

    /// Sets whether users and certificates may start runs.
    pub(crate) fn let_users_run(&self, may: bool) {
        self.users_may_run.store(may, Relaxed);
    }

    /// Returns the current scope of verified credentials, or `None` if they are no longer valid.
    pub(crate) fn scope_of(&self, proof: &Proof) -> Option<Scope> {
        let is_valid = match proof {
            Proof::Token(digest) => return self.token(digest).map(|token| token.scope),
            Proof::Session { id, by } => {
                self.sessions.get(*id, Instant::now())?;
                return self.scope_of(by);
            }
            Proof::Password { user, hash } => self
                .web()?
                .users
                .get(&**user)
                .is_some_and(|known| hash_digest(known).matches(hash)),
            Proof::Certificate { authority } => {
                let web = self.web()?;
                let clients = web.tls.as_ref()?.clients.as_ref()?;
                web.users.is_empty() && clients.authority.matches(authority)
            }
        };
        is_valid.then(|| self.user_scope())
    }

    /// Returns a channel that changes when access can have been revoked.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn end_session(&self, cookie: &str) {
        // Only the end of an existing session is reported, because all streams check their access
        // at each report.
        if self.sessions.end(cookie) {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Reads changed files again. This function never returns.
    pub(crate) async fn watch(self: Arc<Self>) {
        if self.web.is_none() && self.token_file.is_none() {
            return std::future::pending().await;
        }
        loop {
            sleep(LOOK).await;
            // The file may be on a disk that does not respond, so it is read by another thread.
            let doors = Arc::clone(&self);
            let _ = spawn_blocking(move || doors.refresh()).await;
        }
    }

    fn refresh(&self) {
        let is_fit = |old: &WebConfig, new: &WebConfig| {
            if old.tls.is_some() != new.tls.is_some() {
                return Err("tls_server_config has come or gone, which needs a restart".to_owned());
            }
            if asks(old) && !asks(new) && !self.takes_tokens() {
                return Err(
                    "nobody would have to sign in any more, which needs a restart".to_owned(),
                );
            }
            Ok(())
        };
        let web = self.web.as_ref().and_then(|web| web.refresh(is_fit));
        let tokens = self
            .token_file
            .as_ref()
            .and_then(|file| file.refresh(|_, _| Ok(())));
        let names = ["the web configuration", "the token file"];
        for (name, read) in names.into_iter().zip([web, tokens]) {
            match read {
                None => continue,
                Some(Err(why)) => {
                    tracing::warn!("{why}; {name} stays in force as it was read before");
                }
                Some(Ok(())) => tracing::info!("{name} was reloaded"),
            }
            self.sessions
                .keep(|identity| self.scope_of(&identity.proof).is_some());
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

/// Returns `true` if clients have to sign in under this web configuration.
fn asks(web: &WebConfig) -> bool {
    let asks_for_certificate = |tls: &crate::web_config::Tls| {
        tls.clients
            .as_ref()
            .is_some_and(|clients| clients.is_required)
    };
    !web.users.is_empty() || web.tls.as_ref().is_some_and(asks_for_certificate)
}

/// Returns the digest of a user's password hash.
pub(super) fn hash_digest(hash: &str) -> Digest {
    Digest::new(&[b"hash", hash.as_bytes()])
}

fn without_token(path: &Path) -> String {
    let path = path.display();
    format!(
        "{path} has no token; add one with `echo \"run NAME $(openssl rand -hex 32)\" >> {path}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_look_whether_they_may_go_on_only_where_a_session_has_ended() {
        let doors = Doors::none();
        let proof = Proof::Token(Digest::new(&[b"token"]));
        let cookie = doors.sessions.begin(
            &Identity {
                name: "ana".into(),
                scope: Scope::Read,
                proof,
            },
            Instant::now(),
        );
        let changes = doors.changes();
        doors.end_session("anything");
        assert!(!changes.has_changed().unwrap());
        doors.end_session(&cookie);
        assert!(changes.has_changed().unwrap());
    }
}
