//! The check of each request before its route: rate limits, identity of the client, and scope.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::Instant;

use super::{
    client::{Client, counted},
    cookie,
    credentials::{Authorization, NotUnderstood, authorization},
    digest::Digest,
    doors::{Doors, hash_digest},
    identity::{Identity, Proof},
    limits::{
        GUESSES, GUESSES_BY_PROXY, GUESSES_FOR_USER, Guesser, HANDSHAKES, REQUESTS_BY_PROXY,
        Requester,
    },
    passwords::Guess,
    rate::Rate,
    scope::Scope,
    tokens,
};
use crate::{
    connections::Arrival,
    peer::{Peer, Who},
    refused_credentials::Credential,
};

/// The reason why a client is refused.
pub(super) enum Refusal {
    /// The request has no credentials, or expired ones.
    Unknown,
    /// The token or password is wrong.
    Wrong,
    /// There were too many wrong passwords. No further one is checked for this time.
    TooManyFailures(Duration),
    /// Too many passwords are being checked at the same time.
    Busy,
}

/// Limits the rate of requests before all other processing, except for the server's own user. The
/// owner of a valid token or session has a separate limit, which others at the same address cannot
/// use up.
pub(crate) async fn limit(
    State(doors): State<Arc<Doors>>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(wait) = doors.admit_request(&arrival(&request), request.headers()) {
        let message = "too many requests: ask for less at a time, or set rate_limit in the web configuration\n";
        return too_many(message.to_owned(), wait);
    }
    next.run(request).await
}

pub(crate) async fn check(
    State(doors): State<Arc<Doors>>,
    mut request: Request,
    next: Next,
) -> Response {
    let arrival = arrival(&request);
    let is_asked = arrival.peer.is_port() && doors.asks();
    let required = Scope::required(request.method(), request.uri().path()).filter(|_| is_asked);
    let mut client = Client {
        peer: arrival.peer,
        identity: None,
    };
    if let Some(required) = required {
        let identity = match doors.identify(&arrival, request.headers()).await {
            Ok(identity) => identity,
            Err(refusal) => return refusal.answer(&doors, request.headers()),
        };
        if identity.scope < required {
            let message = format!(
                "this needs the scope {required}, and {identity} has {}; use a token of that scope\n",
                identity.scope
            );
            return (StatusCode::FORBIDDEN, message).into_response();
        }
        client.identity = Some(Arc::new(identity));
    }
    request.extensions_mut().insert(client);
    next.run(request).await
}

/// Returns the origin of a request, which its connection has attached.
pub(super) fn arrival(request: &Request) -> Arrival {
    request
        .extensions()
        .get::<Arrival>()
        .cloned()
        .expect("connections say where requests come from")
}

impl Doors {
    /// Counts a new TLS connection.
    ///
    /// # Errors
    /// Returns the time after which this client may open a connection.
    pub(crate) fn admit_handshake(&self, peer: Peer) -> Result<(), Duration> {
        if peer.is_own() {
            return Ok(());
        }
        self.handshakes
            .admit(counted(peer), HANDSHAKES, Instant::now())
    }

    /// Counts a request.
    ///
    /// # Errors
    /// Returns the time after which this client may send a request.
    fn admit_request(&self, arrival: &Arrival, headers: &HeaderMap) -> Result<(), Duration> {
        let (peer, now) = (arrival.peer, Instant::now());
        if !peer.is_port() || peer.is_own() {
            return Ok(());
        }
        let token = match authorization(headers) {
            Ok(Some(Authorization::Bearer(token))) if self.asks() => {
                self.token(&tokens::digest(&token))
            }
            _ => None,
        };
        let identity = token.or_else(|| self.recognize(arrival, headers).filter(|_| self.asks()));
        if let Some(identity) = identity {
            let requester = Requester::Identity(identity.digest(), counted(peer));
            return self.requests.admit(requester, self.request_rate(), now);
        }
        if let Some(proxy) = proxy_of(arrival) {
            self.requests
                .admit(Requester::Proxy(proxy), REQUESTS_BY_PROXY, now)?;
        }
        self.requests
            .admit(Requester::Client(counted(peer)), self.request_rate(), now)
    }

    /// Returns the identity of the client. The header `Authorization` decides if there is one,
    /// otherwise a session or a certificate.
    pub(super) async fn identify(
        &self,
        arrival: &Arrival,
        headers: &HeaderMap,
    ) -> Result<Identity, Refusal> {
        match authorization(headers) {
            Ok(Some(shown)) if self.takes(&shown) => return self.verify(arrival, shown).await,
            Err(NotUnderstood) => Err(Refusal::Wrong),
            // This server takes no such credentials. They can be those of a proxy, which passes the
            // header on.
            Ok(_) => self.recognize(arrival, headers).ok_or(Refusal::Unknown),
        }
    }

    /// Returns the owner of a session or a certificate.
    fn recognize(&self, arrival: &Arrival, headers: &HeaderMap) -> Option<Identity> {
        let now = Instant::now();
        let cookies = cookie::values(headers, arrival.port(), arrival.is_tls);
        let mut sessions = cookies
            .into_iter()
            .filter_map(|value| self.sessions.find(value, now));
        if let Some(identity) = sessions.find_map(|identity| self.renewed(identity)) {
            return Some(identity);
        }
        let certificate = arrival.certificate.as_ref()?;
        let proof = Proof::Certificate {
            authority: certificate.authority,
        };
        self.renewed(Identity {
            name: Arc::clone(&certificate.name),
            scope: self.user_scope(),
            proof,
        })
    }

    fn takes(&self, shown: &Authorization) -> bool {
        match shown {
            Authorization::Bearer(_) => self.takes_tokens(),
            Authorization::Basic { .. } => self.takes_passwords(),
        }
    }

    /// Returns the identity with its current scope, or `None` if its credentials are no longer
    /// valid.
    fn renewed(&self, identity: Identity) -> Option<Identity> {
        self.scope_of(&identity.proof)
            .map(|scope| Identity { scope, ..identity })
    }

    /// Returns the owner of a token or password. Tokens have at least 128 bits and cannot be
    /// guessed, so they are always compared. The number of password checks is limited.
    pub(super) async fn verify(
        &self,
        arrival: &Arrival,
        shown: Authorization,
    ) -> Result<Identity, Refusal> {
        let (credential, identity) = match shown {
            Authorization::Bearer(token) => (
                Credential::Token,
                self.token(&tokens::digest(&token)).ok_or(Refusal::Wrong),
            ),
            Authorization::Basic { user, password } => (
                Credential::Password,
                self.user(arrival, user, password).await,
            ),
        };
        if matches!(identity, Err(Refusal::Wrong | Refusal::TooManyFailures(_))) {
            self.refusals.note(credential, arrival.peer, arrival.proxy);
        }
        identity
    }

    async fn user(
        &self,
        arrival: &Arrival,
        user: String,
        password: String,
    ) -> Result<Identity, Refusal> {
        let web = self.web();
        let known = web
            .as_deref()
            .and_then(|web| Some((web, Guess::new(&web.users, &user, &password)?)));
        let (web, guess) = known.ok_or(Refusal::Wrong)?;
        // A password that was verified before does not count as a guess.
        if !self.passwords.knows(&guess) {
            let guessers = guessers(arrival, &user);
            for (guesser, rate) in &guessers {
                self.guesses
                    .check(guesser, *rate, Instant::now())
                    .map_err(Refusal::TooManyFailures)?;
            }
            let turn = self.passwords.turn().await.map_err(|_| Refusal::Busy)?;
            // Another request with the same password may have been verified meanwhile.
            if !self.passwords.knows(&guess) {
                // The guess is counted before the check, because clients can send many at a time or
                // disconnect without waiting.
                for (guesser, rate) in &guessers {
                    self.guesses
                        .admit(*guesser, *rate, Instant::now())
                        .map_err(Refusal::TooManyFailures)?;
                }
                if !self
                    .passwords
                    .check(guess, password, turn)
                    .await
                    .map_err(|_| Refusal::Busy)?
                {
                    return Err(Refusal::Wrong);
                }
                for (guesser, rate) in &guessers {
                    self.guesses.forgive(guesser, *rate);
                }
            }
        }
        let hash = web
            .users
            .get(&user)
            .map(|hash| hash_digest(hash))
            .ok_or(Refusal::Wrong)?;
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

/// Returns the limits that count wrong passwords for this user. Unknown names are counted as well,
/// so that the limit does not reveal which names exist.
fn guessers(arrival: &Arrival, user: &str) -> Vec<(Guesser, Rate)> {
    let client = counted(arrival.peer);
    let user = Some(Digest::new(&[b"user", user.as_bytes()]));
    let of_client = [
        (Guesser { user, client }, GUESSES_FOR_USER),
        (Guesser { user: None, client }, GUESSES),
    ]
    .into_iter();
    let of_proxy =
        proxy_of(arrival).map(|client| (Guesser { user: None, client }, GUESSES_BY_PROXY));
    of_client.chain(of_proxy).collect()
}

/// Returns the proxy if it has reported the address of another client.
fn proxy_of(arrival: &Arrival) -> Option<Who> {
    let proxy = arrival
        .proxy
        .map(|ip| counted(Peer::Port { ip, uid: None }));
    proxy.filter(|proxy| *proxy != counted(arrival.peer))
}

impl Refusal {
    pub(super) fn answer(self, doors: &Doors, headers: &HeaderMap) -> Response {
        let message = match self {
            Self::Unknown => {
                "sign in first: send a token as `Authorization: Bearer TOKEN`, or open the page at /\n"
            }
            Self::Wrong => {
                "this token or password is not valid; ask who runs this server for one that is\n"
            }
            Self::TooManyFailures(wait) => {
                let message = "too many wrong passwords; wait, and try again\n";
                return too_many(message.to_owned(), wait);
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
        if doors.takes_passwords() && !is_of_page {
            challenges.append(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"gpumon\""),
            );
        }
        response
    }
}

fn too_many(message: String, wait: Duration) -> Response {
    let seconds = wait.as_secs_f64().ceil().max(1.0).to_string();
    (
        StatusCode::TOO_MANY_REQUESTS,
        [(header::RETRY_AFTER, seconds)],
        message,
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use futures_util::future::{join, join_all};

    use super::*;
    use crate::auth::DoorSettings;

    #[tokio::test]
    async fn a_password_that_waits_behind_ten_wrong_ones_is_not_looked_at() {
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
        let doors = Doors::open(DoorSettings {
            web_config: Some(file),
            ..DoorSettings::default()
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
            doors.verify(
                &arrival,
                Authorization::Basic {
                    user: "ana".to_owned(),
                    password: password.to_owned(),
                },
            )
        };
        // All requests are waiting before the first password is checked.
        let turn = doors.passwords.turn().await.ok().unwrap();
        let waiting = join_all(
            (0..10)
                .map(|number| show(&number.to_string()))
                .chain([show("right")]),
        );
        let (mut answers, ()) = join(waiting, async { drop(turn) }).await;
        assert!(matches!(
            answers.pop(),
            Some(Err(Refusal::TooManyFailures(_)))
        ));
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(Refusal::Wrong)))
        );
    }
}
