//! All routes of a single host at `/nodes/NAME/`: the usual routes with the hub of the host. They
//! cannot change anything there.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{Extensions, Uri, uri::PathAndQuery},
    middleware::Next,
    response::{IntoResponse, Response},
};
use hyper::upgrade::OnUpgrade;
use percent_encoding::percent_decode_str;
use tower::ServiceExt;

use super::node::{HostNode, Nested};
use crate::{
    alerts::{AlertSettings, Alerts},
    app::{AppState, Encoders},
    auth::{Client, RatePerClient},
    connections::{Arrival, ConnectionSlot},
    peer::Peer,
    routes,
    watching::Watching,
};

/// Serves requests to the paths of a host, and passes on all others.
pub(crate) async fn route(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let hosts = app.fleet.as_ref().and_then(|fleet| fleet.hosts.clone());
    let Some(hosts) = hosts else {
        return next.run(request).await;
    };
    let Some((name, path)) = of_node(request.uri()) else {
        return next.run(request).await;
    };
    match hosts.node_called(&name) {
        Ok(node) => {
            let router = nested(&app, node).router.clone();
            router.oneshot(of_path(request, path)).await.into_response()
        }
        // The next handler responds that there is no such node.
        Err(_) => next.run(request).await,
    }
}

/// Splits a path `/nodes/NAME/…` into the node's name and the remaining path with its query.
fn of_node(uri: &Uri) -> Option<(String, Uri)> {
    let (name, _) = uri.path().strip_prefix("/nodes/")?.split_once('/')?;
    let rest = &uri.path()["/nodes/".len() + name.len()..];
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let path: PathAndQuery = format!("{rest}{query}").parse().ok()?;
    let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
    Some((name, Uri::from(path)))
}

/// Returns the request with another path. The origin and the client of the request are kept, but
/// parameters of the original path are not.
fn of_path(request: Request, path: Uri) -> Request {
    let (mut parts, body) = request.into_parts();
    let mut known = Extensions::new();
    hand_on::<Arrival>(&mut parts.extensions, &mut known);
    hand_on::<Client>(&mut parts.extensions, &mut known);
    hand_on::<Peer>(&mut parts.extensions, &mut known);
    hand_on::<Arc<ConnectionSlot>>(&mut parts.extensions, &mut known);
    hand_on::<OnUpgrade>(&mut parts.extensions, &mut known);
    // Permissions and users of this machine have no meaning on the other one.
    if let Some(client) = known.get_mut::<Client>() {
        client.peer = client.peer.of_other_machine();
    }
    (parts.uri, parts.extensions) = (path, known);
    Request::from_parts(parts, body)
}

fn hand_on<T: Clone + Send + Sync + 'static>(from: &mut Extensions, to: &mut Extensions) {
    if let Some(known) = from.remove::<T>() {
        to.insert(known);
    }
}

fn nested<'a>(app: &AppState, node: &'a HostNode) -> &'a Nested {
    node.nested.get_or_init(|| {
        let encoders = Arc::new(Encoders::new());
        // Viewers of a host do not count as viewers of this machine.
        let watching = Watching::new();
        let app = AppState {
            hub: Arc::clone(&node.hub),
            sampling_interval: Arc::clone(&node.sampling_interval),
            alerts: Arc::new(Alerts::new(
                Arc::clone(&node.hub),
                &AlertSettings::default(),
                Arc::clone(&watching),
            )),
            watching,
            encoders: Arc::clone(&encoders),
            event_limit: Arc::new(RatePerClient::new()),
            replay: None,
            // With this setting, routes refuse all changes.
            reads_gpus: false,
            fleet: None,
            ..app.clone()
        };
        let trim = Box::new(move || {
            encoders.trim();
        });
        Nested {
            router: routes::everything(&app).with_state(app),
            trim,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_node_and_what_of_it() {
        let of = |path: &str| {
            of_node(&path.parse().unwrap()).map(|(name, path)| (name, path.to_string()))
        };
        let is = |name: &str, path: &str| Some((name.to_owned(), path.to_owned()));
        assert_eq!(of("/nodes/n1/"), is("n1", "/"));
        assert_eq!(
            of("/nodes/ana%40n1%3A22/api/v1/history?from_ms=1"),
            is("ana@n1:22", "/api/v1/history?from_ms=1")
        );
        assert_eq!(of("/nodes/n1//x"), is("n1", "//x"));
        for path in ["/nodes/n1", "/nodes/", "/node/n1/", "/"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
