//! Outside of loopback, a server only listens with encryption and authentication.

use std::net::TcpStream;

use super::{House, RUN, bearer, bounded, serve};
use crate::support::{gpumon, refused};

#[test]
fn without_tls_or_without_asking_anybody_it_refuses_to_start_and_says_how() {
    let house = House::new();
    let (web, tokens) = (house.argument("web.yml"), house.argument("tokens"));
    for listen in ["0.0.0.0:0", "[::]:0"] {
        for (option, arguments, missing) in [
            ("--listen", &[] as &[&str], ["--web-config", "--token-file"]),
            (
                "--listen",
                &["--token-file", &tokens],
                ["nothing is encrypted", "--web-config"],
            ),
            (
                "--listen",
                &["--web-config", &web],
                ["nobody has to sign in", "--token-file"],
            ),
            (
                "--metrics-listen",
                &["--token-file", &tokens],
                ["nothing is encrypted", "--web-config"],
            ),
            (
                "--metrics-listen",
                &["--web-config", &web],
                ["nobody has to sign in", "--token-file"],
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
            refused(bounded(&gpumon(&all)), 2, missing[0]);
            refused(bounded(&gpumon(&all)), 2, missing[1]);
            refused(bounded(&gpumon(&all)), 2, "ssh -L");
        }
    }
}

#[test]
fn a_client_certificate_that_may_be_left_out_asks_nobody() {
    let house = House::new();
    house.write_web_config(
        "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: ca.crt\n",
    );
    let web = house.argument("web.yml");
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
    refused(bounded(&gpumon(&all)), 2, "nobody has to sign in");
}

#[test]
fn with_both_it_listens_and_lets_in_who_has_a_token() {
    let house = House::new();
    let (web, tokens) = (house.argument("web.yml"), house.argument("tokens"));
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
    let server = crate::support::Server::start(gpumon(&all));
    let client = house.client();
    assert_eq!(
        client.ask(server.port, "GET /api/v1/snapshot", &[]).status,
        401
    );
    assert_eq!(
        client
            .ask(server.port, "GET /api/v1/snapshot", &[&bearer(RUN)])
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
fn on_loopback_everything_is_as_it_was_and_tokens_are_asked_for_where_there_are_some() {
    let house = House::new();
    let open = serve(&[]);
    assert_eq!(open.get("/api/v1/snapshot?brief=true").status, 200);
    let asking = house.with_tokens(&[]);
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
    let mut by_environment = gpumon(&[
        "--source",
        "sim",
        "serve",
        "--no-control",
        "--listen",
        "127.0.0.1:0",
    ]);
    let asking = crate::support::Server::start({
        by_environment.env("GPUMON_TOKEN", RUN);
        by_environment
    });
    let ask = |headers: &[&str]| {
        crate::support::ask(asking.port, "/api/v1/snapshot?brief=true", headers).status
    };
    assert_eq!((ask(&[]), ask(&[&bearer(RUN)])), (401, 200));
}
