//! The TLS handshake, which has the same time limit as the head of a request.

use std::sync::Arc;

use axum::Router;
use tokio::{io::AsyncWriteExt, sync::watch, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;

use super::{
    Arrival, ClientCertificate, ConnectionSlot, HEADER_TIMEOUT, Socket, client_address, has_spoken,
    serve_requests, write_response,
};
use crate::{
    auth::Doors,
    peer::Peer,
    web_config::{Tls, WebConfig},
};

/// The first byte of a TLS handshake record.
const HANDSHAKE: u8 = 22;

const NOT_ENCRYPTED: &str = "this port speaks HTTPS alone: use https://\n";

/// The parts of the server that a handshake needs.
pub(super) struct Handshake {
    pub(super) web: Arc<WebConfig>,
    pub(super) doors: Arc<Doors>,
    /// The peer for whom the handshake is counted.
    pub(super) peer: Peer,
}

pub(super) async fn connection(
    socket: Socket,
    arrival: Arrival,
    slot: Arc<ConnectionSlot>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    Handshake { web, doors, peer }: Handshake,
) {
    let Some(tls) = web.tls.as_ref() else { return };
    // A handshake costs a millisecond of CPU time. Idle connections cost nothing, and do not count
    // toward the limit of their address.
    if !has_spoken(&socket, &slot, &mut stopped).await || doors.admit_handshake(peer).is_err() {
        return;
    }
    let arrival = arrival.identified(client_address(&socket)).await;
    let begun = tokio::select! {
        begun = timeout(HEADER_TIMEOUT, handshake(socket, tls)) => begun.ok().flatten(),
        () = slot.evicted() => None,
        _ = stopped.wait_for(|stopped| *stopped) => None,
    };
    let Some(stream) = begun else { return };
    let Ok(certificate) = client_certificate(&stream, tls) else {
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

async fn handshake(mut socket: Socket, tls: &Tls) -> Option<TlsStream<Socket>> {
    if let Either::Left(tcp) = &socket {
        let mut first = [0];
        if tcp.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE {
            let refusal = write_response("400 Bad Request", NOT_ENCRYPTED);
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

/// The error for a certificate that is not in the list of allowed ones.
struct NotAllowed;

fn client_certificate(
    stream: &TlsStream<Socket>,
    tls: &Tls,
) -> Result<Option<ClientCertificate>, NotAllowed> {
    let shown = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let (Some(shown), Some(clients)) = (shown, &tls.clients) else {
        return Ok(None);
    };
    let name = clients.name_of(shown).ok_or(NotAllowed)?;
    Ok(Some(ClientCertificate {
        name,
        authority: clients.authority,
    }))
}
