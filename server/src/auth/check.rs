//! The checks that run before every route: rate limits, and the client's identity and scope.
//! Streams are checked again while they last.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    AccessPolicy, Client, Identity, Scope,
    access_policy::digest_password_hash,
    client::{Proof, rate_limit_key},
    credentials::{Authorization, Digest, InvalidAuthorization, parse_authorization},
    passwords::Guess,
    rate::{
        GUESS_LIMIT, GUESS_LIMIT_BY_PROXY, GUESS_LIMIT_FOR_USER, Guesser, HANDSHAKE_LIMIT,
        REQUEST_LIMIT_BY_PROXY, Rate, Requester,
    },
    sessions, tokens,
};
use crate::{
    audit::Credential,
    connections::Arrival,
    live_settings::LiveSettings,
    peer::{Peer, PeerKey},
    public_origin::PublicOrigin,
};

/// The reason why a client is refused.
pub(super) enum AuthRefusal {
    /// The request has no credentials, or they have expired.
    Unknown,
    /// The token or password is wrong.
    Wrong,
    /// There were too many wrong passwords. The next password is checked only after this time.
    TooManyFailures(Duration),
    /// Too many passwords are being checked at the same time.
    Busy,
}

/// Limits the request rate before any other processing, except for the server's own user. The owner
/// of a valid token or session has a separate limit, which other clients at the same address cannot
/// use up.
pub(crate) async fn limit_rate(
    State(policy): State<Arc<AccessPolicy>>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(wait) = policy.admit_request(&arrival_of_request(&request), request.headers()) {
        let message = "too many requests: send fewer at a time, or set rate_limit in the web \
                       configuration\n";
        return too_many_requests(message.to_owned(), wait);
    }
    next.run(request).await
}

pub(crate) async fn authenticate_request(
    State(policy): State<Arc<AccessPolicy>>,
    mut request: Request,
    next: Next,
) -> Response {
    let arrival = arrival_of_request(&request);
    let is_asked = arrival.peer.uses_port() && policy.requires_sign_in();
    let required =
        Scope::required_scope(request.method(), request.uri().path()).filter(|_| is_asked);
    let mut client = Client {
        peer: arrival.peer,
        identity: None,
    };
    if let Some(required) = required {
        let identity = match policy.identify_client(&arrival, request.headers()).await {
            Ok(identity) => identity,
            Err(refusal) => return refusal.respond(&policy, request.headers()),
        };
        if identity.scope < required {
            let message = format!(
                "this request needs the scope {required}, but {identity} has {}; use a token with \
                 the required scope\n",
                identity.scope
            );
            return (StatusCode::FORBIDDEN, message).into_response();
        }
        client.identity = Some(Arc::new(identity));
    }
    request.extensions_mut().insert(client);
    next.run(request).await
}

/// Returns the connection's origin, which was attached to the request.
pub(super) fn arrival_of_request(request: &Request) -> Arrival {
    request
        .extensions()
        .get::<Arrival>()
        .cloned()
        .expect("every request has the address of its connection")
}

impl AccessPolicy {
    /// Counts a new TLS connection.
    ///
    /// # Errors
    /// Returns how long this client must wait before it may open a connection.
    pub(crate) fn admit_handshake(&self, peer: Peer) -> Result<(), Duration> {
        if peer.belongs_to_server_user() {
            return Ok(());
        }
        self.handshakes
            .admit(rate_limit_key(peer), HANDSHAKE_LIMIT, Instant::now())
    }

    /// Counts a request.
    ///
    /// # Errors
    /// Returns how long this client must wait before it may send a request.
    fn admit_request(&self, arrival: &Arrival, headers: &HeaderMap) -> Result<(), Duration> {
        let (peer, now) = (arrival.peer, Instant::now());
        if !peer.uses_port() || peer.belongs_to_server_user() {
            return Ok(());
        }
        let token = match parse_authorization(headers) {
            Ok(Some(Authorization::Bearer(token))) if self.requires_sign_in() => {
                self.find_token_identity(&tokens::digest_token(&token))
            }
            _ => None,
        };
        let identity = token.or_else(|| {
            self.find_session_or_certificate_identity(arrival, headers)
                .filter(|_| self.requires_sign_in())
        });
        if let Some(identity) = identity {
            let requester = Requester::Identity(identity.digest(), rate_limit_key(peer));
            return self.requests.admit(requester, self.request_rate(), now);
        }
        if let Some(proxy) = forwarding_proxy(arrival) {
            self.requests
                .admit(Requester::Proxy(proxy), REQUEST_LIMIT_BY_PROXY, now)?;
        }
        self.requests.admit(
            Requester::Client(rate_limit_key(peer)),
            self.request_rate(),
            now,
        )
    }

    /// Returns the client's identity. It comes from the `Authorization` header if the request has
    /// one, otherwise from a session or a certificate.
    pub(super) async fn identify_client(
        &self,
        arrival: &Arrival,
        headers: &HeaderMap,
    ) -> Result<Identity, AuthRefusal> {
        match parse_authorization(headers) {
            Ok(Some(shown)) if self.accepts_credential_kind(&shown) => {
                return self.verify_credentials(arrival, shown).await;
            }
            Err(InvalidAuthorization) => Err(AuthRefusal::Wrong),
            // There is no header, or it contains credentials of a kind that this server does not
            // accept. Such credentials may be meant for a proxy that passes the header on, so they
            // are ignored.
            Ok(_) => self
                .find_session_or_certificate_identity(arrival, headers)
                .ok_or(AuthRefusal::Unknown),
        }
    }

    /// Returns the owner of the request's session or certificate.
    fn find_session_or_certificate_identity(
        &self,
        arrival: &Arrival,
        headers: &HeaderMap,
    ) -> Option<Identity> {
        let now = Instant::now();
        let cookies =
            sessions::session_cookie_values(headers, arrival.server_port(), arrival.is_tls);
        let mut sessions = cookies
            .into_iter()
            .filter_map(|value| self.sessions.find_by_cookie(value, now));
        if let Some(identity) = sessions.find_map(|identity| self.with_current_scope(identity)) {
            return Some(identity);
        }
        let certificate = arrival.certificate.as_ref()?;
        let proof = Proof::Certificate {
            authority: certificate.authority,
        };
        self.with_current_scope(Identity {
            name: Arc::clone(&certificate.name),
            scope: self.user_scope(),
            proof,
        })
    }

    fn accepts_credential_kind(&self, shown: &Authorization) -> bool {
        match shown {
            Authorization::Bearer(_) => self.accepts_tokens(),
            Authorization::Basic { .. } => self.accepts_passwords(),
        }
    }

    /// Returns the identity with its current scope, or `None` if its credentials are no longer
    /// valid.
    fn with_current_scope(&self, identity: Identity) -> Option<Identity> {
        self.current_scope(&identity.proof)
            .map(|scope| Identity { scope, ..identity })
    }

    /// Returns the owner of a token or password. Only the number of password checks is limited:
    /// tokens have at least 128 bits, so they cannot be guessed.
    pub(super) async fn verify_credentials(
        &self,
        arrival: &Arrival,
        shown: Authorization,
    ) -> Result<Identity, AuthRefusal> {
        let (credential, identity) = match shown {
            Authorization::Bearer(token) => (
                Credential::Token,
                self.find_token_identity(&tokens::digest_token(&token))
                    .ok_or(AuthRefusal::Wrong),
            ),
            Authorization::Basic { user, password } => (
                Credential::Password,
                self.verify_password(arrival, user, password).await,
            ),
        };
        if matches!(
            identity,
            Err(AuthRefusal::Wrong | AuthRefusal::TooManyFailures(_))
        ) {
            self.refusals
                .log_refusal(credential, arrival.peer, arrival.proxy);
        }
        identity
    }

    async fn verify_password(
        &self,
        arrival: &Arrival,
        user: String,
        password: String,
    ) -> Result<Identity, AuthRefusal> {
        let web = self.web_config();
        let known = web
            .as_deref()
            .and_then(|web| Some((web, Guess::new(&web.users, &user, &password)?)));
        let (web, guess) = known.ok_or(AuthRefusal::Wrong)?;
        // If the password was verified before, it does not count as a guess.
        if !self.passwords.was_verified(&guess) {
            let guessers = list_guess_limits(arrival, &user);
            for (guesser, rate) in &guessers {
                self.guesses
                    .check_without_counting(guesser, *rate, Instant::now())
                    .map_err(AuthRefusal::TooManyFailures)?;
            }
            let turn = self
                .passwords
                .acquire_permit()
                .await
                .ok_or(AuthRefusal::Busy)?;
            // Another request may have verified the same password while this one waited.
            if !self.passwords.was_verified(&guess) {
                // The guess is counted before the check. Otherwise a client could avoid the limit
                // by sending many guesses at a time, or by disconnecting without waiting.
                for (guesser, rate) in &guessers {
                    self.guesses
                        .admit(*guesser, *rate, Instant::now())
                        .map_err(AuthRefusal::TooManyFailures)?;
                }
                if !self
                    .passwords
                    .check_password(guess, password, turn)
                    .await
                    .ok_or(AuthRefusal::Busy)?
                {
                    return Err(AuthRefusal::Wrong);
                }
                for (guesser, rate) in &guessers {
                    self.guesses.refund_one(guesser, *rate);
                }
            }
        }
        let hash = web
            .users
            .get(&user)
            .map(|hash| digest_password_hash(hash))
            .ok_or(AuthRefusal::Wrong)?;
        let user: Arc<str> = user.into();
        let proof = Proof::Password {
            user: Arc::clone(&user),
            hash,
        };
        Ok(Identity {
            name: user,
            scope: self.user_scope(),
            proof,
        })
    }
}

/// Returns the limits that count wrong passwords for `user`. Unknown names are counted too, so that
/// the limit does not reveal which users exist.
fn list_guess_limits(arrival: &Arrival, user: &str) -> Vec<(Guesser, Rate)> {
    let client = rate_limit_key(arrival.peer);
    let user = Some(Digest::new(&[b"user", user.as_bytes()]));
    let of_client = [
        (Guesser { user, client }, GUESS_LIMIT_FOR_USER),
        (Guesser { user: None, client }, GUESS_LIMIT),
    ]
    .into_iter();
    let of_proxy = forwarding_proxy(arrival)
        .map(|client| (Guesser { user: None, client }, GUESS_LIMIT_BY_PROXY));
    of_client.chain(of_proxy).collect()
}

/// Returns the reverse proxy that reported the client's address, if there is one.
fn forwarding_proxy(arrival: &Arrival) -> Option<PeerKey> {
    let proxy = arrival
        .proxy
        .map(|ip| rate_limit_key(Peer::Port { ip, uid: None }));
    proxy.filter(|proxy| *proxy != rate_limit_key(arrival.peer))
}

impl AuthRefusal {
    pub(super) fn respond(self, policy: &AccessPolicy, headers: &HeaderMap) -> Response {
        let message = match self {
            Self::Unknown => {
                "sign in first: send a token as `Authorization: Bearer TOKEN`, or open the page \
                 at /\n"
            }
            Self::Wrong => {
                "this token or password is not valid; ask the administrator of this server for a \
                 valid one\n"
            }
            Self::TooManyFailures(wait) => {
                let message = "too many wrong passwords; wait, and try again\n";
                return too_many_requests(message.to_owned(), wait);
            }
            Self::Busy => {
                let message = "too many passwords are being checked: try again in a few seconds\n";
                return (
                    StatusCode::SERVICE_UNAVAILABLE,
                    [(header::RETRY_AFTER, "5")],
                    message,
                )
                    .into_response();
            }
        };
        let mut response = (StatusCode::UNAUTHORIZED, message).into_response();
        let challenges = response.headers_mut();
        challenges.append(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"gpumon\""),
        );
        // The page has its own sign-in form, so the browser must not show a second one.
        let is_of_page = headers
            .get("sec-fetch-mode")
            .is_some_and(|mode| mode != "navigate");
        if policy.accepts_passwords() && !is_of_page {
            challenges.append(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"gpumon\""),
            );
        }
        response
    }
}

fn too_many_requests(message: String, wait: Duration) -> Response {
    let seconds = wait.as_secs_f64().ceil().max(1.0).to_string();
    (
        StatusCode::TOO_MANY_REQUESTS,
        [(header::RETRY_AFTER, seconds)],
        message,
    )
        .into_response()
}

/// The interval at which streams check whether their session has expired. Streams are not notified
/// when a session expires.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The permission of one client to continue reading a stream. The permission ends when the client
/// signs out, or when the client's credentials expire or are revoked.
pub(crate) struct ReadPermission {
    policy: Arc<AccessPolicy>,
    /// The client's identity, or `None` if no sign-in was required.
    identity: Option<Arc<Identity>>,
    is_on_port: bool,
    /// The public origins at the time when the client connected.
    public_origins: Arc<[PublicOrigin]>,
    live: watch::Receiver<LiveSettings>,
    changes: watch::Receiver<u64>,
    next_check: Instant,
}

impl ReadPermission {
    /// Creates the permission of a client that is connecting.
    pub(crate) fn new(
        client: &Client,
        policy: &Arc<AccessPolicy>,
        live: &watch::Receiver<LiveSettings>,
    ) -> Self {
        Self {
            policy: Arc::clone(policy),
            identity: client.identity.clone(),
            is_on_port: client.peer.uses_port(),
            public_origins: Arc::clone(&live.borrow().public_origins),
            live: live.clone(),
            changes: policy.changes.subscribe(),
            next_check: Instant::now() + EXPIRY_CHECK_INTERVAL,
        }
    }

    /// Waits until the permission ends, and returns the reason.
    pub(crate) async fn wait_for_end(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.changes.changed() => {}
                // This branch never completes if the settings cannot change.
                Ok(()) = self.live.changed() => {}
                () = sleep_until(self.next_check) => self.next_check = Instant::now() + EXPIRY_CHECK_INTERVAL,
            }
            if let Some(why) = self.end_reason() {
                return why;
            }
        }
    }

    /// Returns the reason if the permission has ended. Clients on a port must also connect again
    /// after the public origins have changed. Their address may no longer be allowed, or their
    /// connection may now count as that of a proxy, so that its user is not the client's user.
    fn end_reason(&self) -> Option<&'static str> {
        let may_read = match &self.identity {
            Some(identity) => self.policy.current_scope(&identity.proof) >= Some(Scope::Read),
            None => !(self.is_on_port && self.policy.requires_sign_in()),
        };
        let is_reached_as_before =
            !self.is_on_port || self.live.borrow().public_origins == self.public_origins;
        match (may_read, is_reached_as_before) {
            (true, true) => None,
            (true, false) => Some("connect again"),
            (false, _) => Some("sign in again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use futures_util::future::{join, join_all};

    use super::*;
    use crate::auth::AccessSettings;

    #[tokio::test]
    async fn password_check_is_refused_after_ten_wrong_attempts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("web.yml");
        fs::write(
            &file,
            format!(
                "basic_auth_users:\n  ana: {}\n",
                bcrypt::hash("right", 4).unwrap()
            ),
        )
        .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let policy = AccessPolicy::open(AccessSettings {
            web_config: Some(file),
            ..AccessSettings::default()
        })
        .unwrap();
        let arrival = Arrival::new(
            Peer::Port {
                ip: [10, 0, 0, 7].into(),
                uid: None,
            },
            None,
        );
        let show = |password: &str| {
            policy.verify_credentials(
                &arrival,
                Authorization::Basic {
                    user: "ana".to_owned(),
                    password: password.to_owned(),
                },
            )
        };
        // The test holds the permit until all requests are waiting, so that none of their passwords
        // is checked earlier.
        let turn = policy.passwords.acquire_permit().await.unwrap();
        let waiting = join_all(
            (0..10)
                .map(|number| show(&number.to_string()))
                .chain([show("right")]),
        );
        let (mut answers, ()) = join(waiting, async { drop(turn) }).await;
        assert!(matches!(
            answers.pop(),
            Some(Err(AuthRefusal::TooManyFailures(_)))
        ));
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(AuthRefusal::Wrong)))
        );
    }
}
