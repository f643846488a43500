//! The endpoint `/api/v1/session`, with which the page signs in and out.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    check::{Refusal, arrival},
    client::Client,
    cookie,
    credentials::Authorization,
    identity::Identity,
    scope::Scope,
};
use crate::{app::AppState, audit, connections::Arrival, runs};

/// The maximum size of a request in bytes.
const LARGEST: usize = 4096;

/// A request to sign in with a token or with a user's password.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SignIn {
    Token(TokenSignIn),
    Password(PasswordSignIn),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSignIn {
    /// A token of the token file.
    token: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordSignIn {
    /// The name of a user in the web configuration.
    user: String,
    /// The password of this user.
    password: String,
}

/// The identity of the client, and the available methods to sign in.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SessionState {
    /// The identity, such as `token ana`; `null` if not signed in.
    name: Option<String>,
    /// The client's scope; `null` if a sign-in is required.
    scope: Option<Scope>,
    /// Whether the server accepts tokens.
    token: bool,
    /// Whether the server accepts passwords.
    password: bool,
}

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/api/v1/session", get(state).post(sign_in).delete(sign_out))
        .route_layer(DefaultBodyLimit::max(LARGEST))
        .route_layer(middleware::from_fn(own_header))
}

pub(crate) const WITHOUT_HEADER: &str =
    "send the header `X-Gpumon: run`, which no page of another origin can do\n";

/// Refuses changes of a session by pages of another origin, which cannot send this header.
async fn own_header(request: Request, next: Next) -> Response {
    if request.method().is_safe() || runs::is_meant(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, WITHOUT_HEADER).into_response()
}

async fn state(State(app): State<AppState>, request: Request) -> Response {
    let arrival = arrival(&request);
    let signed_in = |identity: Option<&Identity>, scope| {
        let name = identity.map(ToString::to_string);
        let (token, password) = (app.doors.takes_tokens(), app.doors.takes_passwords());
        Json(SessionState {
            name,
            scope: Some(scope),
            token,
            password,
        })
        .into_response()
    };
    if !arrival.peer.is_port() || !app.doors.asks() {
        let client = Client {
            peer: arrival.peer,
            identity: None,
        };
        let may_run = runs::refusal(&app, &client).is_none();
        return signed_in(None, if may_run { Scope::Run } else { Scope::Read });
    }
    match app.doors.identify(&arrival, request.headers()).await {
        Ok(identity) => signed_in(Some(&identity), identity.scope),
        Err(Refusal::Unknown) => {
            let (token, password) = (app.doors.takes_tokens(), app.doors.takes_passwords());
            (
                StatusCode::UNAUTHORIZED,
                Json(SessionState {
                    name: None,
                    scope: None,
                    token,
                    password,
                }),
            )
                .into_response()
        }
        Err(refusal) => refusal.answer(&app.doors, request.headers()),
    }
}

async fn sign_in(
    State(app): State<AppState>,
    axum::Extension(arrival): axum::Extension<Arrival>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !arrival.peer.is_port() || !app.doors.asks() {
        let message = "no sign-in is needed here: this server asks for no token or password on this connection\n";
        return (StatusCode::CONFLICT, message).into_response();
    }
    let shown = match serde_json::from_slice(&body) {
        Ok(SignIn::Token(TokenSignIn { token })) => Authorization::Bearer(token),
        Ok(SignIn::Password(PasswordSignIn { user, password })) => {
            Authorization::Basic { user, password }
        }
        // The parser's error is not returned, because it can quote the secret.
        Err(_) => {
            let message = "send {\"token\":\"…\"}, or {\"user\":\"…\",\"password\":\"…\"}\n";
            return (StatusCode::BAD_REQUEST, message).into_response();
        }
    };
    let identity = match app.doors.verify(&arrival, shown).await {
        Ok(identity) => identity,
        Err(refusal) => return refusal.answer(&app.doors, &headers),
    };
    let cookie = app.doors.sessions.begin(&identity, Instant::now());
    let (name, scope) = (Some(identity.to_string()), Some(identity.scope));
    let client = Client {
        peer: arrival.peer,
        identity: Some(Arc::new(identity)),
    };
    audit::note(&client, "signed in").await;
    let (token, password) = (app.doors.takes_tokens(), app.doors.takes_passwords());
    let set = cookie::set(&cookie, arrival.port(), is_secure(&app, &arrival, &headers));
    (
        [(header::SET_COOKIE, set)],
        Json(SessionState {
            name,
            scope,
            token,
            password,
        }),
    )
        .into_response()
}

async fn sign_out(
    State(app): State<AppState>,
    axum::Extension(arrival): axum::Extension<Arrival>,
    headers: HeaderMap,
) -> Response {
    let port = arrival.port();
    for value in cookie::values(&headers, port, arrival.is_tls) {
        app.doors.end_session(value);
    }
    let cleared = cookie::cleared(port, is_secure(&app, &arrival, &headers));
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cleared)]).into_response()
}

/// Returns `true` if the browser uses TLS, directly or through a proxy.
pub(crate) fn is_secure(app: &AppState, arrival: &Arrival, headers: &HeaderMap) -> bool {
    // The origin was checked before: it is one of this server.
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok());
    let by_proxy = || {
        origin.is_some_and(|origin| origin.starts_with("https://"))
            && app.live.borrow().is_behind_proxy()
    };
    arrival.is_tls || by_proxy()
}
