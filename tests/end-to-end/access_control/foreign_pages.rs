//! Pages of other sites in the browser of a signed-in user: they can neither read nor change
//! anything.

use super::{
    CHANGING_REQUESTS, LOCAL_CHANGING_REQUESTS, RUN_TOKEN, ServerFiles, bearer_header,
    session_cookie,
};
use crate::support::{Authority, Server, TlsClient};

const UPGRADE_HEADERS: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

struct SignedInBrowser {
    server: Server,
    client: TlsClient,
    cookie: String,
    _authority: Authority,
}

impl SignedInBrowser {
    fn new() -> Self {
        let house = ServerFiles::new();
        let server = house.start_with_tls_and_tokens();
        let client = house.tls_client();
        let body = format!(r#"{{"token":"{RUN_TOKEN}"}}"#);
        let answer = client
            .try_request(
                server.port,
                "POST /api/v1/session",
                &["X-Gpumon: run"],
                &body,
            )
            .unwrap();
        let cookie = session_cookie(&answer);
        Self {
            server,
            client,
            cookie,
            _authority: house.authority,
        }
    }

    fn request_status(&self, request: &str, headers: &[&str], body: &str) -> u16 {
        let headers = [&[self.cookie.as_str()], headers].concat();
        self.client
            .try_request(self.server.port, request, &headers, body)
            .unwrap()
            .status
    }
}

#[test]
fn page_of_other_origin_cannot_change_anything() {
    let victim = SignedInBrowser::new();
    let own = format!("Origin: https://localhost:{}", victim.server.port);
    let not_encrypted = format!("Origin: http://localhost:{}", victim.server.port);
    let other_port = format!(
        "Origin: https://localhost:{}",
        victim.server.port.wrapping_add(1)
    );
    let session = ["POST /api/v1/session", "DELETE /api/v1/session"];
    for request in CHANGING_REQUESTS
        .into_iter()
        .chain(LOCAL_CHANGING_REQUESTS)
        .chain(session)
    {
        for origin in [
            "Origin: https://evil.example",
            "Origin: null",
            &not_encrypted,
            &other_port,
            "Origin: file://",
        ] {
            let status = victim.request_status(request, &[origin, "X-Gpumon: run"], "{}");
            assert_eq!(status, 403, "{request} {origin}");
        }
        let cross_site = [
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Mode: cors",
            "X-Gpumon: run",
        ];
        assert_eq!(
            victim.request_status(request, &cross_site, "{}"),
            403,
            "{request}"
        );
        // An HTML form cannot set custom headers.
        let form = [own.as_str(), "Content-Type: text/plain"];
        assert_eq!(
            victim.request_status(request, &form, "{}"),
            403,
            "{request}"
        );
    }
    // The same request from the page itself is accepted.
    let mark = victim.request_status(
        "POST /api/v1/marks",
        &[&own, "X-Gpumon: run", "Sec-Fetch-Site: same-origin"],
        r#"{"text":"a"}"#,
    );
    assert_eq!(mark, 201);
}

#[test]
fn navigation_request_to_api_is_refused() {
    let victim = SignedInBrowser::new();
    for path in [
        "/api/v1/snapshot",
        "/api/v1/runs",
        "/nodes/any/api/v1/snapshot",
        "/nodes/any/%61pi/v1/snapshot",
    ] {
        let request = format!("GET {path}");
        for navigation in [
            "Sec-Fetch-Mode: navigate",
            "Sec-Fetch-Dest: document",
            "Sec-Fetch-Dest: iframe",
        ] {
            assert_eq!(
                victim.request_status(&request, &[navigation, "Sec-Fetch-Site: none"], ""),
                403,
                "{path} {navigation}"
            );
        }
        assert_ne!(
            victim.request_status(
                &request,
                &["Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"],
                ""
            ),
            403,
            "{path}"
        );
    }
    let page = [
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-Dest: document",
        "Sec-Fetch-Site: cross-site",
    ];
    assert_eq!(
        victim.request_status("GET /", &page, ""),
        200,
        "a link of another page may open the page"
    );
    assert_eq!(victim.request_status("GET /metrics", &page, ""), 200);
}

#[test]
fn api_response_cannot_run_as_script() {
    let victim = SignedInBrowser::new();
    let policy = "content-security-policy: default-src 'none'; frame-ancestors 'none'; sandbox";
    for path in [
        "/api/v1/snapshot",
        "/api/v1/none",
        "/api/v1/fleet",
        "/nodes/any/api/v1/snapshot",
        "/metrics",
    ] {
        let answer = victim.client.send_request(
            victim.server.port,
            &format!("GET {path}"),
            &[&victim.cookie],
        );
        for header in [policy, "x-content-type-options: nosniff"] {
            assert!(answer.head.contains(header), "{path}: {}", answer.head);
        }
    }
}

#[test]
fn page_of_other_origin_cannot_open_stream() {
    let victim = SignedInBrowser::new();
    for origin in [
        "https://evil.example",
        "null",
        "https://localhost.evil.example",
        "http://localhost",
    ] {
        let origin = format!("Origin: {origin}");
        let headers = [&UPGRADE_HEADERS[..], &[&origin]].concat();
        assert_eq!(
            victim.request_status("GET /api/v1/stream", &headers, ""),
            403,
            "{origin}"
        );
    }
    let headers = [
        &UPGRADE_HEADERS[..],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: websocket"],
    ]
    .concat();
    assert_eq!(
        victim.request_status("GET /api/v1/stream", &headers, ""),
        403
    );
    let without = [&UPGRADE_HEADERS[..], &["Cookie: none=1"]].concat();
    let answer = victim
        .client
        .send_request(victim.server.port, "GET /api/v1/stream", &without);
    assert_eq!(answer.status, 401, "a request without a session is refused");
}

#[test]
fn unknown_host_names_are_refused() {
    let victim = SignedInBrowser::new();
    let port = victim.server.port;
    for host in [
        "localhost",
        "127.0.0.1",
        "gpus.example.org",
        "GPUS.example.org:1",
    ] {
        assert_eq!(
            victim.request_status("GET /api/v1/snapshot", &[&format!("Host: {host}")], ""),
            200,
            "{host}"
        );
    }
    for host in [
        "evil.example",
        "gpus.example.org.evil.example",
        "10.0.0.1",
        "example.org",
        "localhost.evil.example",
        "[::2]",
    ] {
        let host = format!("Host: {host}:{port}");
        assert_eq!(
            victim.request_status("GET /api/v1/snapshot", &[&host], ""),
            403,
            "{host}"
        );
        assert_eq!(victim.request_status("GET /", &[&host], ""), 403, "{host}");
    }
    assert_eq!(
        victim.request_status(
            "GET /api/v1/snapshot",
            &["Host: localhost", "Host: evil.example"],
            ""
        ),
        400
    );
}

#[test]
fn request_text_never_becomes_response_header() {
    let victim = SignedInBrowser::new();
    let port = victim.server.port;
    for path in [
        "/%0d%0aSet-Cookie:%20a=b",
        "/api/v1/history?metrics=%0d%0aSet-Cookie:a=b",
        "/api/v1/runs/%0d%0aX:y",
    ] {
        let answer =
            victim
                .client
                .send_request(port, &format!("GET {path}"), &[&bearer_header(RUN_TOKEN)]);
        assert!(
            !answer.head.contains("set-cookie") && !answer.head.contains("\r\nx:"),
            "{path}: {}",
            answer.head
        );
    }
    for header in [
        "X-A: b\rSet-Cookie: a=b",
        "X-A: b\0c",
        "X A: b",
        ": b",
        "Content-Length: 5\r\nContent-Length: 6",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let answer =
            victim
                .client
                .send_request(port, "GET /api/v1/snapshot", &[&victim.cookie, header]);
        assert!(!answer.head.contains("set-cookie"), "{header:?}");
        assert!(
            answer.status == 400 || answer.status == 200,
            "{header:?}: {}",
            answer.status
        );
    }
}
