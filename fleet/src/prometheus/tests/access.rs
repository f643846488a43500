//! Tests of connections and credentials, including the errors when they fail.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration};

use axum::http::StatusCode;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, crypto::ring, pki_types::PrivateKeyDer,
        server::WebPkiClientVerifier,
    },
};

use super::{Behavior, FakeServer, GPUMON_SERIES, read_until, settings_for, start_reader};
use crate::{
    FleetReader, Range,
    model::FleetState,
    prometheus::{Authorization, ClientCertificate, PrometheusReader, Settings},
};

#[tokio::test]
async fn failure_is_described_and_earlier_data_is_kept() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    let before = reader.fetch_current_fleet().await;
    let history = reader
        .fetch_history(Range::new(3600).unwrap(), None)
        .await
        .unwrap();
    assert_eq!(history.state, FleetState::Current);
    let json = "application/json";
    let error = r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples"}"#;
    for (behavior, words) in [
        (
            Behavior::Raw(StatusCode::UNAUTHORIZED, "text/plain", "no"),
            "denies access to this server (401 Unauthorized)",
        ),
        (
            Behavior::Raw(StatusCode::FORBIDDEN, "text/plain", "no"),
            "denies access to this server (403 Forbidden)",
        ),
        (
            Behavior::Raw(StatusCode::NOT_FOUND, "text/plain", "no"),
            "there is no Prometheus API at",
        ),
        (
            Behavior::Raw(StatusCode::OK, "text/html", "<html>Sign in</html>"),
            "it returned a web page",
        ),
        (
            Behavior::Raw(
                StatusCode::OK,
                json,
                "{\"status\":\"success\",\"data\":{\"result\":[{\"met",
            ),
            "not the result of a query",
        ),
        (
            Behavior::Elsewhere("https://user:secret@sso.example.org/login?token=x"),
            "https://sso.example.org/login.",
        ),
        (Behavior::Endless, "larger than"),
        (
            Behavior::Raw(StatusCode::UNPROCESSABLE_ENTITY, json, error),
            "too many samples",
        ),
        (
            Behavior::Raw(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "busy"),
            "rejected a query (503",
        ),
        (Behavior::Hung, "did not respond within 2 s"),
    ] {
        let mut settings = settings_for(&fake);
        if matches!(behavior, Behavior::Hung) {
            settings.timeout = Duration::from_secs(2);
        }
        fake.set_behavior(behavior);
        // A reader pauses after a failure, so each case uses a new reader.
        let other = PrometheusReader::new(settings).unwrap();
        let fleet = other.fetch_current_fleet().await;
        assert_eq!(fleet.state, FleetState::Loading, "{words}");
        assert!(
            fleet.problems[0].contains(words) && !fleet.problems[0].contains("secret"),
            "{words}: {:?}",
            fleet.problems
        );
        let usage = other.fetch_usage(Range::new(3600).unwrap()).await.unwrap();
        assert_eq!(
            (usage.state, usage.owners.len()),
            (FleetState::Loading, 0),
            "{words}"
        );
    }
    // The reader continues to show the previous state.
    let after = read_until(&reader, |fleet| fleet.state != FleetState::Current).await;
    assert_eq!(
        (after.state, after.at_ms),
        (FleetState::Outdated, before.at_ms)
    );
    assert_eq!((&after.gpus, &after.nodes), (&before.gpus, &before.nodes));
    assert!(
        after.problems[0].contains("did not respond"),
        "{:?}",
        after.problems
    );
}

#[tokio::test]
async fn memory_released_after_large_answer_is_reported_once() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    reader.fetch_current_fleet().await;
    assert_eq!(
        reader.take_released_memory_kib(),
        0,
        "answers of some bytes"
    );
    fake.set_behavior(Behavior::Endless);
    read_until(&reader, |fleet| fleet.state != FleetState::Current).await;
    assert!(reader.take_released_memory_kib() >= 48 << 10);
    assert_eq!(reader.take_released_memory_kib(), 0);
}

#[tokio::test]
async fn unanswered_queries_keep_previous_data() {
    let json = "application/json";
    let error = r#"{"status":"error","errorType":"execution","error":"too many samples"}"#;
    for behavior in [
        Behavior::Raw(StatusCode::UNPROCESSABLE_ENTITY, json, error),
        Behavior::Endless,
    ] {
        let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
        let before = reader.fetch_current_fleet().await;
        fake.set_behavior(behavior);
        let after = read_until(&reader, |fleet| fleet.state != FleetState::Current).await;
        assert_eq!(
            (after.state, after.at_ms),
            (FleetState::Outdated, before.at_ms),
            "{:?}",
            after.problems
        );
        assert_eq!(after.gpus, before.gpus);
    }
}

#[tokio::test]
async fn missing_targets_are_reported_as_problem() {
    let fake = FakeServer::start(Behavior::Series(GPUMON_SERIES)).await;
    let mut settings = settings_for(&fake);
    // GPUs are counted only every twentieth time the fleet is read. With a short period, the test
    // does not have to wait long for this.
    settings.period = Duration::from_millis(500);
    let reader = PrometheusReader::new(settings).unwrap();
    assert!(reader.fetch_current_fleet().await.problems.is_empty());
    fake.set_behavior(Behavior::Series(""));
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Some(problem) = reader.fetch_current_fleet().await.problems.first() {
            assert!(
                problem.contains("has no GPU metrics. Configure it"),
                "{problem}"
            );
            return;
        }
    }
    panic!("no problem is reported");
}

#[tokio::test]
async fn closed_port_is_reported() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let reader = PrometheusReader::new(Settings::new(format!("http://{free}"))).unwrap();
    let fleet = reader.fetch_current_fleet().await;
    let problem = &fleet.problems[0];
    assert!(
        problem.contains("cannot be reached") && problem.contains("Connection refused"),
        "{problem}"
    );
}

#[tokio::test]
async fn requests_have_credentials_and_configured_headers() {
    let fake = FakeServer::start(Behavior::Series(GPUMON_SERIES)).await;
    let folder = tempfile::tempdir().unwrap();
    let token = write_private_file(folder.path(), "token", "one");
    let mut settings = settings_for(&fake);
    settings.authorization = Authorization::BearerFile(token.clone());
    settings.headers = vec![("X-Scope-OrgID".to_owned(), "team-a".to_owned())];
    let reader = PrometheusReader::new(settings.clone()).unwrap();
    reader.fetch_current_fleet().await;
    assert_eq!(
        (
            &fake.headers()["authorization"],
            &fake.headers()["x-scope-orgid"]
        ),
        (&"Bearer one".parse().unwrap(), &"team-a".parse().unwrap())
    );
    write_private_file(folder.path(), "token", "two");
    read_until(&reader, |_| fake.headers()["authorization"] == "Bearer two").await;
    // While the file is missing, the reader reports a problem. It recovers when the file exists
    // again.
    fs::remove_file(&token).unwrap();
    read_until(&reader, |fleet| {
        fleet.state == FleetState::Outdated && fleet.problems[0].contains("cannot read")
    })
    .await;
    assert!(
        PrometheusReader::new(settings.clone())
            .err()
            .unwrap()
            .to_string()
            .contains("cannot read")
    );
    settings.authorization = Authorization::None;
    for (name, value, words) in [
        ("a b", "x", "letters"),
        ("Authorization", "x", "sets this header itself"),
        ("x", "a\nb", "its value"),
    ] {
        settings.headers = vec![(name.to_owned(), value.to_owned())];
        assert!(
            PrometheusReader::new(settings.clone())
                .err()
                .unwrap()
                .to_string()
                .contains(words),
            "{name}"
        );
    }
}

/// Writes a file with permissions for its owner only.
fn write_private_file(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[tokio::test]
async fn client_and_prometheus_authenticate_with_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let [ca_file, key_file] = [("ca.pem", &certificate), ("key.pem", &key)]
        .map(|(name, text)| write_private_file(folder.path(), name, text));
    // The server never answers requests, but it requires a client certificate during the handshake.
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
    let der = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let configuration = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![own.cert.der().clone()], der)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(configuration));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                stream
                    .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                    .await?;
                stream.shutdown().await
            });
        }
    });
    let mut settings = Settings::new(format!("https://localhost:{port}"));
    let problem = async |settings: &Settings| {
        let reader = PrometheusReader::new(settings.clone()).unwrap();
        reader.fetch_current_fleet().await.problems[0].clone()
    };
    let unknown = problem(&settings).await;
    assert!(unknown.contains("certificate"), "{unknown}");
    settings.ca_file = Some(ca_file.clone());
    let nobody = problem(&settings).await;
    assert!(nobody.contains("cannot be reached"), "{nobody}");
    let of = |key_file| {
        Some(ClientCertificate {
            certificate_file: ca_file.clone(),
            key_file,
        })
    };
    settings.client_certificate = of(key_file.clone());
    let welcome = problem(&settings).await;
    assert!(
        welcome.contains("denies access to this server (403"),
        "{welcome}"
    );
    settings.client_certificate = of(ca_file.clone());
    assert!(
        PrometheusReader::new(settings.clone())
            .err()
            .unwrap()
            .to_string()
            .contains("no unencrypted private key")
    );
    settings.ca_file = Some(key_file);
    assert!(
        PrometheusReader::new(settings)
            .err()
            .unwrap()
            .to_string()
            .contains("contains no certificate")
    );
}
