//! HTTP/1.1 connections: how they are accepted, their TLS handshakes, and their time limits.
//! [`slots`] limits their number, and [`arrival`] contains a connection's origin.

mod arrival;
mod slots;

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;
use tower::ServiceExt;

pub(crate) use self::{
    arrival::{Arrival, ClientCertificate, FLEET_VIA, replace_proxy_by_client},
    slots::{BusyGuard, ConnectionSlot, ConnectionTable},
};
use crate::{
    auth::AccessPolicy,
    listen::Listener,
    live_settings::LiveSettings,
    peer::Peer,
    web_config::{Tls, WebConfig},
};

/// The time limit for receiving a request's head, and for an idle connection to send its next
/// request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which a connection is closed if its client does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of a request's head. It includes the cookies of all services on this hostname.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// The pause after a failed accept, for example if the system has no free file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

const TOO_MANY_CONNECTIONS: &str =
    "too many connections are in use: close some, or try again later\n";

pub(crate) type Socket = Either<TcpStream, UnixStream>;

/// Serves connections until `stopped` is set, and then waits until the last connection has ended.
/// Behind a proxy, all connections have the proxy's user, so the limits on connections ignore the
/// user. The routes decide for each request whether it came through a proxy.
pub(crate) async fn serve_listener(
    listener: Listener,
    live: watch::Receiver<LiveSettings>,
    policy: Arc<AccessPolicy>,
    router: Router,
    table: Arc<ConnectionTable>,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        match accepted {
            Ok((socket, peer)) => {
                let arrival = Arrival::new(peer, local_address(&socket));
                let peer = if live.borrow().is_behind_proxy() {
                    peer.with_forwarded_address(None)
                } else {
                    peer
                };
                let is_encrypted = peer.uses_port() && policy.has_tls();
                match table.admit(peer.key()) {
                    Some(slot) => {
                        let (router, stopped) = (router.clone(), stopped.clone());
                        let task = match policy.web_config().filter(|_| is_encrypted) {
                            Some(web) => {
                                let handshake = HandshakeContext {
                                    web,
                                    policy: Arc::clone(&policy),
                                    peer,
                                };
                                Either::Left(serve_tls_connection(
                                    socket, arrival, slot, router, stopped, handshake,
                                ))
                            }
                            None => Either::Right(serve_connection(
                                socket, arrival, slot, router, stopped,
                            )),
                        };
                        drop(table.tasks().spawn(task));
                    }
                    // The connection is dropped without a response, because a client that expects
                    // TLS does not understand a plain one.
                    None if is_encrypted => {}
                    None => send_refusal(&socket),
                }
            }
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listener);
    table.tasks().close();
    table.tasks().wait().await;
    Ok(())
}

/// Returns `true` if the error affects only the accepted connection, so that the next one can be
/// accepted immediately.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Sends a refusal if this is possible without waiting.
fn send_refusal(socket: &Socket) {
    let status = "503 Service Unavailable\r\nRetry-After: 5";
    let refusal = format_response(status, TOO_MANY_CONNECTIONS);
    let _ = match socket {
        Either::Left(socket) => socket.try_write(refusal.as_bytes()),
        Either::Right(socket) => socket.try_write(refusal.as_bytes()),
    };
}

/// Returns a response with this status and text. The response closes the connection.
fn format_response(status: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len(),
    )
}

pub(crate) async fn serve_connection(
    socket: Socket,
    arrival: Arrival,
    slot: Arc<ConnectionSlot>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    if wait_for_first_byte(&socket, &slot, &mut stopped).await {
        let arrival = arrival.with_user(client_address(&socket)).await;
        serve_requests(socket, arrival, slot, router, stopped).await;
    }
}

/// Waits for the client's first byte, so that idle connections do not use any resources.
async fn wait_for_first_byte(
    socket: &Socket,
    slot: &ConnectionSlot,
    stopped: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        spoken = timeout(HEADER_TIMEOUT, wait_until_readable(socket)) => spoken.is_ok(),
        () = slot.wait_for_eviction() => false,
        _ = stopped.wait_for(|stopped| *stopped) => false,
    }
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    arrival: Arrival,
    slot: Arc<ConnectionSlot>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(arrival.peer);
        request.extensions_mut().insert(arrival.clone());
        request.extensions_mut().insert(Arc::clone(&slot));
        handle_request(router.clone(), request.map(Body::new), slot.mark_busy())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // A connection's errors are caused by its client. They are therefore not reported.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = slot.wait_for_eviction() => return,
        _ = stopped.wait_for(|stopped| *stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn wait_until_readable(socket: &Socket) -> io::Result<()> {
    match socket {
        Either::Left(socket) => socket.readable().await,
        Either::Right(socket) => socket.readable().await,
    }
}

async fn handle_request(
    router: Router,
    request: Request,
    _busy: BusyGuard,
) -> Result<axum::response::Response, Infallible> {
    router.oneshot(request).await
}

/// Returns the server's own address of a connection, or `None` for a Unix socket.
fn local_address(socket: &Socket) -> Option<SocketAddr> {
    match socket {
        Either::Left(socket) => socket.local_addr().ok(),
        Either::Right(_) => None,
    }
}

/// Returns the client's address, or `None` for a Unix socket.
fn client_address(socket: &Socket) -> Option<SocketAddr> {
    match socket {
        Either::Left(socket) => socket.peer_addr().ok(),
        Either::Right(_) => None,
    }
}

// The TLS handshake. It has the same time limit as the head of a request.

/// The first byte of a TLS handshake record.
const HANDSHAKE_RECORD: u8 = 22;

const HTTPS_ONLY_MESSAGE: &str = "this port accepts only HTTPS: use https://\n";

/// The parts of the server that a handshake needs.
struct HandshakeContext {
    web: Arc<WebConfig>,
    policy: Arc<AccessPolicy>,
    /// The peer that the handshake is counted for.
    peer: Peer,
}

async fn serve_tls_connection(
    socket: Socket,
    arrival: Arrival,
    slot: Arc<ConnectionSlot>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    HandshakeContext { web, policy, peer }: HandshakeContext,
) {
    let Some(tls) = web.tls.as_ref() else { return };
    // A handshake takes a millisecond of CPU time. A connection that sends nothing costs nothing,
    // so it does not count toward its address's limit.
    if !wait_for_first_byte(&socket, &slot, &mut stopped).await
        || policy.admit_handshake(peer).is_err()
    {
        return;
    }
    let arrival = arrival.with_user(client_address(&socket)).await;
    let begun = tokio::select! {
        begun = timeout(HEADER_TIMEOUT, perform_handshake(socket, tls)) => begun.ok().flatten(),
        () = slot.wait_for_eviction() => None,
        _ = stopped.wait_for(|stopped| *stopped) => None,
    };
    let Some(stream) = begun else { return };
    let Ok(certificate) = find_client_certificate(&stream, tls) else {
        return;
    };
    drop(web);
    serve_requests(
        stream,
        Arrival {
            is_tls: true,
            certificate,
            ..arrival
        },
        slot,
        router,
        stopped,
    )
    .await;
}

async fn perform_handshake(mut socket: Socket, tls: &Tls) -> Option<TlsStream<Socket>> {
    if let Either::Left(tcp) = &socket {
        let mut first = [0];
        if tcp.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE_RECORD {
            let refusal = format_response("400 Bad Request", HTTPS_ONLY_MESSAGE);
            let _ = socket.write_all(refusal.as_bytes()).await;
            let _ = socket.shutdown().await;
            return None;
        }
    }
    TlsAcceptor::from(Arc::clone(&tls.config))
        .accept(socket)
        .await
        .ok()
}

/// The error for a client certificate that is not in the list of allowed certificates.
struct CertificateNotAllowed;

fn find_client_certificate(
    stream: &TlsStream<Socket>,
    tls: &Tls,
) -> Result<Option<ClientCertificate>, CertificateNotAllowed> {
    let shown = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let (Some(shown), Some(clients)) = (shown, &tls.clients) else {
        return Ok(None);
    };
    let name = clients
        .find_allowed_name(shown)
        .ok_or(CertificateNotAllowed)?;
    Ok(Some(ClientCertificate {
        name,
        authority: clients.authority,
    }))
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::listen::PortPurpose;

    #[tokio::test]
    async fn proxied_client_cannot_use_slot_of_server_user() {
        for (behind_proxy, status) in [(false, "200"), (true, "503")] {
            let policy = Arc::new(AccessPolicy::allow_all());
            let listener =
                Listener::open_tcp(([127, 0, 0, 1], 0).into(), PortPurpose::Everything, &policy)
                    .unwrap();
            let Listener::Tcp(tcp, _) = &listener else {
                unreachable!()
            };
            let mut client = TcpStream::connect(tcp.local_addr().unwrap()).await.unwrap();
            // With these limits, only the server's own user and root get a slot.
            let table = ConnectionTable::with_limits(1, 1, 0);
            let (stop, stopped) = watch::channel(false);
            let router = Router::new().route("/", get(async || ""));
            let public_origins = behind_proxy
                .then(|| "https://gpus.example.org".parse().unwrap())
                .into_iter()
                .collect();
            let live = LiveSettings {
                public_origins,
                ..LiveSettings::default()
            }
            .into_constant_receiver();
            let server = tokio::spawn(serve_listener(
                listener, live, policy, router, table, stopped,
            ));
            // A client that will be refused sends nothing. The server would close its socket
            // without reading the request, and unread data would reset the connection.
            if !behind_proxy {
                client
                    .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    .await
                    .unwrap();
            }
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{behind_proxy}: {answer}"
            );
            stop.send(true).unwrap();
            server.await.unwrap().unwrap();
        }
    }
}
