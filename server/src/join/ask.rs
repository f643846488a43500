//! Blocking requests to another server.

use std::{io, ops::Range, os::unix::net::UnixStream, path::Path, time::Duration};

use gpumon_history::{plan::SpanRequest, span::HistorySpan, wanted::Wanted};
use gpumon_probe::usage::Usage;

use crate::local::{Answer, send_request};

/// The time limit for a response. The server may have to read its disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of points for the last ten minutes of samples.
const RECENT_POINTS: u32 = 600;

/// Returns a span of the other server's history.
pub(crate) fn span(socket: &Path, request: &SpanRequest) -> io::Result<HistorySpan> {
    let target = format!("/api/v1/{}", request.target());
    Ok(serde_json::from_str(&get(socket, &target)?)?)
}

/// Returns the usage in a span on the other server, or an error if it is unknown there.
pub(crate) fn usage(socket: &Path, span: &Range<u64>) -> io::Result<Usage> {
    let target = format!("/api/v1/usage?from_ms={}&to_ms={}", span.start, span.end);
    let usage: Usage = serde_json::from_str(&get(socket, &target)?)?;
    // Older servers ignore the span, and return all usage since their start.
    if usage.oldest_ms.is_some() {
        Ok(usage)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns the history of the last `reach_ms` with all metrics.
pub(super) fn recent(socket: &Path, now_ms: u64, reach_ms: u64) -> io::Result<HistorySpan> {
    let from_ms = now_ms.saturating_sub(reach_ms);
    span(
        socket,
        &SpanRequest {
            from_ms,
            to_ms: now_ms,
            points: RECENT_POINTS,
            resolution_ms: None,
            wanted: Wanted::all(),
        },
    )
}

/// Returns the body of a response.
pub(crate) fn get(socket: &Path, target: &str) -> io::Result<String> {
    let stream = UnixStream::connect(socket)?;
    let Answer { status, body } = send_request(stream, PATIENCE, &format!("GET {target}"), "")?;
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
    fn only_an_answer_that_is_whole_and_well_is_one() {
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
        assert_eq!(get(&socket, "/x").unwrap(), "body");
        assert_eq!(
            get(&socket, "/x").unwrap_err().to_string(),
            "no such metric"
        );
        assert!(get(&socket, "/x").is_err());
        serving.join().unwrap();
        assert!(get(&socket, "/x").is_err(), "nobody listens");
    }
}
