//! One request to another server, for threads that may wait.

use std::{
    io::{self, Read, Write},
    ops::Range,
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use gpumon_history::{plan::SpanRequest, span::HistorySpan, wanted::Wanted};
use gpumon_probe::usage::Usage;

/// It may have to read the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// An answer has as many points as were asked for, of what a machine has.
const LONGEST: u64 = 256 << 20;

/// The points of a minute as sampled, ten times.
const RECENT_POINTS: u32 = 600;

/// What it knows of a span of the past; an error where it does not answer, or is not understood.
pub(crate) fn span(socket: &Path, request: &SpanRequest) -> io::Result<HistorySpan> {
    let target = format!("/api/v1/{}", request.target());
    Ok(serde_json::from_slice(&get(socket, &target)?)?)
}

/// Who used how much there in a span; an error also where it knows none.
pub(crate) fn usage(socket: &Path, span: &Range<u64>) -> io::Result<Usage> {
    let target = format!("/api/v1/usage?from_ms={}&to_ms={}", span.start, span.end);
    let usage: Usage = serde_json::from_slice(&get(socket, &target)?)?;
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

/// The body of an answer. HTTP/1.0 has no chunks and ends with the connection.
pub(crate) fn get(socket: &Path, target: &str) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let end = answer
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .ok_or_else(|| invalid("no HTTP"))?;
    let body = answer.split_off(end + 4);
    let status = answer.split(|byte| *byte == b' ').nth(1);
    if status == Some(b"200") {
        Ok(body)
    } else {
        Err(invalid(String::from_utf8_lossy(&body).trim()))
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

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
        assert_eq!(get(&socket, "/x").unwrap(), b"body");
        assert_eq!(
            get(&socket, "/x").unwrap_err().to_string(),
            "no such metric"
        );
        assert!(get(&socket, "/x").is_err());
        serving.join().unwrap();
        assert!(get(&socket, "/x").is_err(), "nobody listens");
    }
}
