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
    check::{AuthRefusal, arrival_of_request},
    client::{Client, Identity, Scope},
    credentials::Authorization,
    sessions,
};
use crate::{app::AppState, audit, connections::Arrival, runs};

/// The maximum size of a request in bytes.
const MAX_BODY_BYTES: usize = 4096;

/// A request to sign in with a token, or with a user name and password.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SignIn {
    Token(TokenSignIn),
    Password(PasswordSignIn),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSignIn {
    /// A token from the token file.
    token: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordSignIn {
    /// The name of a user in the web configuration.
    user: String,
    /// The password of the user.
    password: String,
}

/// The identity of the client, and the available methods to sign in.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SessionState {
    /// The client's identity, such as `token ana`; `null` if not signed in.
    name: Option<String>,
    /// The client's scope; `null` if a sign-in is required.
    scope: Option<Scope>,
    /// Whether the server accepts tokens.
    token: bool,
    /// Whether the server accepts user names and passwords.
    password: bool,
}

pub(crate) fn build_router() -> Router<AppState> {
    Router::new()
        .route(
            "/api/v1/session",
            get(get_session).post(sign_in).delete(sign_out),
        )
        .route_layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .route_layer(middleware::from_fn(require_gpumon_header))
}

pub(crate) const SESSION_HEADER_MESSAGE: &str = "send the header `X-Gpumon: run`, which shows that \
                                                 the request is not from a page of another \
                                                 origin\n";

/// Refuses requests without this server's header. Pages of another origin cannot send the header,
/// so they cannot change sessions.
async fn require_gpumon_header(request: Request, next: Next) -> Response {
    if request.method().is_safe() || runs::has_gpumon_header(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, SESSION_HEADER_MESSAGE).into_response()
}

async fn get_session(State(app): State<AppState>, request: Request) -> Response {
    let arrival = arrival_of_request(&request);
    if !arrival.peer.uses_port() || !app.policy.requires_sign_in() {
        let client = Client {
            peer: arrival.peer,
            identity: None,
        };
        let may_run = runs::find_run_refusal(&app, &client).is_none();
        let scope = if may_run { Scope::Run } else { Scope::Read };
        return session_state(&app, None, Some(scope)).into_response();
    }
    match app
        .policy
        .identify_client(&arrival, request.headers())
        .await
    {
        Ok(identity) => session_state(&app, Some(&identity), Some(identity.scope)).into_response(),
        Err(AuthRefusal::Unknown) => {
            (StatusCode::UNAUTHORIZED, session_state(&app, None, None)).into_response()
        }
        Err(refusal) => refusal.respond(&app.policy, request.headers()),
    }
}

/// Returns the body of a response about a session. A client that is not signed in has no scope.
fn session_state(
    app: &AppState,
    identity: Option<&Identity>,
    scope: Option<Scope>,
) -> Json<SessionState> {
    Json(SessionState {
        name: identity.map(ToString::to_string),
        scope,
        token: app.policy.accepts_tokens(),
        password: app.policy.accepts_passwords(),
    })
}

async fn sign_in(
    State(app): State<AppState>,
    axum::Extension(arrival): axum::Extension<Arrival>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !arrival.peer.uses_port() || !app.policy.requires_sign_in() {
        let message = "sign-in is not needed: this server requires no token or password on this \
                       connection\n";
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
    let identity = match app.policy.verify_credentials(&arrival, shown).await {
        Ok(identity) => identity,
        Err(refusal) => return refusal.respond(&app.policy, &headers),
    };
    let cookie = app.policy.sessions.start_session(&identity, Instant::now());
    let state = session_state(&app, Some(&identity), Some(identity.scope));
    let client = Client {
        peer: arrival.peer,
        identity: Some(Arc::new(identity)),
    };
    audit::log_action(&client, "signed in").await;
    let set = sessions::make_cookie(
        &cookie,
        arrival.server_port(),
        browser_uses_tls(&app, &arrival, &headers),
    );
    ([(header::SET_COOKIE, set)], state).into_response()
}

async fn sign_out(
    State(app): State<AppState>,
    axum::Extension(arrival): axum::Extension<Arrival>,
    headers: HeaderMap,
) -> Response {
    let port = arrival.server_port();
    for value in sessions::session_cookie_values(&headers, port, arrival.is_tls) {
        app.policy.end_session(value);
    }
    let cleared = sessions::make_expired_cookie(port, browser_uses_tls(&app, &arrival, &headers));
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cleared)]).into_response()
}

/// Returns `true` if the browser uses TLS, directly or through a proxy.
pub(crate) fn browser_uses_tls(app: &AppState, arrival: &Arrival, headers: &HeaderMap) -> bool {
    // An earlier check ensures that the origin is one of this server's own.
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok());
    let by_proxy = || {
        origin.is_some_and(|origin| origin.starts_with("https://"))
            && app.live.borrow().is_behind_proxy()
    };
    arrival.is_tls || by_proxy()
}
