//! Who may start and stop runs: the server's own user and root, and everybody where they were allowed to.

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rustix::process::geteuid;

use crate::{app::AppState, peer::Peer};

/// A page of another origin cannot send this header without the server's leave, which it never gets.
pub(crate) const HEADER: &str = "x-gpumon";

pub(crate) async fn may_run(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let is_port = matches!(peer, Peer::Port { .. });
    let for_all = is_port && app.runs.settings().allowed_for_all;
    match verdict(peer.uid(), geteuid().as_raw(), is_port, for_all, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

fn verdict(uid: Option<u32>, own: u32, is_port: bool, for_all: bool, headers: &HeaderMap) -> Result<(), &'static str> {
    if !headers.contains_key(HEADER) {
        return Err(
            "send the header `X-Gpumon: run` with what starts or stops a run, which no page of another origin \
                    can do\n",
        );
    }
    if for_all || uid.is_some_and(|uid| uid == own || uid == 0) {
        return Ok(());
    }
    Err(if is_port {
        "only the user who started this server may start and stop runs over its port: start it with `gpumon serve \
         --allow-runs` to let everybody who reaches the port\n"
    } else {
        "only the user who started this server, or root, may start and stop runs\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_may_and_others_only_where_they_were_allowed_to() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, "run".parse().unwrap());
        let of = |uid, is_port, for_all| verdict(uid, 1000, is_port, for_all, &headers);
        assert!(of(Some(1000), true, false).is_ok() && of(Some(0), true, false).is_ok());
        assert!(of(Some(1000), false, false).is_ok());
        for uid in [Some(1001), None] {
            assert!(of(uid, true, false).unwrap_err().contains("--allow-runs"));
            assert!(of(uid, false, false).unwrap_err().contains("or root"));
            assert!(of(uid, true, true).is_ok());
        }
    }

    #[test]
    fn without_the_header_nobody_may() {
        for for_all in [true, false] {
            assert!(verdict(Some(1000), 1000, true, for_all, &HeaderMap::new()).unwrap_err().contains("X-Gpumon"));
        }
    }
}
