//! The permission to start and stop runs, set marks and control a replay: for the server's own user
//! and root, and for everybody if the settings allow it.

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rustix::process::geteuid;

use crate::{app::AppState, auth::Client, peer::Peer};

/// The header that pages of other origins cannot send without permission, which this server never
/// gives.
pub(crate) const HEADER: &str = "x-gpumon";
const WITHOUT_HEADER: &str = "send the header `X-Gpumon: run` with what starts or stops a run, sets a mark or steers a replay, which no \
                              page of another origin can do\n";

const WITHOUT_SCOPE: &str = "starting and stopping runs, setting marks and steering a replay need a token of the scope run\n";

/// Returns `true` if the request is not from a page of another origin.
pub(crate) fn is_meant(headers: &HeaderMap) -> bool {
    headers.get(HEADER).is_some_and(|value| value == "run")
}

pub(crate) async fn may_run(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    let refused = if is_meant(request.headers()) {
        refusal(&app, &client)
    } else {
        Some(WITHOUT_HEADER)
    };
    match refused {
        None => next.run(request).await,
        Some(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

/// Returns the reason why this client may not start and stop runs, or `None` if it may.
pub(crate) fn refusal(app: &AppState, client: &Client) -> Option<&'static str> {
    match client.may_run() {
        Some(true) => return None,
        Some(false) => return Some(WITHOUT_SCOPE),
        None => {}
    }
    let way = match client.peer {
        Peer::Socket { .. } => Way::Socket,
        Peer::Port { .. } if app.live.borrow().runs_for_all => return None,
        Peer::Port { .. } if app.live.borrow().is_behind_proxy() => Way::Proxy,
        Peer::Port { .. } => Way::Port,
    };
    verdict(client.peer.uid(), geteuid().as_raw(), way)
}

/// How a client reaches the server.
#[derive(Debug, Clone, Copy)]
enum Way {
    Socket,
    Port,
    /// The port, if the server is behind a reverse proxy. This includes direct clients of the port.
    Proxy,
}

fn verdict(uid: Option<u32>, own: u32, way: Way) -> Option<&'static str> {
    if uid.is_some_and(|uid| uid == own || uid == 0) {
        return None;
    }
    Some(match way {
        Way::Socket => {
            "only the user who started this server, or root, may start and stop runs, set marks and steer a replay\n"
        }
        Way::Port => {
            "only the user who started this server may start and stop runs, set marks and steer a replay over its port: start it with `gpumon serve \
             --allow-runs` to let everybody who reaches the port\n"
        }
        Way::Proxy => {
            "this server cannot tell who starts or stops a run, sets a mark or steers a replay, since it is behind a reverse proxy: start \
             it with `gpumon serve --allow-runs` to let everybody who reaches the proxy\n"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_may_and_others_learn_who_may() {
        let of = |uid, way| verdict(uid, 1000, way);
        assert_eq!(
            [
                of(Some(1000), Way::Port),
                of(Some(0), Way::Port),
                of(Some(1000), Way::Socket)
            ],
            [None; 3]
        );
        for uid in [Some(1001), None] {
            assert!(of(uid, Way::Port).unwrap().contains("--allow-runs"));
            assert!(of(uid, Way::Socket).unwrap().contains("or root"));
        }
        let behind_proxy = of(None, Way::Proxy).unwrap();
        assert!(
            behind_proxy.contains("proxy: start it with `gpumon serve --allow-runs`"),
            "{behind_proxy}"
        );
    }
}
