//! The routes of a single host at `/nodes/NAME/`, and the endpoint `GET /api/v1/fleet/targets`. A
//! host's routes are the usual routes, but they use the host's hub, and cannot change anything on
//! the host.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{Extensions, StatusCode, Uri, uri::PathAndQuery},
    middleware::Next,
    response::{IntoResponse, Response},
};
use gpumon_fleet::discovery::{Target, TargetGroup, group_targets};
use hyper::upgrade::OnUpgrade;
use percent_encoding::percent_decode_str;
use schemars::JsonSchema;
use serde::Deserialize;
use tower::ServiceExt;

use super::node::{HostNode, HostRoutes};
use crate::{
    alerts::{AlertSettings, Alerts},
    app::{AppState, Encoders},
    auth::{Client, RatePerClient},
    connections::{Arrival, ConnectionSlot},
    peer::Peer,
    query,
    refusal::{Refusal, bad_request},
    routes,
    sampling::ViewerCounter,
};

/// Serves requests for a host's paths, and passes all other requests to `next`.
pub(crate) async fn route_to_host(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let hosts = app.fleet.as_ref().and_then(|fleet| fleet.hosts.clone());
    let Some(hosts) = hosts else {
        return next.run(request).await;
    };
    let Some((name, path)) = split_node_path(request.uri()) else {
        return next.run(request).await;
    };
    match hosts.find_node(&name) {
        Ok(node) => {
            let router = get_or_create_routes(&app, node).router.clone();
            router
                .oneshot(replace_path(request, path))
                .await
                .into_response()
        }
        // The next handler responds that the node does not exist.
        Err(_) => next.run(request).await,
    }
}

/// Splits a path `/nodes/NAME/…` into the node's name and the rest of the path, including its
/// query.
fn split_node_path(uri: &Uri) -> Option<(String, Uri)> {
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

/// Returns the request with another path. The request's origin and client are kept, but parameters
/// of the original path are dropped.
fn replace_path(request: Request, path: Uri) -> Request {
    let (mut parts, body) = request.into_parts();
    let mut known = Extensions::new();
    move_extension::<Arrival>(&mut parts.extensions, &mut known);
    move_extension::<Client>(&mut parts.extensions, &mut known);
    move_extension::<Peer>(&mut parts.extensions, &mut known);
    move_extension::<Arc<ConnectionSlot>>(&mut parts.extensions, &mut known);
    move_extension::<OnUpgrade>(&mut parts.extensions, &mut known);
    // The user and the permissions that a client has on this machine have no meaning on the other
    // machine.
    if let Some(client) = known.get_mut::<Client>() {
        client.peer = client.peer.without_local_user();
    }
    (parts.uri, parts.extensions) = (path, known);
    Request::from_parts(parts, body)
}

fn move_extension<T: Clone + Send + Sync + 'static>(from: &mut Extensions, to: &mut Extensions) {
    if let Some(known) = from.remove::<T>() {
        to.insert(known);
    }
}

fn get_or_create_routes<'a>(app: &AppState, node: &'a HostNode) -> &'a HostRoutes {
    node.nested.get_or_init(|| {
        let encoders = Arc::new(Encoders::new());
        // A host's viewers do not count as viewers of this machine.
        let watching = ViewerCounter::new();
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
            encoders.release_unused_responses();
        });
        HostRoutes {
            router: routes::all_routes(&app).with_state(app),
            trim,
        }
    })
}

/// The default port of `gpumon serve`.
const DEFAULT_TARGET_PORT: u16 = 9123;

/// The query of `GET /api/v1/fleet/targets`: the port of the targets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetsQuery {
    /// The port of each host; 9123 by default.
    #[schemars(range(min = 1))]
    port: Option<u16>,
}

/// Returns the hosts as the user typed them, as targets for Prometheus' `http_sd_configs`. Hosts
/// that do not respond are included, so that Prometheus reports them as down.
pub(crate) async fn get_targets(
    State(app): State<AppState>,
    uri: Uri,
) -> Result<Json<Vec<TargetGroup>>, Refusal> {
    let hint = "port=9123, or no parameter";
    let TargetsQuery { port } = query::parse_query(&uri, hint)?;
    let port = port.unwrap_or(DEFAULT_TARGET_PORT);
    if port == 0 {
        return Err(bad_request(format!("port is 0; use {hint}")));
    }
    let hosts = app.fleet.as_ref().and_then(|fleet| fleet.hosts.as_ref()).ok_or_else(|| {
        let message =
            "this server has no list of hosts: start it with --hosts, or let Prometheus discover \
             its targets in another way\n";
        (StatusCode::NOT_FOUND, message.to_owned())
    })?;
    let targets = hosts.host_list().hosts().iter().map(|host| Target {
        host: host.address().to_owned(),
    });
    Ok(Json(group_targets(&targets.collect::<Vec<_>>(), port, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_split_into_node_and_rest() {
        let of = |path: &str| {
            split_node_path(&path.parse().unwrap()).map(|(name, path)| (name, path.to_string()))
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
