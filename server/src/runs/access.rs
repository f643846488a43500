//! Who may start and stop runs and set marks: the server's own user and root, and everybody where they were allowed to.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use rustix::process::geteuid;

use crate::{app::AppState, peer::Peer};

/// A page of another origin cannot send this header without the server's leave, which it never gets.
pub(crate) const HEADER: &str = "x-gpumon";
const WITHOUT_HEADER: &str = "send the header `X-Gpumon: run` with what starts or stops a run or sets a mark, which no \
                              page of another origin can do\n";

pub(crate) async fn may_run(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let may = if request.headers().contains_key(HEADER) { refusal(&app, peer) } else { Some(WITHOUT_HEADER) };
    match may {
        None => next.run(request).await,
        Some(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

/// Why this client may not start and stop runs; `None` where it may.
pub(super) fn refusal(app: &AppState, peer: Peer) -> Option<&'static str> {
    let is_port = matches!(peer, Peer::Port { .. });
    let for_all = is_port && app.runs.settings().allowed_for_all;
    verdict(peer.uid(), geteuid().as_raw(), is_port, for_all)
}

fn verdict(uid: Option<u32>, own: u32, is_port: bool, for_all: bool) -> Option<&'static str> {
    if for_all || uid.is_some_and(|uid| uid == own || uid == 0) {
        return None;
    }
    Some(if is_port {
        "only the user who started this server may start and stop runs and set marks over its port: start it with \
         `gpumon serve --allow-runs` to let everybody who reaches the port\n"
    } else {
        "only the user who started this server, or root, may start and stop runs and set marks\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_may_and_others_only_where_they_were_allowed_to() {
        let of = |uid, is_port, for_all| verdict(uid, 1000, is_port, for_all);
        assert_eq!([of(Some(1000), true, false), of(Some(0), true, false), of(Some(1000), false, false)], [None; 3]);
        for uid in [Some(1001), None] {
            assert!(of(uid, true, false).unwrap().contains("--allow-runs"));
            assert!(of(uid, false, false).unwrap().contains("or root"));
            assert_eq!(of(uid, true, true), None);
        }
    }
}
