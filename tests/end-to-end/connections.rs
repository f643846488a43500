//! Idle connections block no other clients, and answers on the port depend on the user.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{FakeNvml, Server, TEST_TIMEOUT, send_get, wait_for_condition};

/// The user ID of `nobody`.
const NOBODY_UID: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

#[test]
fn connections_without_request_are_closed() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    let begun = Instant::now();
    let open = |said: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    };
    let streams = ["", "G", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: "].map(open);
    // A connection is also closed if it has already sent a complete request.
    let mut asked = open("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    asked.read_exact(&mut [0; 15]).unwrap();
    for mut stream in streams.into_iter().chain([asked]) {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert!(
        begun.elapsed() > Duration::from_secs(8),
        "slow clients get several seconds"
    );
}

#[test]
fn excess_idle_connections_do_not_block_other_clients() {
    const DESCRIPTORS: usize = 200;
    let fake = FakeNvml::new("gpus = 1");
    let gpumon = fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}"))
        .arg(gpumon.get_program())
        .args(gpumon.get_args());
    command.envs(
        gpumon
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let server = Server::start(command);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let open = || TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let silent: Vec<TcpStream> = (0..DESCRIPTORS + 50).map(|_| open()).collect();
    for _ in 0..20 {
        assert_eq!(server.get("/healthz").status, 200);
    }
    // In spite of the connections above, enough file descriptors are left to replace the collector.
    let collector = server.collector_pid().unwrap();
    crate::support::send_signal("-KILL", collector);
    wait_for_condition("a new collector was started", || {
        server.collector_pid().is_some_and(|pid| pid != collector)
    });
    wait_for_condition("the server has a sample", || {
        server.get("/readyz").status == 200
    });
    drop(silent);
}

#[test]
fn every_response_is_restricted_to_same_origin() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    let refused: &[&str] = &["Origin: http://evil.example"];
    for (path, headers) in [
        ("/healthz", &[] as &[&str]),
        ("/api/v1/snapshot", &[]),
        ("/none", &[]),
        ("/", refused),
    ] {
        let head = send_get(server.port, path, headers).head.to_lowercase();
        for header in [
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cross-origin-opener-policy: same-origin",
            "cache-control: no-",
        ] {
            assert!(
                head.contains(header),
                "{path}: {header:?} is missing in {head}"
            );
        }
    }
    let from_elsewhere =
        |headers: &[&str]| send_get(server.port, "/api/v1/snapshot", headers).status;
    assert_eq!(from_elsewhere(&["Sec-Fetch-Site: cross-site"]), 403);
    assert_eq!(
        from_elsewhere(&["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"]),
        403
    );
    assert_eq!(from_elsewhere(&["Sec-Fetch-Site: same-origin"]), 200);
}

/// The test needs root, to run as another user and to mount a `/proc` that hides processes.
#[test]
fn tcp_port_hides_command_lines_hidden_by_proc() {
    if !is_root() {
        println!("not run: it needs root, to be two users");
        return;
    }
    let private = [
        "unshare",
        "--mount",
        "--",
        "sh",
        "-c",
        "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"",
        "sh",
    ];
    if !Command::new(private[0])
        .args(&private[1..])
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
    {
        println!("not run: no mount namespace can be made here");
        return;
    }
    let secret = "--token=hunter2";
    let mut own = Command::new("python3")
        .args(["-c", "import time; time.sleep(600)", secret])
        .spawn()
        .unwrap();
    let fake = FakeNvml::new(&format!(
        "gpus = 1\n[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n",
        own.id()
    ));
    for (is_private, others_see_it) in [(true, false), (false, true)] {
        let gpumon = fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut command = Command::new(if is_private { private[0] } else { "env" });
        command.args(if is_private { &private[1..] } else { &[] });
        command.arg(gpumon.get_program()).args(gpumon.get_args());
        command.envs(
            gpumon
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let server = Server::start(command);
        wait_for_condition("the snapshot contains the command line", || {
            server.get("/api/v1/snapshot").body.contains(secret)
        });
        assert!(
            !server.get("/api/v1/answers").body.contains(secret),
            "answers of the driver contain no command lines"
        );
        for path in ["/api/v1/snapshot", "/api/v1/snapshot?history_s=60"] {
            let others = get_as_nobody(server.port, path, &[]);
            assert_eq!(others.contains(secret), others_see_it, "{path}: {others}");
            assert!(server.get(path).body.contains(secret), "{path}");
        }
        let upgrade = [
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ];
        let others = get_as_nobody(server.port, "/api/v1/stream", &upgrade);
        assert!(
            others.contains("\"type\":\"hello\"") && others.contains("\"type\":\"sample\""),
            "{others}"
        );
        assert_eq!(others.contains(secret), others_see_it, "{others}");
    }
    own.kill().unwrap();
    own.wait().unwrap();
}

/// Returns the bytes that user `nobody` receives within three seconds.
pub(crate) fn get_as_nobody(port: u16, path: &str, headers: &[&str]) -> String {
    let script = "
import socket, sys, time
port, path, *headers = sys.argv[1:]
client = socket.create_connection(('127.0.0.1', int(port)))
client.settimeout(1)
end = time.monotonic() + 3
lines = [f'GET {path} HTTP/1.1', f'Host: localhost:{port}', *headers, '', '']
client.sendall('\\r\\n'.join(lines).encode())
got = b''
try:
    while time.monotonic() < end and (part := client.recv(65536)):
        got += part
except TimeoutError:
    pass
sys.stdout.buffer.write(got)
";
    let output = Command::new("python3")
        .args(["-c", script, &port.to_string(), path])
        .args(headers)
        .uid(NOBODY_UID)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
