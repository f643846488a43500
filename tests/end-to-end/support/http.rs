//! HTTP requests with exactly the headers that a test specifies.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
};

use serde_json::Value;

use super::TEST_TIMEOUT;

pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// The body as received, without decompression.
    pub(crate) bytes: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends `GET path` to `127.0.0.1:port`. If `headers` has no `Host`, the right one is added.
pub(crate) fn send_get(port: u16, path: &str, headers: &[&str]) -> HttpResponse {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    exchange_request(
        stream,
        &format!("GET {path}"),
        &format!("localhost:{port}"),
        headers,
    )
}

/// Sends a request with any method, for example `POST /path`.
pub(crate) fn send_request_line(port: u16, request: &str) -> HttpResponse {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    exchange_request(stream, request, &format!("localhost:{port}"), &[])
}

/// Sends a request with headers and a body.
pub(crate) fn send_request(port: u16, request: &str, headers: &[&str], body: &str) -> HttpResponse {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    exchange_body(stream, request, &format!("localhost:{port}"), headers, body)
}

/// Sends a request over a unix socket.
pub(crate) fn send_socket_request(socket: &Path, request: &str) -> HttpResponse {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    exchange_request(stream, request, "localhost", &[])
}

fn exchange_request(
    stream: impl Read + Write,
    request: &str,
    host: &str,
    headers: &[&str],
) -> HttpResponse {
    exchange_body(stream, request, host, headers, "")
}

fn exchange_body(
    stream: impl Read + Write,
    request: &str,
    host: &str,
    headers: &[&str],
    body: &str,
) -> HttpResponse {
    try_exchange(stream, request, host, headers, body).unwrap()
}

/// Sends a request and reads the answer. Errors are those of the connection.
pub(super) fn try_exchange(
    mut stream: impl Read + Write,
    request: &str,
    host: &str,
    headers: &[&str],
    body: &str,
) -> io::Result<HttpResponse> {
    let mut lines = vec![
        format!("{request} HTTP/1.1"),
        "Connection: close".to_owned(),
    ];
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        lines.push(format!("Host: {host}"));
    }
    if !body.is_empty() {
        lines.push(format!("Content-Length: {}", body.len()));
    }
    lines.extend(headers.iter().map(ToString::to_string));
    stream.write_all((lines.join("\r\n") + "\r\n\r\n" + body).as_bytes())?;
    stream.flush()?;
    let mut response = Vec::new();
    match stream.read_to_end(&mut response) {
        // After a refused upgrade, the server closes the connection without TLS's `close_notify`.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !response.is_empty() => {}
        read => drop(read?),
    }
    let end = response
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap_or(response.len());
    let bytes = response.split_off((end + 4).min(response.len()));
    let head = String::from_utf8_lossy(&response).to_lowercase();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    Ok(HttpResponse {
        status,
        head,
        body: String::from_utf8_lossy(&bytes).into_owned(),
        bytes,
    })
}
