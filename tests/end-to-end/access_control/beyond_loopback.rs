//! A server refuses to listen outside of loopback without encryption and authentication.

use std::net::TcpStream;

use super::{RUN_TOKEN, ServerFiles, add_time_limit, bearer_header, start_server};
use crate::support::{assert_refused, gpumon_command};

#[test]
fn server_without_tls_or_authentication_is_refused() {
    let house = ServerFiles::new();
    let (web, tokens) = (house.path_text("web.yml"), house.path_text("tokens"));
    for listen in ["0.0.0.0:0", "[::]:0"] {
        for (option, arguments, missing) in [
            ("--listen", &[] as &[&str], ["--web-config", "--token-file"]),
            (
                "--listen",
                &["--token-file", &tokens],
                ["connections are not encrypted", "--web-config"],
            ),
            (
                "--listen",
                &["--web-config", &web],
                ["no sign-in is required", "--token-file"],
            ),
            (
                "--metrics-listen",
                &["--token-file", &tokens],
                ["connections are not encrypted", "--web-config"],
            ),
            (
                "--metrics-listen",
                &["--web-config", &web],
                ["no sign-in is required", "--token-file"],
            ),
        ] {
            let before: &[&str] = if option == "--listen" {
                &[]
            } else {
                &["--listen", "127.0.0.1:0"]
            };
            let all = [
                &["--source", "sim", "serve", "--no-control", option, listen],
                before,
                arguments,
            ]
            .concat();
            assert_refused(add_time_limit(&gpumon_command(&all)), 2, missing[0]);
            assert_refused(add_time_limit(&gpumon_command(&all)), 2, missing[1]);
            assert_refused(add_time_limit(&gpumon_command(&all)), 2, "ssh -L");
        }
    }
}

#[test]
fn optional_client_certificate_does_not_count_as_authentication() {
    let house = ServerFiles::new();
    house.write_web_config(
        "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: ca.crt\n",
    );
    let web = house.path_text("web.yml");
    let all = [
        "--source",
        "sim",
        "serve",
        "--no-control",
        "--listen",
        "0.0.0.0:0",
        "--web-config",
        &web,
    ];
    assert_refused(
        add_time_limit(&gpumon_command(&all)),
        2,
        "no sign-in is required",
    );
}

#[test]
fn server_with_tls_and_tokens_accepts_token() {
    let house = ServerFiles::new();
    let (web, tokens) = (house.path_text("web.yml"), house.path_text("tokens"));
    let all = [
        "--source",
        "sim",
        "serve",
        "--no-control",
        "--listen",
        "0.0.0.0:0",
        "--web-config",
        &web,
        "--token-file",
        &tokens,
    ];
    let server = crate::support::Server::start(gpumon_command(&all));
    let client = house.tls_client();
    assert_eq!(
        client
            .send_request(server.port, "GET /api/v1/snapshot", &[])
            .status,
        401
    );
    assert_eq!(
        client
            .send_request(
                server.port,
                "GET /api/v1/snapshot",
                &[&bearer_header(RUN_TOKEN)]
            )
            .status,
        200
    );
    // The test also uses the machine's address outside of loopback, if it has one.
    let address = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    if let Ok(address) = address {
        assert!(TcpStream::connect((address.ip(), server.port)).is_ok());
    }
}

#[test]
fn loopback_server_requires_tokens_only_if_configured() {
    let house = ServerFiles::new();
    let open = start_server(&[]);
    assert_eq!(open.get("/api/v1/snapshot?brief=true").status, 200);
    let asking = house.start_with_tokens(&[]);
    let refusal = asking.get("/api/v1/snapshot?brief=true");
    assert_eq!(refusal.status, 401);
    assert!(
        refusal.body.contains("Authorization: Bearer TOKEN"),
        "{}",
        refusal.body
    );
    assert!(
        refusal
            .head
            .contains("www-authenticate: bearer realm=\"gpumon\"")
            && !refusal.head.contains("basic")
    );
    let mut by_environment = gpumon_command(&[
        "--source",
        "sim",
        "serve",
        "--no-control",
        "--listen",
        "127.0.0.1:0",
    ]);
    let asking = crate::support::Server::start({
        by_environment.env("GPUMON_TOKEN", RUN_TOKEN);
        by_environment
    });
    let ask = |headers: &[&str]| {
        crate::support::send_get(asking.port, "/api/v1/snapshot?brief=true", headers).status
    };
    assert_eq!((ask(&[]), ask(&[&bearer_header(RUN_TOKEN)])), (401, 200));
}
