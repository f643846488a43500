//! WebSocket streams of nodes, passed on frame by frame. A slow viewer slows down the node's
//! stream, so that frames do not accumulate here.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use futures_util::{SinkExt, StreamExt};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Error, Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

use super::{
    credentials::NodeCredentials,
    problem::NodeProblem,
    request::{NodeSocket, build_headers, connect_to_node},
    url::NodeTarget,
};
use crate::{
    app::AppState,
    auth::{Client, ReadPermission},
    connections::ConnectionSlot,
    quota::Reservation,
    stream::{ClientSocket, Encoding, accept_upgrade},
};

/// The time limit until the node accepts a stream.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time without a frame after which a node's stream is closed. A node sends a frame every five
/// seconds.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum size of a frame in bytes. A hello frame with five minutes of history for 64 GPUs has
/// several megabytes.
const MAX_FRAME_BYTES: usize = 32 << 20;

/// The maximum number of bytes that wait to be sent to a node. Viewers' frames are short, so a node
/// that leaves this many bytes unread no longer responds.
const MAX_WRITE_BUFFER: usize = 64 * 1024;

pub(super) type NodeStream = WebSocketStream<NodeSocket>;

/// Opens a stream of a node with the viewer's session, or with this server's token if the viewer
/// has no valid session.
///
/// # Errors
/// Returns the reason why there is no connection. `Ok(Err)` contains the status with which the node
/// refused the stream.
pub(super) async fn connect_stream(
    target: &NodeTarget,
    encoding: Encoding,
    shown: &NodeCredentials,
    session: Option<&HeaderValue>,
) -> Result<Result<NodeStream, StatusCode>, NodeProblem> {
    let token = shown.token.as_ref();
    let first = request_stream(
        target,
        encoding,
        shown,
        session,
        token.filter(|_| session.is_none()),
    )
    .await?;
    match first {
        Err(StatusCode::UNAUTHORIZED) if session.is_some() && token.is_some() => {
            request_stream(target, encoding, shown, None, token).await
        }
        first => Ok(first),
    }
}

async fn request_stream(
    target: &NodeTarget,
    encoding: Encoding,
    shown: &NodeCredentials,
    session: Option<&HeaderValue>,
    token: Option<&HeaderValue>,
) -> Result<Result<NodeStream, StatusCode>, NodeProblem> {
    let socket = connect_to_node(target, shown.tls.as_ref()).await?;
    let scheme = if target.is_tls { "wss" } else { "ws" };
    let query = encoding.query_string();
    let url = format!(
        "{scheme}://{}{}api/v1/stream{query}",
        target.authority, target.path
    );
    let mut request = url
        .into_client_request()
        .map_err(|_| NodeProblem::NotAName(target.host.clone()))?;
    request
        .headers_mut()
        .extend(build_headers(target, session, token)?);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES))
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_WRITE_BUFFER);
    let silent = || NodeProblem::Silent(target.to_string(), CONNECT_TIMEOUT.as_secs());
    let asked = timeout(
        CONNECT_TIMEOUT,
        client_async_with_config(request, socket, Some(config)),
    )
    .await;
    match asked.map_err(|_| silent())? {
        Ok((stream, _)) => Ok(Ok(stream)),
        Err(Error::Http(answer)) if answer.status().is_client_error() => Ok(Err(answer.status())),
        Err(error) => Err(NodeProblem::NotGpumon(
            target.to_string(),
            error.to_string(),
        )),
    }
}

/// The client that a node's stream is passed on to.
pub(super) struct StreamViewer<'a> {
    pub(super) app: &'a AppState,
    pub(super) client: &'a Client,
    pub(super) slot: &'a Arc<ConnectionSlot>,
    pub(super) place: Reservation,
}

/// Passes frames on until the viewer, the node or this server ends the stream, or until the viewer
/// loses permission.
///
/// # Errors
/// Returns a response if the request is not a valid WebSocket request.
pub(super) fn start_relay(
    node: NodeStream,
    viewer: StreamViewer<'_>,
    request: Request,
    encoding: Encoding,
) -> Result<Response, Box<Response>> {
    let (response, on_upgrade) = accept_upgrade(request)?;
    let StreamViewer {
        app,
        client,
        slot,
        place,
    } = viewer;
    let (leave, stopped) = (
        ReadPermission::new(client, &app.policy, &app.live),
        app.stopped.clone(),
    );
    let busy = slot.mark_busy();
    slot.spawn(async move {
        let _held = (busy, place);
        let Ok(upgraded) = on_upgrade.await else {
            return;
        };
        relay_frames(
            node,
            ClientSocket::new(upgraded, encoding).await,
            leave,
            stopped,
        )
        .await;
    });
    Ok(response)
}

async fn relay_frames(
    mut node: NodeStream,
    mut viewer: ClientSocket,
    mut leave: ReadPermission,
    mut stopped: watch::Receiver<bool>,
) {
    let mut silence = pin!(sleep(SILENCE_TIMEOUT));
    let why = loop {
        tokio::select! {
            biased;
            _ = stopped.changed() => break "gpumon is shutting down",
            why = leave.wait_for_end() => break why,
            frame = node.next() => {
                silence.as_mut().reset(Instant::now() + SILENCE_TIMEOUT);
                let payload = match (&frame, viewer.encoding) {
                    (Some(Ok(Message::Text(text))), Encoding::Text) => text.as_bytes(),
                    (Some(Ok(Message::Binary(bytes))), Encoding::DeflateRaw) => bytes,
                    (Some(Ok(Message::Ping(_) | Message::Pong(_))), _) => continue,
                    (Some(Ok(Message::Text(_) | Message::Binary(_))), _) => break "the node uses \
                                                                                   another encoding",
                    (Some(Err(Error::Capacity(_))), _) => break "the node sent too much at once",
                    _ => break "the node has ended the stream",
                };
                if viewer.send_payload(payload).await.is_err() {
                    break "";
                }
            }
            message = viewer.receive() => match message {
                Some(message @ Message::Text(_)) => {
                    if !matches!(timeout(SILENCE_TIMEOUT, node.send(message)).await, Ok(Ok(()))) {
                        break "the node accepts no more requests";
                    }
                }
                Some(Message::Ping(_) | Message::Pong(_)) => {}
                _ => break "",
            },
            () = silence.as_mut() => break "the node has sent nothing for a while",
        }
    };
    if !why.is_empty() {
        let _ = viewer.send_close(why).await;
    }
    let _ = timeout(CONNECT_TIMEOUT, node.close(None)).await;
}
