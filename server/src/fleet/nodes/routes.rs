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

use gpumon_probe::untrusted::escaped;

use super::{
    super::FleetSettings,
    answer::{self, Route, SESSION},
    cookie,
    credentials::Shown,
    problem::NodeProblem,
    request::{self, Question},
    stream::{self, Viewer},
    url::Target,
};
use crate::{
    app::AppState,
    auth::{self, Client},
    connections::{Arrival, ConnectionSlot},
    page,
    peer::Peer,
    respond::accepts_gzip,
    runs,
    stream::query,
    view::View,
};

/// The maximum length of a query in bytes.
const LONGEST_QUERY: usize = 4096;

/// The maximum size of a sign-in request in bytes.
const LARGEST: usize = 4096;

/// Returns all routes except those of streams, which have no time limit.
pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/nodes/{node}", get(with_slash))
        .route("/nodes/{node}/", get(index))
        .route(
            "/nodes/{node}/{*path}",
            get(read).post(change).delete(change),
        )
        .route_layer(DefaultBodyLimit::max(LARGEST))
}

pub(crate) fn streams() -> Router<AppState> {
    Router::new().route("/nodes/{node}/api/v1/stream", get(stream))
}

/// Adds the final slash, because the addresses within the page are relative.
async fn with_slash(uri: Uri) -> Redirect {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    Redirect::permanent(&format!("{last}/"))
}

async fn index(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    Path(node): Path<String>,
    headers: HeaderMap,
) -> Response {
    match known(&app, &node).await {
        Ok(_) => page::index(State(app), Extension(peer), headers).await,
        Err(problem) => problem.answer(&node),
    }
}

/// Returns a file of this server's page, or the node's response to an API request.
async fn read(
    State(app): State<AppState>,
    Extension(arrival): Extension<Arrival>,
    Extension(client): Extension<Client>,
    Path((node, path)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if !path.starts_with("api/") {
        return page::file(State(app), Extension(arrival.peer), Path(path), headers).await;
    }
    let asked = Asked {
        app: &app,
        arrival: &arrival,
        client: &client,
        headers: &headers,
        node: &node,
    };
    asked
        .answer(Method::GET, &path, uri.query(), Bytes::new())
        .await
}

/// Passes on a viewer's sign-in or sign-out at the node. No other changes are passed on.
async fn change(
    State(app): State<AppState>,
    Extension(arrival): Extension<Arrival>,
    Extension(client): Extension<Client>,
    Path((node, path)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !runs::is_meant(&headers) {
        return (StatusCode::FORBIDDEN, auth::routes::WITHOUT_HEADER).into_response();
    }
    let asked = Asked {
        app: &app,
        arrival: &arrival,
        client: &client,
        headers: &headers,
        node: &node,
    };
    asked.answer(method, &path, None, body).await
}

async fn stream(
    State(app): State<AppState>,
    Extension(arrival): Extension<Arrival>,
    Extension(client): Extension<Client>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    Path(node): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let asked = Asked {
        app: &app,
        arrival: &arrival,
        client: &client,
        headers: &headers,
        node: &node,
    };
    asked.stream(request, &slot).await
}

/// A viewer's request to a node.
struct Asked<'a> {
    app: &'a AppState,
    arrival: &'a Arrival,
    client: &'a Client,
    headers: &'a HeaderMap,
    node: &'a str,
}

impl Asked<'_> {
    async fn answer(
        &self,
        method: Method,
        path: &str,
        query: Option<&str>,
        body: Bytes,
    ) -> Response {
        let (fleet, target) = match known(self.app, self.node).await {
            Ok(known) => known,
            Err(problem) => return problem.answer(self.node),
        };
        match self
            .passed_on(&fleet, &target, (method, path, query, body))
            .await
        {
            Ok(response) => response,
            Err(problem) => fleet
                .nodes
                .explained(&fleet.reader, self.node, problem)
                .await
                .answer(self.node),
        }
    }

    async fn passed_on(
        &self,
        fleet: &FleetSettings,
        target: &Target,
        (method, path, query, body): (Method, &str, Option<&str>, Bytes),
    ) -> Result<Response, NodeProblem> {
        let is_session = path == SESSION;
        if !(is_session || method == Method::GET) {
            return Err(NodeProblem::ReadOnly(target.to_string()));
        }
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let route = Route::find(path).filter(|_| query.len() <= LONGEST_QUERY);
        let route = route.ok_or_else(|| NodeProblem::NotPassedOn(target.to_string()))?;
        let is_trusted = fleet.nodes.is_trusted(target);
        if !(is_trusted || method == Method::GET) {
            return Err(NodeProblem::NotNamed(target.to_string()));
        }
        let _place = fleet
            .nodes
            .questions
            .take(self.client.who())
            .ok_or(NodeProblem::TooMany)?;
        let session = cookie::of_node(self.headers, self.arrival).filter(|_| is_trusted);
        let question = Question {
            method,
            path: format!("{path}{query}"),
            body,
            session,
        };
        let answer = request::ask(target, &question, &self.shown(fleet, target).await?).await?;
        if answer.status() == StatusCode::UNAUTHORIZED && !is_trusted {
            return Err(NodeProblem::NotNamed(target.to_string()));
        }
        let set = if is_session {
            self.session_cookies(&answer)
        } else {
            Vec::new()
        };
        let compress = accepts_gzip(self.headers);
        let mut response = answer::read(
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
        let is_secure = auth::routes::is_secure(self.app, self.arrival, self.headers);
        let set = answer.headers().get_all(header::SET_COOKIE).iter();
        set.filter_map(|set| cookie::renamed(set, self.arrival, is_secure))
            .collect()
    }

    async fn stream(&self, request: Request, slot: &Arc<ConnectionSlot>) -> Response {
        let encoding = match query(request.uri()) {
            Ok(query) => query.encoding,
            Err(refusal) => return *refusal,
        };
        let (fleet, target) = match known(self.app, self.node).await {
            Ok(known) => known,
            Err(problem) => return problem.answer(self.node),
        };
        let opened = async {
            let place = fleet
                .nodes
                .streams
                .take(self.client.who())
                .ok_or(NodeProblem::TooMany)?;
            let is_trusted = fleet.nodes.is_trusted(&target);
            let session = cookie::of_node(self.headers, self.arrival).filter(|_| is_trusted);
            let node = stream::open(
                &target,
                encoding,
                &self.shown(&fleet, &target).await?,
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
                let viewer = Viewer {
                    app: self.app,
                    client: self.client,
                    slot,
                    place,
                };
                stream::pass_on(node, viewer, request, encoding).unwrap_or_else(|refusal| *refusal)
            }
            Ok((_, Err(status))) => {
                let message = format!(
                    "{}: {target} refuses its stream ({status}); sign in there, or name a token that it takes with \
                     --node-token-file FILE\n",
                    escaped(self.node)
                );
                (status, message).into_response()
            }
            Err(problem) => fleet
                .nodes
                .explained(&fleet.reader, self.node, problem)
                .await
                .answer(self.node),
        }
    }

    /// Returns the credentials for the node. This server's token is included only if the viewer may
    /// see what the token allows, and if the node is trusted.
    async fn shown(&self, fleet: &FleetSettings, target: &Target) -> Result<Shown, NodeProblem> {
        let shown = fleet.nodes.credentials.shown().await?;
        let sees_own = matches!(
            View::of(self.client, self.app.show_processes).await,
            View::Own(_)
        );
        let is_for_node = !sees_own && fleet.nodes.is_trusted(target);
        Ok(Shown {
            token: shown.token.filter(|_| is_for_node),
            ..shown
        })
    }
}

/// Returns the fleet, and the address of this node.
async fn known(app: &AppState, node: &str) -> Result<(Arc<FleetSettings>, Target), NodeProblem> {
    let fleet = app.fleet.clone().ok_or(NodeProblem::Unknown)?;
    let target = fleet.nodes.target(&fleet.reader, node).await?;
    Ok((fleet, target))
}
