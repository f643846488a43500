//! WebSocket streams of nodes, which are passed on frame by frame. A slow viewer slows down the
//! node's stream, so that nothing accumulates here.

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
    connect::{NodeSocket, connect},
    credentials::Shown,
    places::Place,
    problem::NodeProblem,
    request::headers,
    url::Target,
};
use crate::{
    app::AppState,
    auth::{Client, Leave},
    connections::ConnectionSlot,
    stream::{ClientSocket, Encoding, accept},
};

/// The time limit until the node accepts a stream.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time without a frame after which a node's stream is closed. A node sends a frame every five
/// seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// The maximum size of a frame in bytes. The hello of 64 GPUs with five minutes of history has some
/// megabytes.
const LONGEST_FRAME: usize = 32 << 20;

/// The maximum size of unsent bytes to a node. The frames of a viewer are short, so that a node
/// that does not read them is gone.
const WRITE_BUFFER: usize = 64 * 1024;

pub(super) type NodeStream = WebSocketStream<NodeSocket>;

/// Opens a stream of a node, with the viewer's session if it is valid, and with this server's token
/// otherwise.
///
/// # Errors
/// Returns the reason why there is no connection. `Ok(Err)` is the status with which the node
/// refuses the stream.
pub(super) async fn open(
    target: &Target,
    encoding: Encoding,
    shown: &Shown,
    session: Option<&HeaderValue>,
) -> Result<Result<NodeStream, StatusCode>, NodeProblem> {
    let token = shown.token.as_ref();
    let first = ask(
        target,
        encoding,
        shown,
        session,
        token.filter(|_| session.is_none()),
    )
    .await?;
    match first {
        Err(StatusCode::UNAUTHORIZED) if session.is_some() && token.is_some() => {
            ask(target, encoding, shown, None, token).await
        }
        first => Ok(first),
    }
}

async fn ask(
    target: &Target,
    encoding: Encoding,
    shown: &Shown,
    session: Option<&HeaderValue>,
    token: Option<&HeaderValue>,
) -> Result<Result<NodeStream, StatusCode>, NodeProblem> {
    let socket = connect(target, shown.tls.as_ref()).await?;
    let scheme = if target.is_tls { "wss" } else { "ws" };
    let query = encoding.query();
    let url = format!(
        "{scheme}://{}{}api/v1/stream{query}",
        target.authority, target.path
    );
    let mut request = url
        .into_client_request()
        .map_err(|_| NodeProblem::NotAName(target.host.clone()))?;
    request
        .headers_mut()
        .extend(headers(target, session, token)?);
    let config = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_FRAME))
        .max_frame_size(Some(LONGEST_FRAME))
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER);
    let silent = || NodeProblem::Silent(target.to_string(), PATIENCE.as_secs());
    let asked = timeout(
        PATIENCE,
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

/// The client that receives a node's stream.
pub(super) struct Viewer<'a> {
    pub(super) app: &'a AppState,
    pub(super) client: &'a Client,
    pub(super) slot: &'a Arc<ConnectionSlot>,
    pub(super) place: Place,
}

/// Passes on frames until the viewer, the node or this server ends the stream, or until the viewer
/// loses permission.
///
/// # Errors
/// Returns a response if the request is not a valid WebSocket request.
pub(super) fn pass_on(
    node: NodeStream,
    viewer: Viewer<'_>,
    request: Request,
    encoding: Encoding,
) -> Result<Response, Box<Response>> {
    let (response, on_upgrade) = accept(request)?;
    let Viewer {
        app,
        client,
        slot,
        place,
    } = viewer;
    let (leave, stopped) = (
        Leave::new(client, &app.doors, &app.live),
        app.stopped.clone(),
    );
    let busy = slot.busy();
    slot.spawn(async move {
        let _held = (busy, place);
        let Ok(upgraded) = on_upgrade.await else {
            return;
        };
        relay(
            node,
            ClientSocket::new(upgraded, encoding).await,
            leave,
            stopped,
        )
        .await;
    });
    Ok(response)
}

async fn relay(
    mut node: NodeStream,
    mut viewer: ClientSocket,
    mut leave: Leave,
    mut stopped: watch::Receiver<bool>,
) {
    let mut silence = pin!(sleep(SILENCE));
    let why = loop {
        tokio::select! {
            biased;
            _ = stopped.changed() => break "gpumon is shutting down",
            why = leave.taken() => break why,
            frame = node.next() => {
                silence.as_mut().reset(Instant::now() + SILENCE);
                let payload = match (&frame, viewer.encoding) {
                    (Some(Ok(Message::Text(text))), Encoding::Text) => text.as_bytes(),
                    (Some(Ok(Message::Binary(bytes))), Encoding::DeflateRaw) => bytes,
                    (Some(Ok(Message::Ping(_) | Message::Pong(_))), _) => continue,
                    (Some(Ok(Message::Text(_) | Message::Binary(_))), _) => break "the node answers in another encoding",
                    (Some(Err(Error::Capacity(_))), _) => break "the node sent too much at once",
                    _ => break "the node has ended the stream",
                };
                if viewer.send_payload(payload).await.is_err() {
                    break "";
                }
            }
            message = viewer.receive() => match message {
                Some(message @ Message::Text(_)) => {
                    if !matches!(timeout(SILENCE, node.send(message)).await, Ok(Ok(()))) {
                        break "the node takes no more requests";
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
    let _ = timeout(PATIENCE, node.close(None)).await;
}
