//! A client of another server: the connection to its stream, and blocking requests.

use std::{io, ops::Range, os, path::Path, time::Duration};

use futures_util::{SinkExt, StreamExt};
use gpumon_history::span::{HistorySpan, MetricSelection, SpanRequest};
use gpumon_probe::{model::read_type, usage::Usage};
use tokio::{net::UnixStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

use crate::{
    frame::{ClientFrame, CollectorState, Hello},
    local::{LocalResponse, send_request},
};

/// The time limit for the first frame. If the service uses socket activation, it has to start
/// first.
const FIRST_FRAME_TIMEOUT: Duration = Duration::from_secs(5);

/// The time without a frame after which the connection is closed. The server sends a frame every
/// five seconds.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of the read buffer in bytes. A sample of several GPUs is a few kilobytes long.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// A connection to another server whose first frame has arrived.
pub(super) struct ServerConnection {
    /// The first frame from the other server.
    pub(super) hello: Hello,
    pub(super) frames: Frames,
}

/// The frames that follow the hello frame.
pub(super) struct Frames(WebSocketStream<UnixStream>);

/// The reason why a server cannot be joined.
pub(super) enum JoinRefusal {
    Absent,
    Unfit(String),
}

impl ServerConnection {
    pub(super) async fn open(path: &Path) -> Result<Self, JoinRefusal> {
        let opened = timeout(FIRST_FRAME_TIMEOUT, Self::connect(path)).await;
        opened.unwrap_or_else(|_| {
            Err(JoinRefusal::Unfit(format!(
                "the server did not respond within {} s",
                FIRST_FRAME_TIMEOUT.as_secs()
            )))
        })
    }

    async fn connect(path: &Path) -> Result<Self, JoinRefusal> {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => JoinRefusal::Absent,
                _ => JoinRefusal::Unfit(error.to_string()),
            })?;
        // The kernel reports no PID if the other server is in a PID namespace that is not visible
        // to this process.
        if stream
            .peer_cred()
            .is_ok_and(|peer| peer.pid().is_none_or(|pid| pid <= 0))
        {
            return Err(JoinRefusal::Unfit(
                "the server is in another PID namespace, where processes have other PIDs"
                    .to_owned(),
            ));
        }
        let unfit = |error: &dyn std::fmt::Display| JoinRefusal::Unfit(error.to_string());
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
        let url = "ws://localhost/api/v1/stream";
        let (socket, _) = client_async_with_config(url, stream, Some(config))
            .await
            .map_err(|error| unfit(&error))?;
        let mut frames = Frames(socket);
        let text = frames.next().await.map_err(|error| unfit(&error))?;
        if read_type(&text).ok().as_deref() != Some("hello") {
            return Err(JoinRefusal::Unfit(
                "no gpumon server listens on the socket".to_owned(),
            ));
        }
        let hello: Hello = serde_json::from_str(&text).map_err(|error| {
            JoinRefusal::Unfit(format!(
                "the server runs another version of gpumon; install the same version for both \
                 servers ({error})"
            ))
        })?;
        match find_join_obstacle(&hello) {
            Some(why) => Err(JoinRefusal::Unfit(why)),
            None => Ok(Self { hello, frames }),
        }
    }
}

impl Frames {
    /// Waits for the next frame.
    pub(super) async fn next(&mut self) -> Result<String, String> {
        loop {
            let received = timeout(SILENCE_TIMEOUT, self.0.next()).await;
            match received.map_err(|_| {
                format!(
                    "the server has sent nothing for {} s",
                    SILENCE_TIMEOUT.as_secs()
                )
            })? {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Close(_))) | None => {
                    return Err("the server closed the connection".to_owned());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    pub(super) async fn send(&mut self, frame: &ClientFrame) -> Result<(), String> {
        let text = serde_json::to_string(frame).expect("a frame is JSON");
        let sent = timeout(SILENCE_TIMEOUT, self.0.send(Message::text(text))).await;
        sent.map_err(|_| "the server accepts no requests".to_owned())?
            .map_err(|error| error.to_string())
    }
}

/// Returns the reason why the other server cannot be joined: its readings would differ from those
/// of a collector on this machine.
fn find_join_obstacle(hello: &Hello) -> Option<String> {
    let inventory = hello.inventory.as_ref();
    if inventory.is_some_and(|inventory| inventory.playback.is_some()) {
        return Some("the server replays a recording".to_owned());
    }
    if inventory.is_some_and(|inventory| inventory.platform.is_simulated) {
        return Some("the server's GPUs are simulated".to_owned());
    }
    if let Some(joined) = &hello.collector.joined {
        return Some(format!(
            "the server has itself joined another server at {joined}"
        ));
    }
    (hello.collector.state == CollectorState::Unavailable).then(|| {
        hello
            .collector
            .message
            .clone()
            .unwrap_or_else(|| "the server reads no GPUs".to_owned())
    })
}

// Blocking requests.

/// The time limit for a response. The server may have to read from disk.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of requested points, enough for all samples of the last ten minutes.
const RECENT_POINTS: u32 = 600;

/// Requests a span of the other server's history.
pub(crate) fn request_span(socket: &Path, request: &SpanRequest) -> io::Result<HistorySpan> {
    let target = format!("/api/v1/{}", request.request_target());
    Ok(serde_json::from_str(&fetch_body(socket, &target)?)?)
}

/// Requests the usage in a span from the other server. Returns an error if that server does not
/// support spans.
pub(crate) fn request_usage(socket: &Path, span: &Range<u64>) -> io::Result<Usage> {
    let target = format!("/api/v1/usage?from_ms={}&to_ms={}", span.start, span.end);
    let usage: Usage = serde_json::from_str(&fetch_body(socket, &target)?)?;
    // Older servers ignore the span and return all usage since their start. Their responses have no
    // `oldest_ms`.
    if usage.oldest_ms.is_some() {
        Ok(usage)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Requests the history of the last `reach_ms`, with all metrics.
pub(super) fn request_recent_history(
    socket: &Path,
    now_ms: u64,
    reach_ms: u64,
) -> io::Result<HistorySpan> {
    let from_ms = now_ms.saturating_sub(reach_ms);
    request_span(
        socket,
        &SpanRequest {
            from_ms,
            to_ms: now_ms,
            points: RECENT_POINTS,
            resolution_ms: None,
            wanted: MetricSelection::select_all(),
        },
    )
}

/// Sends a GET request, and returns the body of the response.
pub(crate) fn fetch_body(socket: &Path, target: &str) -> io::Result<String> {
    let stream = os::unix::net::UnixStream::connect(socket)?;
    let LocalResponse { status, body } =
        send_request(stream, RESPONSE_TIMEOUT, &format!("GET {target}"), "")?;
    if status == 200 {
        Ok(body)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, body.trim()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unavailable_or_joined_server_is_not_joined() {
        let of = |collector: serde_json::Value, inventory: serde_json::Value| {
            let history = json!({ "times_ms": [], "gpus": [] });
            let hello = json!({
                "version": "1.0.0", "at_ms": 1, "collector": collector, "inventory": inventory, "sample": null,
                "details": [], "events": [], "history": history,
            });
            find_join_obstacle(&serde_json::from_value(hello).unwrap())
        };
        let collector =
            |state: &str| json!({ "state": state, "since_ms": 1, "message": "no driver" });
        for state in ["running", "starting", "paused", "restarting"] {
            assert_eq!(of(collector(state), json!(null)), None, "{state}");
        }
        assert_eq!(
            of(collector("unavailable"), json!(null)).unwrap(),
            "no driver"
        );
        let mut joined = collector("running");
        joined["joined"] = json!("/run/other.sock");
        assert!(of(joined, json!(null)).unwrap().contains("/run/other.sock"));
    }
}

#[cfg(test)]
mod request_tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixListener,
        thread,
    };

    use super::*;

    #[test]
    fn only_complete_successful_response_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let answers = [
            "HTTP/1.0 200 OK\r\nx: y\r\n\r\nbody",
            "HTTP/1.0 400 Bad Request\r\n\r\nno such metric\n",
            "SSH",
        ];
        let serving = thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let length = stream.read(&mut request).unwrap();
                assert!(request[..length].starts_with(b"GET /x HTTP/1.0\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert_eq!(fetch_body(&socket, "/x").unwrap(), "body");
        assert_eq!(
            fetch_body(&socket, "/x").unwrap_err().to_string(),
            "no such metric"
        );
        assert!(fetch_body(&socket, "/x").is_err());
        serving.join().unwrap();
        assert!(fetch_body(&socket, "/x").is_err(), "nobody listens");
    }
}
