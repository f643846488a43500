//! Connections over HTTP/1.1: how they are accepted, how long they may take, and how many there may
//! be ([`slots`]). [`encryption`] is what stands before the first request where there is TLS,
//! [`arrival`] what is known of a connection.

mod arrival;
mod encryption;
mod slots;

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::either::Either;
use tower::ServiceExt;

use self::encryption::Handshake;
pub(crate) use self::{
    arrival::{Arrival, ClientCertificate},
    slots::{Busy, ConnectionSlot, ConnectionTable},
};
use crate::{auth::Doors, listen::Listener, live::Live};

/// How long a client may take for the head of a request, and how long a connection may wait for the
/// next one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take nothing of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The head of a request, with the cookies of all that is served on this host name.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// How long to wait where the system has no file descriptor left.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

const TOO_MANY_CONNECTIONS: &str =
    "too many connections are in use: close some, or try again later\n";

/// Where it arrived; `None` on a unix socket.
fn local_address(socket: &Socket) -> Option<SocketAddr> {
    match socket {
        Either::Left(socket) => socket.local_addr().ok(),
        Either::Right(_) => None,
    }
}

/// Returns the address of the client; `None` on a unix socket.
fn client_address(socket: &Socket) -> Option<SocketAddr> {
    match socket {
        Either::Left(socket) => socket.peer_addr().ok(),
        Either::Right(_) => None,
    }
}

pub(crate) type Socket = Either<TcpStream, UnixStream>;

/// Serves what comes in until `stopped`, and then until the last connection has ended. Behind a
/// proxy, the user who connects to the port is the proxy's: the limits do not take them for who
/// asks, nor do the routes, which ask for each request whether there is a proxy.
pub(crate) async fn serve(
    listener: Listener,
    live: watch::Receiver<Live>,
    doors: Arc<Doors>,
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
                    peer.behind_proxy(None)
                } else {
                    peer
                };
                let is_encrypted = peer.is_port() && doors.has_tls();
                match table.admit(peer.who()) {
                    Some(slot) => {
                        let (router, stopped) = (router.clone(), stopped.clone());
                        let task = match doors.web().filter(|_| is_encrypted) {
                            Some(web) => {
                                let handshake = Handshake {
                                    web,
                                    doors: Arc::clone(&doors),
                                    peer,
                                };
                                Either::Left(encryption::connection(
                                    socket, arrival, slot, router, stopped, handshake,
                                ))
                            }
                            None => {
                                Either::Right(connection(socket, arrival, slot, router, stopped))
                            }
                        };
                        drop(table.tasks().spawn(task));
                    }
                    // Who expects an encrypted answer understands no other.
                    None if is_encrypted => {}
                    None => refuse(&socket),
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

/// Whether it is over with the connection that was accepted, and the next may be well.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Says so as far as that goes at once.
fn refuse(socket: &Socket) {
    let status = "503 Service Unavailable\r\nRetry-After: 5";
    let refusal = write_response(status, TOO_MANY_CONNECTIONS);
    let _ = match socket {
        Either::Left(socket) => socket.try_write(refusal.as_bytes()),
        Either::Right(socket) => socket.try_write(refusal.as_bytes()),
    };
}

/// Returns a response that ends the connection, with its status and text.
fn write_response(status: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len(),
    )
}

pub(crate) async fn connection(
    socket: Socket,
    arrival: Arrival,
    slot: Arc<ConnectionSlot>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    if has_spoken(&socket, &slot, &mut stopped).await {
        let arrival = arrival.identified(client_address(&socket)).await;
        serve_requests(socket, arrival, slot, router, stopped).await;
    }
}

/// Nothing is set up for a client that says nothing.
async fn has_spoken(
    socket: &Socket,
    slot: &ConnectionSlot,
    stopped: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        spoken = timeout(HEADER_TIMEOUT, readable(socket)) => spoken.is_ok(),
        () = slot.evicted() => false,
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
        answer(router.clone(), request.map(Body::new), slot.busy())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // What ends a connection is its client's doing, and no error to report.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = slot.evicted() => return,
        _ = stopped.wait_for(|stopped| *stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn readable(socket: &Socket) -> io::Result<()> {
    match socket {
        Either::Left(socket) => socket.readable().await,
        Either::Right(socket) => socket.readable().await,
    }
}

async fn answer(
    router: Router,
    request: Request,
    _busy: Busy,
) -> Result<axum::response::Response, Infallible> {
    router.oneshot(request).await
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::listen::Purpose;

    #[tokio::test]
    async fn a_proxy_of_the_own_user_takes_no_slot_of_the_own_user() {
        for (behind_proxy, status) in [(false, "200"), (true, "503")] {
            let doors = Arc::new(Doors::none());
            let listener =
                Listener::tcp(([127, 0, 0, 1], 0).into(), Purpose::Everything, &doors).unwrap();
            let Listener::Tcp(tcp, _) = &listener else {
                unreachable!()
            };
            let mut client = TcpStream::connect(tcp.local_addr().unwrap()).await.unwrap();
            // Others than the own user and root get no slot.
            let table = ConnectionTable::with_limits(1, 1, 0);
            let (stop, stopped) = watch::channel(false);
            let router = Router::new().route("/", get(async || ""));
            let public_origins = behind_proxy
                .then(|| "https://gpus.example.org".parse().unwrap())
                .into_iter()
                .collect();
            let live = Live {
                public_origins,
                ..Live::default()
            }
            .fixed();
            let server = tokio::spawn(serve(listener, live, doors, router, table, stopped));
            // Who is refused is so before a request, and what the server has not read resets the
            // connection.
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
