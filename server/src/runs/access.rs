//! The permission to start and stop runs, set marks and control a replay. The server's own user and
//! root have it, and everybody else if the settings allow it.

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rustix::process::geteuid;

use crate::{app::AppState, auth::Client, peer::Peer};

/// A header that pages of other origins cannot send without permission. This server never gives
/// that permission.
pub(crate) const GPUMON_HEADER: &str = "x-gpumon";
const MISSING_HEADER_MESSAGE: &str = "send the header `X-Gpumon: run` to start or stop a run, set \
                                      a mark or control a replay; pages of other origins cannot \
                                      send it\n";

const MISSING_SCOPE_MESSAGE: &str = "starting and stopping runs, setting marks and controlling a \
                                     replay require a token with the scope run\n";

/// Returns `true` if the request has the header that pages of other origins cannot send.
pub(crate) fn has_gpumon_header(headers: &HeaderMap) -> bool {
    headers
        .get(GPUMON_HEADER)
        .is_some_and(|value| value == "run")
}

pub(crate) async fn require_run_permission(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    let refused = if has_gpumon_header(request.headers()) {
        find_refusal(&app, &client)
    } else {
        Some(MISSING_HEADER_MESSAGE)
    };
    match refused {
        None => next.run(request).await,
        Some(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

/// Returns the reason why this client may not start and stop runs, or `None` if the client has
/// permission.
pub(crate) fn find_refusal(app: &AppState, client: &Client) -> Option<&'static str> {
    match client.may_start_runs() {
        Some(true) => return None,
        Some(false) => return Some(MISSING_SCOPE_MESSAGE),
        None => {}
    }
    let way = match client.peer {
        Peer::Socket { .. } => AccessMethod::Socket,
        Peer::Port { .. } if app.live.borrow().runs_for_all => return None,
        Peer::Port { .. } if app.live.borrow().is_behind_proxy() => AccessMethod::Proxy,
        Peer::Port { .. } => AccessMethod::Port,
    };
    check_user(client.peer.uid(), geteuid().as_raw(), way)
}

/// The way in which a client reaches the server.
#[derive(Debug, Clone, Copy)]
enum AccessMethod {
    Socket,
    Port,
    /// The port, if the server is behind a reverse proxy. Clients that connect to the port directly
    /// are included.
    Proxy,
}

fn check_user(uid: Option<u32>, own: u32, way: AccessMethod) -> Option<&'static str> {
    if uid.is_some_and(|uid| uid == own || uid == 0) {
        return None;
    }
    Some(match way {
        AccessMethod::Socket => {
            "only the user who started this server, or root, may start and stop runs, set marks \
             and control a replay\n"
        }
        AccessMethod::Port => {
            "only the user who started this server may start and stop runs, set marks and control \
             a replay over its port: start it with `gpumon serve --allow-runs` to allow this for \
             everybody who can reach the port\n"
        }
        AccessMethod::Proxy => {
            "this server is behind a reverse proxy and cannot identify who starts or stops a run, \
             sets a mark or controls a replay: start it with `gpumon serve --allow-runs` to allow \
             this for everybody who can reach the proxy\n"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_server_user_may_run_without_permission() {
        let of = |uid, way| check_user(uid, 1000, way);
        assert_eq!(
            [
                of(Some(1000), AccessMethod::Port),
                of(Some(0), AccessMethod::Port),
                of(Some(1000), AccessMethod::Socket)
            ],
            [None; 3]
        );
        for uid in [Some(1001), None] {
            assert!(
                of(uid, AccessMethod::Port)
                    .unwrap()
                    .contains("--allow-runs")
            );
            assert!(of(uid, AccessMethod::Socket).unwrap().contains("or root"));
        }
        let behind_proxy = of(None, AccessMethod::Proxy).unwrap();
        assert!(
            behind_proxy.contains("behind a reverse proxy and cannot identify who")
                && behind_proxy.contains(": start it with `gpumon serve --allow-runs`")
                && behind_proxy.contains("who can reach the proxy"),
            "{behind_proxy}"
        );
    }
}
