//! The TLS handshake, which has the same time limit as a request's head.

use std::sync::Arc;

use axum::Router;
use tokio::{io::AsyncWriteExt, sync::watch, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;

use super::{
    Arrival, ClientCertificate, ConnectionSlot, HEADER_TIMEOUT, Socket, client_address,
    format_response, serve_requests, wait_for_first_byte,
};
use crate::{
    auth::AccessPolicy,
    peer::Peer,
    web_config::{Tls, WebConfig},
};

/// The first byte of a TLS handshake record.
const HANDSHAKE_RECORD: u8 = 22;

const HTTPS_ONLY_MESSAGE: &str = "this port accepts only HTTPS: use https://\n";

/// The parts of the server that a handshake needs.
pub(super) struct HandshakeContext {
    pub(super) web: Arc<WebConfig>,
    pub(super) policy: Arc<AccessPolicy>,
    /// The peer that the handshake is counted for.
    pub(super) peer: Peer,
}

pub(super) async fn serve_tls_connection(
    socket: Socket,
    arrival: Arrival,
    slot: Arc<ConnectionSlot>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    HandshakeContext { web, policy, peer }: HandshakeContext,
) {
    let Some(tls) = web.tls.as_ref() else { return };
    // A handshake takes a millisecond of CPU time. Connections that send nothing cost nothing, and
    // do not count toward their address's limit.
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
    let name = clients.find_name(shown).ok_or(CertificateNotAllowed)?;
    Ok(Some(ClientCertificate {
        name,
        authority: clients.authority,
    }))
}
