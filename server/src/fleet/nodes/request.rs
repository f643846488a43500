//! HTTP requests of a viewer to a node.
//!
//! A node receives the route, the query and the viewer's session at that node, and nothing else
//! from the viewer's request. [`super::answer`] reads the response.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{spawn, time::timeout};

use super::{
    connect::connect_to_node, credentials::NodeCredentials, problem::NodeProblem, url::NodeTarget,
};
use crate::{
    behind_proxy::{FLEET_VIA, VIA},
    runs::access::GPUMON_HEADER,
};

/// The time limit until the response starts. The node may have to read history from disk.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for the whole response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A request of a viewer to a node.
#[derive(Debug, Clone)]
pub(super) struct NodeRequest {
    pub(super) method: Method,
    /// The path below the node's address, with the query.
    pub(super) path: String,
    pub(super) body: Bytes,
    /// The cookie of the viewer's session at the node.
    pub(super) session: Option<HeaderValue>,
}

/// Sends the request with the viewer's session, or with this server's token if the viewer has no
/// valid session.
///
/// # Errors
/// Returns an error if the node cannot be reached or does not respond.
pub(super) async fn send_request(
    target: &NodeTarget,
    question: &NodeRequest,
    shown: &NodeCredentials,
) -> Result<hyper::Response<Incoming>, NodeProblem> {
    // Sign-in and sign-out requests are sent without this server's token.
    let token = shown
        .token
        .as_ref()
        .filter(|_| question.method == Method::GET);
    let session = question.session.as_ref();
    let answer = send_with_credentials(
        target,
        question,
        shown,
        session,
        token.filter(|_| session.is_none()),
    )
    .await?;
    if answer.status() == StatusCode::UNAUTHORIZED && session.is_some() && token.is_some() {
        return send_with_credentials(target, question, shown, None, token).await;
    }
    Ok(answer)
}

async fn send_with_credentials(
    target: &NodeTarget,
    question: &NodeRequest,
    shown: &NodeCredentials,
    session: Option<&HeaderValue>,
    token: Option<&HeaderValue>,
) -> Result<hyper::Response<Incoming>, NodeProblem> {
    let socket = connect_to_node(target, shown.tls.as_ref()).await?;
    let broken =
        |error: hyper::Error| NodeProblem::NotGpumon(target.to_string(), error.to_string());
    let asked = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(broken)?;
        spawn(timeout(RESPONSE_TIMEOUT, connection));
        let mut request = Request::new(Full::new(question.body.clone()));
        *request.method_mut() = question.method.clone();
        let path = format!("{}{}", target.path, question.path);
        *request.uri_mut() = path
            .parse()
            .map_err(|_| NodeProblem::NotPassedOn(target.to_string()))?;
        *request.headers_mut() = build_headers(target, session, token)?;
        let headers = request.headers_mut();
        if question.method != Method::GET {
            headers.insert(GPUMON_HEADER, HeaderValue::from_static("run"));
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
        }
        sender.send_request(request).await.map_err(broken)
    };
    let silent = || NodeProblem::Silent(target.to_string(), FIRST_BYTE_TIMEOUT.as_secs());
    timeout(FIRST_BYTE_TIMEOUT, asked)
        .await
        .map_err(|_| silent())?
}

/// Returns the headers of a request to a node. The `Via` header marks the request as passed on, so
/// that a node on this machine does not mistake the viewer for this server's user.
pub(super) fn build_headers(
    target: &NodeTarget,
    session: Option<&HeaderValue>,
    token: Option<&HeaderValue>,
) -> Result<HeaderMap, NodeProblem> {
    let host = HeaderValue::from_str(&target.authority)
        .map_err(|_| NodeProblem::NotAName(target.host.clone()))?;
    let fixed = [
        (header::HOST, host),
        (VIA, HeaderValue::from_static(FLEET_VIA)),
    ];
    let session = session.map(|session| (header::COOKIE, session.clone()));
    let token = token.map(|token| (header::AUTHORIZATION, token.clone()));
    Ok(fixed.into_iter().chain(session).chain(token).collect())
}
