//! One request to another server, for threads that may wait.

use std::{io, ops::Range, os::unix::net::UnixStream, path::Path, time::Duration};

use gpumon_history::{plan::SpanRequest, span::HistorySpan, wanted::Wanted};
use gpumon_probe::usage::Usage;

use crate::local::{Answer, send_request};

/// It may have to read the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The points of a minute as sampled, ten times.
const RECENT_POINTS: u32 = 600;

/// What it knows of a span of the past; an error where it does not answer, or is not understood.
pub(crate) fn span(socket: &Path, request: &SpanRequest) -> io::Result<HistorySpan> {
    let target = format!("/api/v1/{}", request.target());
    Ok(serde_json::from_str(&get(socket, &target)?)?)
}

/// Who used how much there in a span; an error also where it knows none.
pub(crate) fn usage(socket: &Path, span: &Range<u64>) -> io::Result<Usage> {
    let target = format!("/api/v1/usage?from_ms={}&to_ms={}", span.start, span.end);
    let usage: Usage = serde_json::from_str(&get(socket, &target)?)?;
    // An older one answers with all since its start.
    if usage.oldest_ms.is_some() {
        Ok(usage)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// All that it knows of the last so many milliseconds.
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

/// Returns the body of an answer.
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
