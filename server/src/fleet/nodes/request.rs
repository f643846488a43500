//! HTTP requests of a viewer to a node: the connection, the headers, and the viewer's session
//! cookie.
//!
//! A node receives the route, the query and the viewer's session at that node, and nothing else
//! from the viewer's request. [`super::response`] reads the response.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use bytes::Bytes;
use gpumon_fleet::credentials::NO_AUTHORITIES;
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpStream, lookup_host},
    spawn,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, pki_types::ServerName},
};
use tokio_util::either::Either;

use super::{credentials::NodeCredentials, problem::NodeProblem, url::NodeTarget};
use crate::{
    auth::{HOST_COOKIE_PREFIX, SESSION_COOKIE_PREFIX, cookie_values},
    connections::{Arrival, FLEET_VIA},
    runs::GPUMON_HEADER,
};

/// The time limit until the response starts. The node may have to read history from disk.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for the whole response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A request of a viewer to a node.
#[derive(Debug, Clone)]
pub(super) struct NodeRequest {
    pub(super) method: Method,
    /// The path relative to the node's address, including the query.
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
    // Requests to sign in or out are sent without this server's token.
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
        (header::VIA, HeaderValue::from_static(FLEET_VIA)),
    ];
    let session = session.map(|session| (header::COOKIE, session.clone()));
    let token = token.map(|token| (header::AUTHORIZATION, token.clone()));
    Ok(fixed.into_iter().chain(session).chain(token).collect())
}

// A connection to a node. It uses TLS unless the node is this machine.

pub(super) type NodeSocket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The time limit for resolving a name, connecting, and the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a node. Connections without TLS are only made to this machine.
///
/// # Errors
/// Returns the reason why there is no connection.
pub(super) async fn connect_to_node(
    target: &NodeTarget,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<NodeSocket, NodeProblem> {
    let name = target.to_string();
    let opened = timeout(CONNECT_TIMEOUT, open_socket(target, tls)).await;
    opened.unwrap_or_else(|_| {
        Err(NodeProblem::Unreachable(
            name,
            format!("no response within {} s", CONNECT_TIMEOUT.as_secs()),
        ))
    })
}

async fn open_socket(
    target: &NodeTarget,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<NodeSocket, NodeProblem> {
    let name = target.to_string();
    let failed = |error: io::Error| NodeProblem::from_connection_error(&name, &error);
    let found = lookup_host((target.host.as_str(), target.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(failed)?.collect();
    let connect = async || -> io::Result<TcpStream> {
        let socket = TcpStream::connect(addresses.as_slice()).await?;
        let _ = socket.set_nodelay(true);
        Ok(socket)
    };
    if !target.is_tls {
        if !addresses
            .iter()
            .all(|address| address.ip().to_canonical().is_loopback())
        {
            return Err(NodeProblem::NotEncrypted(name));
        }
        return connect().await.map(Either::Left).map_err(failed);
    }
    let config = tls.ok_or_else(|| {
        let cure = "or specify the CA certificate of the nodes with --node-ca-file FILE";
        NodeProblem::Settings(format!("{NO_AUTHORITIES}, {cure}"))
    })?;
    let server = ServerName::try_from(target.host.clone())
        .map_err(|_| NodeProblem::NotAName(target.host.clone()))?;
    let socket = connect().await.map_err(failed)?;
    let encrypted = TlsConnector::from(Arc::clone(config))
        .connect(server, socket)
        .await
        .map_err(failed)?;
    Ok(Either::Right(Box::new(encrypted)))
}

// Session cookies of nodes, which the browser stores for this server.
//
// This server renames a node's cookie and includes the original name in the value. The cookie has
// no path, so that browsers send it only to that node's API, even behind a proxy that adds a
// prefix to all paths. This server does not store the cookies.

const COOKIE_NAME_PREFIX: &str = "gpumon-node-";
const SECURE_COOKIE_PREFIX: &str = "__Secure-";

/// Returns a node's session cookie in the form that is sent to the browser, or `None` if the cookie
/// is not a session cookie.
pub(super) fn rename_cookie_for_browser(
    set: &HeaderValue,
    arrival: &Arrival,
    is_secure: bool,
) -> Option<HeaderValue> {
    let mut parts = set.to_str().ok()?.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let is_hexadecimal = value.len() <= 256 && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !(is_session_cookie_name(name) && is_hexadecimal) {
        return None;
    }
    let seconds = parts
        .find_map(|part| part.strip_prefix("Max-Age="))
        .and_then(|text| text.parse::<u32>().ok())?;
    let (prefix, secure) = if is_secure {
        (SECURE_COOKIE_PREFIX, "; Secure")
    } else {
        ("", "")
    };
    let port = arrival.server_port();
    let value = if value.is_empty() {
        String::new()
    } else {
        format!("{name}.{value}")
    };
    let text = format!(
        "{prefix}{COOKIE_NAME_PREFIX}{port}={value}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    HeaderValue::from_str(&text).ok()
}

/// Finds the node's cookie among the cookies that the browser sent, and returns it in its original
/// form.
pub(super) fn restore_cookie_for_node(
    headers: &HeaderMap,
    arrival: &Arrival,
) -> Option<HeaderValue> {
    let name = format!("{COOKIE_NAME_PREFIX}{}", arrival.server_port());
    let kept = cookie_values(headers, SECURE_COOKIE_PREFIX, &name, arrival.is_tls)
        .into_iter()
        .find(|value| !value.is_empty())?;
    let (name, value) = kept.split_once('.')?;
    let is_whole =
        is_session_cookie_name(name) && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut cookie = is_whole.then(|| HeaderValue::from_str(&format!("{name}={value}")).ok())??;
    cookie.set_sensitive(true);
    Some(cookie)
}

fn is_session_cookie_name(name: &str) -> bool {
    let port = name
        .strip_prefix(HOST_COOKIE_PREFIX)
        .unwrap_or(name)
        .strip_prefix(SESSION_COOKIE_PREFIX);
    port.is_some_and(|port| {
        (1..=5).contains(&port.len()) && port.bytes().all(|digit| digit.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;

    fn make_arrival(is_tls: bool) -> Arrival {
        let peer = Peer::Port {
            ip: [127, 0, 0, 1].into(),
            uid: None,
        };
        Arrival {
            is_tls,
            ..Arrival::new(peer, Some(([127, 0, 0, 1], 9125).into()))
        }
    }

    fn restore_cookie(cookie: &str, is_tls: bool) -> Option<String> {
        let headers: HeaderMap = [(header::COOKIE, cookie.parse().unwrap())]
            .into_iter()
            .collect();
        restore_cookie_for_node(&headers, &make_arrival(is_tls))
            .map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn session_cookie_survives_round_trip() {
        let set = HeaderValue::from_static(
            "__Host-gpumon-session-9123=0a1b; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict; \
             Secure",
        );
        let secure = rename_cookie_for_browser(&set, &make_arrival(true), true).unwrap();
        assert_eq!(
            secure,
            "__Secure-gpumon-node-9125=__Host-gpumon-session-9123.0a1b; Max-Age=2592000; \
             HttpOnly; SameSite=Strict; Secure"
        );
        let pair = secure.to_str().unwrap().split(';').next().unwrap();
        assert_eq!(
            restore_cookie(&format!("gpumon-session-9125=feed; {pair}"), true).unwrap(),
            "__Host-gpumon-session-9123=0a1b"
        );
        assert_eq!(
            rename_cookie_for_browser(&set, &make_arrival(false), false).unwrap(),
            "gpumon-node-9125=__Host-gpumon-session-9123.0a1b; Max-Age=2592000; HttpOnly; \
             SameSite=Strict"
        );
        let cleared = HeaderValue::from_static(
            "gpumon-session-9123=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
        );
        assert_eq!(
            rename_cookie_for_browser(&cleared, &make_arrival(false), false).unwrap(),
            "gpumon-node-9125=; Max-Age=0; HttpOnly; SameSite=Strict"
        );
        assert_eq!(restore_cookie("gpumon-node-9125=", false), None);
    }

    #[test]
    fn only_session_cookies_are_passed_on() {
        for set in [
            "gpumon-session-9125x=ab; Max-Age=1",
            "other=ab; Max-Age=1",
            "gpumon-session-9123=no; Max-Age=1",
            "gpumon-session-9123=ab",
            "gpumon-session-9123",
        ] {
            assert_eq!(
                rename_cookie_for_browser(
                    &HeaderValue::from_static(set),
                    &make_arrival(false),
                    false
                ),
                None,
                "{set}"
            );
        }
        for cookie in [
            "gpumon-session-9125=ab",
            "gpumon-node-9124=gpumon-session-9123.ab",
            "gpumon-node-9125=other.ab",
            "gpumon-node-9125=gpumon-session-9123.x",
            "gpumon-node-9125=ab",
        ] {
            assert_eq!(restore_cookie(cookie, false), None, "{cookie}");
        }
        let plain = "gpumon-node-9125=gpumon-session-9123.ab";
        assert_eq!(
            (
                restore_cookie(plain, false).is_some(),
                restore_cookie(plain, true)
            ),
            (true, None)
        );
    }
}
