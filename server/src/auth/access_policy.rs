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
    client::{Identity, Proof, Scope},
    credentials::Digest,
    passwords::PasswordChecker,
    rate::{Guesser, Rate, RatePerClient, Requester},
    sessions::Sessions,
    tokens::{Token, Tokens},
};
use crate::{
    audit::{RefusalLog, RefusedCredentials},
    peer::PeerKey,
    watched_file::WatchedFile,
    web_config::WebConfig,
};

/// The interval at which files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The sources of credentials.
#[derive(Default)]
pub struct AccessSettings {
    /// The path of the web configuration in Prometheus' format.
    pub web_config: Option<PathBuf>,
    /// The path of the token file.
    pub token_file: Option<PathBuf>,
    /// A token with all scopes, and the name of its source for error messages.
    pub token: Option<(&'static str, String)>,
    /// Whether clients that sign in with a password or a certificate may also start runs.
    pub users_may_run: bool,
}

/// The reason why the access policy cannot be loaded.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct AccessError(String);

/// The access policy of a server.
pub struct AccessPolicy {
    web: Option<WatchedFile<WebConfig>>,
    token_file: Option<WatchedFile<Tokens>>,
    token: Option<Tokens>,
    users_may_run: AtomicBool,
    pub(super) passwords: PasswordChecker,
    pub(super) sessions: Sessions,
    /// The counts of wrong passwords.
    pub(super) guesses: RatePerClient<Guesser>,
    pub(super) handshakes: RatePerClient<PeerKey>,
    pub(super) requests: RatePerClient<Requester>,
    pub(super) refusals: RefusalLog,
    /// The number of changes so far that may have revoked a client's access. Each change makes all
    /// streams check their access.
    pub(super) changes: watch::Sender<u64>,
}

impl AccessPolicy {
    /// Reads the web configuration and the token file.
    ///
    /// # Errors
    /// Returns the problem of a file, and its remedy.
    pub fn open(settings: AccessSettings) -> Result<Self, AccessError> {
        let web = settings
            .web_config
            .map(|path| WatchedFile::new(move || WebConfig::read(&path)));
        let token_file = settings.token_file.map(|path| {
            let watched = WatchedFile::new({
                let path = path.clone();
                move || (vec![path.clone()], Tokens::read(&path))
            })?;
            if watched.current().is_empty() {
                Err(missing_token_message(&path))
            } else {
                Ok(watched)
            }
        });
        let token = settings.token.map(|(name, token)| {
            Tokens::from_token("environment", &token).map_err(|why| format!("{name}: {why}"))
        });
        Ok(Self {
            web: web.transpose().map_err(AccessError)?,
            token_file: token_file.transpose().map_err(AccessError)?,
            token: token.transpose().map_err(AccessError)?,
            users_may_run: settings.users_may_run.into(),
            passwords: PasswordChecker::new(),
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
    pub fn allow_all() -> Self {
        Self::open(AccessSettings::default()).expect("there are no files to read")
    }

    /// Returns `true` if connections use TLS. This cannot change while the server runs.
    pub fn has_tls(&self) -> bool {
        self.web_config().is_some_and(|web| web.tls.is_some())
    }

    /// Returns `true` if clients on a port have to sign in.
    pub fn requires_sign_in(&self) -> bool {
        self.accepts_tokens()
            || self
                .web_config()
                .is_some_and(|web| web_requires_sign_in(&web))
    }

    pub(crate) fn accepts_tokens(&self) -> bool {
        self.token_file.is_some() || self.token.is_some()
    }

    pub(crate) fn accepts_passwords(&self) -> bool {
        self.web_config().is_some_and(|web| !web.users.is_empty())
    }

    pub(crate) fn web_config(&self) -> Option<Arc<WebConfig>> {
        self.web.as_ref().map(WatchedFile::current)
    }

    /// Returns the rate limit for one client's requests.
    pub(super) fn request_rate(&self) -> Rate {
        // Loading the page takes a dozen requests, and a dashboard with many panels takes a few
        // more.
        const DEFAULT_RATE: Rate = Rate {
            burst: 500,
            spacing: Duration::from_millis(10),
        };
        self.web_config()
            .and_then(|web| web.rate)
            .unwrap_or(DEFAULT_RATE)
    }

    /// Returns the counts of wrong tokens and passwords since the server's start.
    pub(crate) fn refusal_counts(&self) -> Arc<RefusedCredentials> {
        Arc::clone(&self.refusals.counts)
    }

    /// Returns the identity of the token with this digest.
    pub(super) fn find_token_identity(&self, digest: &Digest) -> Option<Identity> {
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

    /// Returns the scope of clients that sign in with a password or a certificate.
    pub(super) fn user_scope(&self) -> Scope {
        if self.users_may_run.load(Relaxed) {
            Scope::Run
        } else {
            Scope::Read
        }
    }

    /// Sets whether clients that sign in with a password or a certificate may start runs.
    pub(crate) fn set_user_run_permission(&self, may: bool) {
        self.users_may_run.store(may, Relaxed);
    }

    /// Returns the current scope of verified credentials, or `None` if they are no longer valid.
    pub(crate) fn current_scope(&self, proof: &Proof) -> Option<Scope> {
        let is_valid = match proof {
            Proof::Token(digest) => {
                return self.find_token_identity(digest).map(|token| token.scope);
            }
            Proof::Session { id, by } => {
                self.sessions.find_by_digest(*id, Instant::now())?;
                return self.current_scope(by);
            }
            Proof::Password { user, hash } => self
                .web_config()?
                .users
                .get(&**user)
                .is_some_and(|known| digest_password_hash(known).is_equal(hash)),
            Proof::Certificate { authority } => {
                let web = self.web_config()?;
                let clients = web.tls.as_ref()?.clients.as_ref()?;
                web.users.is_empty() && clients.authority.is_equal(authority)
            }
        };
        is_valid.then(|| self.user_scope())
    }

    pub(super) fn end_session(&self, cookie: &str) {
        // Each notification makes all streams check their access. It is therefore sent only if a
        // session has ended.
        if self.sessions.end_session(cookie) {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Reads the files again when they change. This function never returns.
    pub(crate) async fn watch_files(self: Arc<Self>) {
        if self.web.is_none() && self.token_file.is_none() {
            return std::future::pending().await;
        }
        loop {
            sleep(CHECK_INTERVAL).await;
            // The file may be on a disk that does not respond, so it is read by another thread.
            let policy = Arc::clone(&self);
            let _ = spawn_blocking(move || policy.reload_changed_files()).await;
        }
    }

    fn reload_changed_files(&self) {
        let is_fit = |old: &WebConfig, new: &WebConfig| {
            if old.tls.is_some() != new.tls.is_some() {
                return Err(
                    "tls_server_config was added or removed, which requires a restart".to_owned(),
                );
            }
            if web_requires_sign_in(old) && !web_requires_sign_in(new) && !self.accepts_tokens() {
                return Err(
                    "the new settings no longer require sign-in; this change takes effect only \
                     after a restart"
                        .to_owned(),
                );
            }
            Ok(())
        };
        let web = self
            .web
            .as_ref()
            .and_then(|web| web.reload_if_changed(is_fit));
        let tokens = self
            .token_file
            .as_ref()
            .and_then(|file| file.reload_if_changed(|_, _| Ok(())));
        let names = ["the web configuration", "the token file"];
        for (name, read) in names.into_iter().zip([web, tokens]) {
            match read {
                None => continue,
                Some(Err(why)) => {
                    tracing::warn!("{why}; the previous version of {name} stays in effect");
                }
                Some(Ok(())) => tracing::info!("{name} was reloaded"),
            }
            self.sessions
                .retain_valid(|identity| self.current_scope(&identity.proof).is_some());
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

/// Returns `true` if clients have to sign in under this web configuration.
fn web_requires_sign_in(web: &WebConfig) -> bool {
    let asks_for_certificate = |tls: &crate::web_config::Tls| {
        tls.clients
            .as_ref()
            .is_some_and(|clients| clients.is_required)
    };
    !web.users.is_empty() || web.tls.as_ref().is_some_and(asks_for_certificate)
}

/// Returns the digest of a user's password hash.
pub(super) fn digest_password_hash(hash: &str) -> Digest {
    Digest::new(&[b"hash", hash.as_bytes()])
}

fn missing_token_message(path: &Path) -> String {
    let path = path.display();
    format!(
        "{path} has no token; add one with `echo \"run NAME $(openssl rand -hex 32)\" >> {path}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_recheck_access_only_after_session_end() {
        let policy = AccessPolicy::allow_all();
        let proof = Proof::Token(Digest::new(&[b"token"]));
        let cookie = policy.sessions.start_session(
            &Identity {
                name: "ana".into(),
                scope: Scope::Read,
                proof,
            },
            Instant::now(),
        );
        let changes = policy.changes.subscribe();
        policy.end_session("anything");
        assert!(!changes.has_changed().unwrap());
        policy.end_session(&cookie);
        assert!(changes.has_changed().unwrap());
    }
}
