//! Blocking requests to another server.

use std::{io, ops::Range, os, path::Path, time::Duration};

use gpumon_history::{plan::SpanRequest, span::HistorySpan, wanted::MetricSelection};
use gpumon_probe::usage::Usage;

use crate::local::{LocalResponse, send_request};

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
