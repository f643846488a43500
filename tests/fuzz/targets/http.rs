//! Fuzzes the HTTP server with requests and frames of the stream. The first byte selects the port
//! or the unix socket.

#![no_main]

use std::sync::LazyLock;

use gpumon_server::fuzzing::Server;
use libfuzzer_sys::fuzz_target;

static SERVER: LazyLock<Server> =
    LazyLock::new(|| Server::new(include_str!("../seeds/replay/one-gpu.ndjson")));

fuzz_target!(|bytes: &[u8]| {
    let Some((door, request)) = bytes.split_first() else {
        return;
    };
    let answer = SERVER.respond(door % 2 == 0, request);
    let is_http = answer.is_empty() || answer.starts_with(b"HTTP/1.");
    assert!(is_http, "{}", String::from_utf8_lossy(&answer));
});
