//! Stands before every route: how often somebody asks, who it is, and whether that is enough.

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
    doors::{Doors, hash_digest},
    identity::{Identity, Proof},
    rate::Rate,
    scope::Scope,
    tokens,
};
use crate::{connections::Arrival, peer::Peer};

/// Wrong tokens and passwords of one client: ten at once, and then one every six seconds.
const FAILURES: Rate = Rate { burst: 10, spacing: Duration::from_secs(6) };

/// Why somebody is not let in.
pub(super) enum Refusal {
    /// Nothing was shown, or something that counts no more.
    Unknown,
    /// What was shown is wrong.
    Wrong,
    /// Too much was wrong; for so long, nothing is looked at.
    TooManyFailures(Duration),
    /// Too many passwords are being checked.
    Busy,
}

/// Before everything else, for all but the server's own user.
pub(crate) async fn limit(State(doors): State<Arc<Doors>>, request: Request, next: Next) -> Response {
    let peer = arrival(&request).peer;
    if let Err(wait) = doors.admit(peer) {
        let message = "too many requests: ask for less at a time, or set rate_limit in the web configuration\n";
        return too_many(message.to_owned(), wait);
    }
    next.run(request).await
}

pub(crate) async fn check(State(doors): State<Arc<Doors>>, mut request: Request, next: Next) -> Response {
    let arrival = arrival(&request);
    let is_asked = arrival.peer.is_port() && doors.asks();
    let required = Scope::required(request.method(), request.uri().path()).filter(|_| is_asked);
    let mut client = Client { peer: arrival.peer, identity: None };
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

/// Every request has one from its connection.
pub(super) fn arrival(request: &Request) -> Arrival {
    request.extensions().get::<Arrival>().cloned().expect("connections say where requests come from")
}

impl Doors {
    /// Counts a request, or a connection that is to be encrypted.
    ///
    /// # Errors
    /// When this client may make one.
    pub(crate) fn admit(&self, peer: Peer) -> Result<(), Duration> {
        if peer.is_port() && !peer.is_own() {
            return self.requests.admit(counted(peer), self.request_rate(), Instant::now());
        }
        Ok(())
    }

    /// Who shows this: in `Authorization`, which is wrong or right, by a session, or by a certificate.
    pub(super) async fn identify(&self, arrival: &Arrival, headers: &HeaderMap) -> Result<Identity, Refusal> {
        match authorization(headers) {
            Ok(Some(shown)) if self.takes(&shown) => return self.verify(arrival, shown).await,
            Err(NotUnderstood) => return Err(Refusal::Wrong),
            // A proxy that asks for a password passes it on.
            Ok(_) => {}
        }
        let now = Instant::now();
        let cookies = cookie::values(headers, arrival.port(), arrival.is_tls);
        let mut sessions = cookies.into_iter().filter_map(|value| self.sessions.find(value, now));
        if let Some(identity) = sessions.find_map(|identity| self.renewed(identity)) {
            return Ok(identity);
        }
        let certificate = arrival.certificate.as_ref().ok_or(Refusal::Unknown)?;
        let proof = Proof::Certificate { authority: certificate.authority };
        let identity = Identity { name: Arc::clone(&certificate.name), scope: self.user_scope(), proof };
        self.renewed(identity).ok_or(Refusal::Unknown)
    }

    fn takes(&self, shown: &Authorization) -> bool {
        match shown {
            Authorization::Bearer(_) => self.takes_tokens(),
            Authorization::Basic { .. } => self.takes_passwords(),
        }
    }

    /// The same with what it may do now.
    fn renewed(&self, identity: Identity) -> Option<Identity> {
        self.scope_of(&identity.proof).map(|scope| Identity { scope, ..identity })
    }

    /// Looks at a token or a password, unless too many of this client's were wrong.
    pub(super) async fn verify(&self, arrival: &Arrival, shown: Authorization) -> Result<Identity, Refusal> {
        let who = counted(arrival.peer);
        self.failures.check(&who, FAILURES, Instant::now()).map_err(Refusal::TooManyFailures)?;
        let found = match shown {
            Authorization::Bearer(token) => self.token(&tokens::digest(&token)),
            Authorization::Basic { user, password } => self.user(user, &password).await?,
        };
        found.ok_or_else(|| {
            // Others may have been looked at meanwhile.
            let counted = self.failures.admit(who, FAILURES, Instant::now());
            self.refusals.note(arrival.peer);
            counted.map_or_else(Refusal::TooManyFailures, |()| Refusal::Wrong)
        })
    }

    async fn user(&self, user: String, password: &str) -> Result<Option<Identity>, Refusal> {
        let Some(web) = self.web() else { return Ok(None) };
        let is_right = self.passwords.verify(&web.users, &user, password).await.map_err(|_| Refusal::Busy)?;
        Ok(web.users.get(&user).filter(|_| is_right).map(|hash| {
            let user: Arc<str> = user.into();
            let proof = Proof::Password { user: Arc::clone(&user), hash: hash_digest(hash) };
            Identity { name: user, scope: self.user_scope(), proof }
        }))
    }
}

impl Refusal {
    pub(super) fn answer(self, doors: &Doors, headers: &HeaderMap) -> Response {
        let message = match self {
            Self::Unknown => "sign in first: send a token as `Authorization: Bearer TOKEN`, or open the page at /\n",
            Self::Wrong => "this token or password is not valid; ask who runs this server for one that is\n",
            Self::TooManyFailures(wait) => {
                let message = "too many wrong tokens or passwords from your address; wait, and try again\n";
                return too_many(message.to_owned(), wait);
            }
            Self::Busy => {
                let message = "too many passwords are being checked: try again in a few seconds\n";
                return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], message).into_response();
            }
        };
        let mut response = (StatusCode::UNAUTHORIZED, message).into_response();
        let challenges = response.headers_mut();
        challenges.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"gpumon\""));
        // The page has a form of its own: a browser must not ask for it, too.
        let is_of_page = headers.get("sec-fetch-mode").is_some_and(|mode| mode != "navigate");
        if doors.takes_passwords() && !is_of_page {
            challenges.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"gpumon\""));
        }
        response
    }
}

fn too_many(message: String, wait: Duration) -> Response {
    let seconds = wait.as_secs_f64().ceil().max(1.0).to_string();
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds)], message).into_response()
}
