//! Tests of connections and credentials, and of the errors without them.

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

use super::{Behavior, Fake, OWN, once, reader, settings};
use crate::{
    FleetReader, Range,
    model::FleetState,
    prometheus::{Authorization, ClientCertificate, PrometheusReader, Settings},
};

#[tokio::test]
async fn what_fails_is_a_sentence_and_what_was_known_stays() {
    let (fake, reader) = reader(Behavior::Series(OWN)).await;
    let before = reader.now().await;
    let history = reader
        .history(Range::new(3600).unwrap(), None)
        .await
        .unwrap();
    assert_eq!(history.state, FleetState::Current);
    let json = "application/json";
    let error = r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples"}"#;
    for (behavior, words) in [
        (
            Behavior::Raw(StatusCode::UNAUTHORIZED, "text/plain", "no"),
            "does not let this server in (401 Unauthorized)",
        ),
        (
            Behavior::Raw(StatusCode::FORBIDDEN, "text/plain", "no"),
            "does not let this server in (403 Forbidden)",
        ),
        (
            Behavior::Raw(StatusCode::NOT_FOUND, "text/plain", "no"),
            "no API of Prometheus",
        ),
        (
            Behavior::Raw(StatusCode::OK, "text/html", "<html>Sign in</html>"),
            "answers with a web page",
        ),
        (
            Behavior::Raw(
                StatusCode::OK,
                json,
                "{\"status\":\"success\",\"data\":{\"result\":[{\"met",
            ),
            "not that of a query",
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
            "refuses a query (503",
        ),
        (Behavior::Hung, "has not answered within 2 s"),
    ] {
        let mut settings = settings(&fake);
        if matches!(behavior, Behavior::Hung) {
            settings.timeout = Duration::from_secs(2);
        }
        fake.set(behavior);
        // Each case has its own reader, so that no one waits for the pause after the previous
        // failure.
        let other = PrometheusReader::new(settings).unwrap();
        let fleet = other.now().await;
        assert_eq!(fleet.state, FleetState::Loading, "{words}");
        assert!(
            fleet.problems[0].contains(words) && !fleet.problems[0].contains("secret"),
            "{words}: {:?}",
            fleet.problems
        );
        let usage = other.usage(Range::new(3600).unwrap()).await.unwrap();
        assert_eq!(
            (usage.state, usage.owners.len()),
            (FleetState::Loading, 0),
            "{words}"
        );
    }
    // In the meantime, the previous state is shown.
    let after = once(&reader, |fleet| fleet.state != FleetState::Current).await;
    assert_eq!(
        (after.state, after.at_ms),
        (FleetState::Outdated, before.at_ms)
    );
    assert_eq!((&after.gpus, &after.nodes), (&before.gpus, &before.nodes));
    assert!(
        after.problems[0].contains("has not answered"),
        "{:?}",
        after.problems
    );
}

#[tokio::test]
async fn what_was_read_and_let_go_of_is_told_once() {
    let (fake, reader) = reader(Behavior::Series(OWN)).await;
    reader.now().await;
    assert_eq!(reader.released_kib(), 0, "answers of some bytes");
    fake.set(Behavior::Endless);
    once(&reader, |fleet| fleet.state != FleetState::Current).await;
    assert!(reader.released_kib() >= 48 << 10);
    assert_eq!(reader.released_kib(), 0);
}

#[tokio::test]
async fn what_nothing_is_answered_of_is_of_before() {
    let json = "application/json";
    let error = r#"{"status":"error","errorType":"execution","error":"too many samples"}"#;
    for behavior in [
        Behavior::Raw(StatusCode::UNPROCESSABLE_ENTITY, json, error),
        Behavior::Endless,
    ] {
        let (fake, reader) = reader(Behavior::Series(OWN)).await;
        let before = reader.now().await;
        fake.set(behavior);
        let after = once(&reader, |fleet| fleet.state != FleetState::Current).await;
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
async fn what_is_scraped_no_more_is_a_problem() {
    let fake = Fake::start(Behavior::Series(OWN)).await;
    let mut settings = settings(&fake);
    // GPUs are counted only at every twentieth reading, so the test needs a short period.
    settings.period = Duration::from_millis(500);
    let reader = PrometheusReader::new(settings).unwrap();
    assert!(reader.now().await.problems.is_empty());
    fake.set(Behavior::Series(""));
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Some(problem) = reader.now().await.problems.first() {
            assert!(problem.contains("has no metrics of GPUs"), "{problem}");
            return;
        }
    }
    panic!("nobody is told");
}

#[tokio::test]
async fn nothing_listens_there() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let reader = PrometheusReader::new(Settings::new(format!("http://{free}"))).unwrap();
    let fleet = reader.now().await;
    let problem = &fleet.problems[0];
    assert!(
        problem.contains("cannot be reached") && problem.contains("Connection refused"),
        "{problem}"
    );
}

#[tokio::test]
async fn whoever_asks_shows_a_token_or_a_password_and_further_headers() {
    let fake = Fake::start(Behavior::Series(OWN)).await;
    let folder = tempfile::tempdir().unwrap();
    let token = file(folder.path(), "token", "one");
    let mut settings = settings(&fake);
    settings.authorization = Authorization::BearerFile(token.clone());
    settings.headers = vec![("X-Scope-OrgID".to_owned(), "team-a".to_owned())];
    let reader = PrometheusReader::new(settings.clone()).unwrap();
    reader.now().await;
    assert_eq!(
        (
            &fake.headers()["authorization"],
            &fake.headers()["x-scope-orgid"]
        ),
        (&"Bearer one".parse().unwrap(), &"team-a".parse().unwrap())
    );
    file(folder.path(), "token", "two");
    once(&reader, |_| fake.headers()["authorization"] == "Bearer two").await;
    // A missing file is a problem from which the reader recovers.
    fs::remove_file(&token).unwrap();
    once(&reader, |fleet| {
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
        ("Authorization", "x", "sets it itself"),
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

/// Writes a file that only its owner can read.
fn file(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[tokio::test]
async fn certificates_say_who_is_who_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let [ca_file, key_file] = [("ca.pem", &certificate), ("key.pem", &key)]
        .map(|(name, text)| file(folder.path(), name, text));
    // The server answers no request, but requires a client certificate in the handshake.
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
        reader.now().await.problems[0].clone()
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
        welcome.contains("does not let this server in (403"),
        "{welcome}"
    );
    settings.client_certificate = of(ca_file.clone());
    assert!(
        PrometheusReader::new(settings.clone())
            .err()
            .unwrap()
            .to_string()
            .contains("no private key")
    );
    settings.ca_file = Some(key_file);
    assert!(
        PrometheusReader::new(settings)
            .err()
            .unwrap()
            .to_string()
            .contains("has no certificate")
    );
}
