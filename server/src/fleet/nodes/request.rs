//! What a viewer asks of a node over HTTP, and what comes back of it.
//!
//! Nothing of a viewer's request goes there but which question it is, and the session at that node; nothing of the answer
//! comes back but its status, what it is of, and its body.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use gpumon_probe::untrusted::escaped;
use http_body_util::{Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{spawn, time::timeout};

use super::{connect::connect, cookie, credentials::Shown, problem::NodeProblem, url::Target};
use crate::{
    behind_proxy::{PASSED_ON, VIA},
    connections::Arrival,
    runs::access::HEADER,
};

/// History may have to be read from the node's disk.
const FIRST_BYTE: Duration = Duration::from_secs(10);

/// All of an answer.
const WHOLE: Duration = Duration::from_secs(30);

/// What a node knows of a month, in as many points as there may be, is some megabytes.
const LONGEST: usize = 64 << 20;

const PASSED_BACK: [HeaderName; 3] = [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::RETRY_AFTER];

/// What a viewer asks of a node.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) method: Method,
    /// Below the node's address, with what stands behind the question mark.
    pub(super) path: String,
    pub(super) body: Bytes,
    pub(super) takes_gzip: bool,
    /// The viewer's at the node.
    pub(super) session: Option<HeaderValue>,
}

/// Asks with the viewer's own session, where there is one that counts, and as this server otherwise.
pub(super) async fn answer(
    target: &Target,
    question: &Question,
    shown: &Shown,
    arrival: &Arrival,
    is_secure: bool,
) -> Result<Response, NodeProblem> {
    // Who signs in shows who they are, and nobody else.
    let token = shown.token.as_ref().filter(|_| question.method == Method::GET);
    let session = question.session.as_ref();
    let mut answer = ask(target, question, shown, session, token.filter(|_| session.is_none())).await?;
    if answer.status() == StatusCode::UNAUTHORIZED && session.is_some() && token.is_some() {
        answer = ask(target, question, shown, None, token).await?;
    }
    passed_back(target, answer, arrival, is_secure)
}

async fn ask(
    target: &Target,
    question: &Question,
    shown: &Shown,
    session: Option<&HeaderValue>,
    token: Option<&HeaderValue>,
) -> Result<hyper::Response<Incoming>, NodeProblem> {
    let socket = connect(target, shown.tls.as_ref()).await?;
    let broken = |error: hyper::Error| NodeProblem::NotGpumon(target.to_string(), error.to_string());
    let asked = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(broken)?;
        spawn(timeout(WHOLE, connection));
        let mut request = Request::new(Full::new(question.body.clone()));
        *request.method_mut() = question.method.clone();
        let path = format!("{}{}", target.path, question.path);
        *request.uri_mut() = path.parse().map_err(|_| NodeProblem::NotPassedOn(target.to_string()))?;
        *request.headers_mut() = headers(target, session, token)?;
        let headers = request.headers_mut();
        if question.takes_gzip {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if question.method != Method::GET {
            headers.insert(HEADER, HeaderValue::from_static("run"));
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        sender.send_request(request).await.map_err(broken)
    };
    let silent = || NodeProblem::Silent(target.to_string(), FIRST_BYTE.as_secs());
    timeout(FIRST_BYTE, asked).await.map_err(|_| silent())?
}

/// What every request to a node says. It says that it is passed on: then a node on this machine does not take whoever asks
/// for this server's user.
pub(super) fn headers(
    target: &Target,
    session: Option<&HeaderValue>,
    token: Option<&HeaderValue>,
) -> Result<HeaderMap, NodeProblem> {
    let host = HeaderValue::from_str(&target.authority).map_err(|_| NodeProblem::NotAName(target.host.clone()))?;
    let fixed = [(header::HOST, host), (VIA, HeaderValue::from_static(PASSED_ON))];
    let session = session.map(|session| (header::COOKIE, session.clone()));
    let token = token.map(|token| (header::AUTHORIZATION, token.clone()));
    Ok(fixed.into_iter().chain(session).chain(token).collect())
}

/// What is none of gpumon's answers is not passed back: nothing of a node runs in a page of this server.
fn passed_back(
    target: &Target,
    answer: hyper::Response<Incoming>,
    arrival: &Arrival,
    is_secure: bool,
) -> Result<Response, NodeProblem> {
    let (head, body) = answer.into_parts();
    let not_gpumon = |what: String| NodeProblem::NotGpumon(target.to_string(), what);
    if !(head.status.is_success() || head.status.is_client_error() || head.status == StatusCode::SERVICE_UNAVAILABLE) {
        return Err(not_gpumon(format!("it answers with {}", head.status)));
    }
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_known = kind.starts_with("application/json") || kind.starts_with("text/plain");
    if !is_known && head.status != StatusCode::NO_CONTENT {
        return Err(not_gpumon(format!("it answers with '{}'", escaped(kind))));
    }
    let mut response = Body::new(Limited::new(body, LONGEST)).into_response();
    *response.status_mut() = head.status;
    let headers = response.headers_mut();
    for name in PASSED_BACK {
        if let Some(value) = head.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let set = head.headers.get_all(header::SET_COOKIE).iter();
    for cookie in set.filter_map(|set| cookie::renamed(set, arrival, is_secure)) {
        headers.append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
