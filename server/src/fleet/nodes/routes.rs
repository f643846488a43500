//! The routes below `/nodes/NAME/`.

use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};

use gpumon_probe::untrusted::escape_untrusted;

use super::{
    super::FleetSettings,
    credentials::NodeCredentials,
    problem::NodeProblem,
    request::{self, NodeRequest},
    response::{self, Route, SESSION_PATH},
    stream::{self, StreamViewer},
    take_slot,
    url::NodeTarget,
};
use crate::{
    app::AppState,
    auth::{self, Client},
    connections::{Arrival, ConnectionSlot},
    page,
    peer::Peer,
    responses::accepts_gzip,
    runs,
    stream::parse_query,
    view::View,
};

/// The maximum length of a query in bytes.
const MAX_QUERY_BYTES: usize = 4096;

/// The maximum size of a sign-in request in bytes.
const MAX_BODY_BYTES: usize = 4096;

/// Returns the router of all routes except streams, which have no time limit.
pub(crate) fn build_router() -> Router<AppState> {
    Router::new()
        .route("/nodes/{node}", get(add_trailing_slash))
        .route("/nodes/{node}/", get(get_index))
        .route(
            "/nodes/{node}/{*path}",
            get(get_node_resource)
                .post(forward_session_change)
                .delete(forward_session_change),
        )
        .route_layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

pub(crate) fn build_stream_router() -> Router<AppState> {
    Router::new().route("/nodes/{node}/api/v1/stream", get(open_stream))
}

/// Redirects to the path with a trailing slash, because addresses within the page are relative.
async fn add_trailing_slash(uri: Uri) -> Redirect {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    Redirect::permanent(&format!("{last}/"))
}

async fn get_index(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    Path(node): Path<String>,
    headers: HeaderMap,
) -> Response {
    match find_fleet_and_target(&app, &node).await {
        Ok(_) => page::get_index(State(app), Extension(peer), headers).await,
        Err(problem) => problem.respond(&node),
    }
}

/// Returns a file of this server's page, or the node's response to an API request.
async fn get_node_resource(
    State(app): State<AppState>,
    Extension(arrival): Extension<Arrival>,
    Extension(client): Extension<Client>,
    Path((node, path)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if !path.starts_with("api/") {
        return page::get_file(State(app), Extension(arrival.peer), Path(path), headers).await;
    }
    let asked = ViewerRequest {
        app: &app,
        arrival: &arrival,
        client: &client,
        headers: &headers,
        node: &node,
    };
    asked
        .request_node(Method::GET, &path, uri.query(), Bytes::new())
        .await
}

/// Passes a viewer's sign-in or sign-out on to the node. Nothing else on the node can be changed
/// through this server.
async fn forward_session_change(
    State(app): State<AppState>,
    Extension(arrival): Extension<Arrival>,
    Extension(client): Extension<Client>,
    Path((node, path)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !runs::has_gpumon_header(&headers) {
        return (StatusCode::FORBIDDEN, auth::routes::SESSION_HEADER_MESSAGE).into_response();
    }
    let asked = ViewerRequest {
        app: &app,
        arrival: &arrival,
        client: &client,
        headers: &headers,
        node: &node,
    };
    asked.request_node(method, &path, None, body).await
}

async fn open_stream(
    State(app): State<AppState>,
    Extension(arrival): Extension<Arrival>,
    Extension(client): Extension<Client>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    Path(node): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let asked = ViewerRequest {
        app: &app,
        arrival: &arrival,
        client: &client,
        headers: &headers,
        node: &node,
    };
    asked.pass_on_stream(request, &slot).await
}

/// A viewer's request to a node.
struct ViewerRequest<'a> {
    app: &'a AppState,
    arrival: &'a Arrival,
    client: &'a Client,
    headers: &'a HeaderMap,
    node: &'a str,
}

impl ViewerRequest<'_> {
    async fn request_node(
        &self,
        method: Method,
        path: &str,
        query: Option<&str>,
        body: Bytes,
    ) -> Response {
        let (fleet, target) = match find_fleet_and_target(self.app, self.node).await {
            Ok(known) => known,
            Err(problem) => return problem.respond(self.node),
        };
        match self
            .pass_on_request(&fleet, &target, (method, path, query, body))
            .await
        {
            Ok(response) => response,
            Err(problem) => fleet
                .nodes
                .explain_problem(&fleet.reader, self.node, problem)
                .await
                .respond(self.node),
        }
    }

    async fn pass_on_request(
        &self,
        fleet: &FleetSettings,
        target: &NodeTarget,
        (method, path, query, body): (Method, &str, Option<&str>, Bytes),
    ) -> Result<Response, NodeProblem> {
        let is_session = path == SESSION_PATH;
        if !(is_session || method == Method::GET) {
            return Err(NodeProblem::ReadOnly(target.to_string()));
        }
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let route = Route::find(path).filter(|_| query.len() <= MAX_QUERY_BYTES);
        let route = route.ok_or_else(|| NodeProblem::NotPassedOn(target.to_string()))?;
        let is_trusted = fleet.nodes.may_receive_credentials(target);
        if !(is_trusted || method == Method::GET) {
            return Err(NodeProblem::NotNamed(target.to_string()));
        }
        let _place =
            take_slot(&fleet.nodes.requests, self.client.peer_key()).ok_or(NodeProblem::TooMany)?;
        let session =
            request::restore_cookie_for_node(self.headers, self.arrival).filter(|_| is_trusted);
        let question = NodeRequest {
            method,
            path: format!("{path}{query}"),
            body,
            session,
        };
        let answer = request::send_request(
            target,
            &question,
            &self.node_credentials(fleet, target).await?,
        )
        .await?;
        if answer.status() == StatusCode::UNAUTHORIZED && !is_trusted {
            return Err(NodeProblem::NotNamed(target.to_string()));
        }
        let set = if is_session {
            self.session_cookies(&answer)
        } else {
            Vec::new()
        };
        let compress = accepts_gzip(self.headers);
        let mut response = response::read_response(
            &fleet.nodes.bodies,
            &target.to_string(),
            route,
            answer,
            compress,
        )
        .await?;
        response
            .headers_mut()
            .extend(set.into_iter().map(|cookie| (header::SET_COOKIE, cookie)));
        Ok(response)
    }

    /// Returns the session cookies in a node's response, renamed for the viewer's browser.
    fn session_cookies<T>(&self, answer: &hyper::Response<T>) -> Vec<HeaderValue> {
        let is_secure = auth::routes::browser_uses_tls(self.app, self.arrival, self.headers);
        let set = answer.headers().get_all(header::SET_COOKIE).iter();
        set.filter_map(|set| request::rename_cookie_for_browser(set, self.arrival, is_secure))
            .collect()
    }

    async fn pass_on_stream(&self, request: Request, slot: &Arc<ConnectionSlot>) -> Response {
        let encoding = match parse_query(request.uri()) {
            Ok(query) => query.encoding,
            Err(refusal) => return *refusal,
        };
        let (fleet, target) = match find_fleet_and_target(self.app, self.node).await {
            Ok(known) => known,
            Err(problem) => return problem.respond(self.node),
        };
        let opened = async {
            let place = take_slot(&fleet.nodes.streams, self.client.peer_key())
                .ok_or(NodeProblem::TooMany)?;
            let is_trusted = fleet.nodes.may_receive_credentials(&target);
            let session =
                request::restore_cookie_for_node(self.headers, self.arrival).filter(|_| is_trusted);
            let node = stream::connect_stream(
                &target,
                encoding,
                &self.node_credentials(&fleet, &target).await?,
                session.as_ref(),
            )
            .await?;
            match node {
                Err(StatusCode::UNAUTHORIZED) if !is_trusted => {
                    Err(NodeProblem::NotNamed(target.to_string()))
                }
                node => Ok((place, node)),
            }
        };
        match opened.await {
            Ok((place, Ok(node))) => {
                let viewer = StreamViewer {
                    app: self.app,
                    client: self.client,
                    slot,
                    place,
                };
                stream::start_relay(node, viewer, request, encoding)
                    .unwrap_or_else(|refusal| *refusal)
            }
            Ok((_, Err(status))) => {
                let message = format!(
                    "{}: {target} refuses the stream ({status}); sign in at the node, or specify a \
                     token that the node accepts with --node-token-file FILE\n",
                    escape_untrusted(self.node)
                );
                (status, message).into_response()
            }
            Err(problem) => fleet
                .nodes
                .explain_problem(&fleet.reader, self.node, problem)
                .await
                .respond(self.node),
        }
    }

    /// Returns the credentials for the node. They include this server's token only if the node is
    /// trusted and the viewer may see what the token gives access to.
    async fn node_credentials(
        &self,
        fleet: &FleetSettings,
        target: &NodeTarget,
    ) -> Result<NodeCredentials, NodeProblem> {
        let shown = fleet.nodes.credentials.refresh().await?;
        let sees_own = matches!(
            View::for_client(self.client, self.app.show_processes).await,
            View::Own(_)
        );
        let is_for_node = !sees_own && fleet.nodes.may_receive_credentials(target);
        Ok(NodeCredentials {
            token: shown.token.filter(|_| is_for_node),
            ..shown
        })
    }
}

/// Returns the fleet's settings and the address of the node.
async fn find_fleet_and_target(
    app: &AppState,
    node: &str,
) -> Result<(Arc<FleetSettings>, NodeTarget), NodeProblem> {
    let fleet = app.fleet.clone().ok_or(NodeProblem::Unknown)?;
    let target = fleet.nodes.find_target(&fleet.reader, node).await?;
    Ok((fleet, target))
}
