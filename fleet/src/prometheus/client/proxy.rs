//! Connections to Prometheus through a proxy. As for curl, the environment variables `HTTP_PROXY`,
//! `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` select the proxy. Encrypted connections are tunneled
//! through the proxy (`CONNECT`).

use std::{
    error::Error,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use hyper::{
    Uri,
    http::uri::Scheme,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::prometheus::settings::{Address, SettingsError};

/// Returns the proxy to use for `address`, if any. Addresses on this machine are never proxied.
///
/// # Errors
/// Returns an error if the proxy type is not supported.
pub(super) fn find_proxy(
    address: &Address,
    matcher: &Matcher,
) -> Result<Option<Intercept>, SettingsError> {
    let proxy = address
        .uri()
        .filter(|_| !address.is_local)
        .and_then(|uri| matcher.intercept(&uri));
    match &proxy {
        Some(other) if other.uri().scheme() != Some(&Scheme::HTTP) => Err(SettingsError(format!(
            "the proxy {} is not an HTTP proxy; set HTTP_PROXY and HTTPS_PROXY to an HTTP proxy, \
             such as http://proxy.example.org:3128, or add the host of Prometheus to NO_PROXY",
            other.uri()
        ))),
        _ => Ok(proxy),
    }
}

/// A connector that goes through the proxy, if one is configured.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) tcp: HttpConnector,
    pub(super) proxy: Option<Intercept>,
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Stream, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        // For encrypted requests, the proxy only opens a tunnel, and cannot read them.
        if let Some(proxy) = &self.proxy
            && to.scheme() != Some(&Scheme::HTTP)
        {
            let tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
            let opened = proxy
                .basic_auth()
                .cloned()
                .into_iter()
                .fold(tunnel, Tunnel::with_auth)
                .call(to);
            return Box::pin(async {
                Ok(Stream {
                    io: opened.await?,
                    is_proxied: false,
                })
            });
        }
        let is_proxied = self.proxy.is_some();
        let server = self.proxy.as_ref().map_or(to, |proxy| proxy.uri().clone());
        let opened = self.tcp.call(server);
        Box::pin(async move {
            Ok(Stream {
                io: opened.await?,
                is_proxied,
            })
        })
    }
}

/// A connection to Prometheus or a proxy. A proxy that forwards unencrypted requests needs the full
/// URL in each request.
pub(super) struct Stream {
    io: TokioIo<TcpStream>,
    is_proxied: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.is_proxied)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use tokio::{
        io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
        net::TcpListener,
        sync::mpsc,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
    };

    use super::{super::Client, *};
    use crate::prometheus::Settings;

    async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    async fn send_response(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
        let head = read_head(stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        head
    }

    /// Starts a proxy and an encrypted server behind it. Returns the proxy's address, and a channel
    /// with the headers of all requests that either of them receives.
    async fn start_proxy(tls: TlsAcceptor) -> (String, mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, heads) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut first = [0; 7];
                stream.peek(&mut first).await.unwrap();
                if &first == b"CONNECT" {
                    seen.send(read_head(&mut stream).await).unwrap();
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                    seen.send(send_response(&mut tls.accept(stream).await.unwrap()).await)
                        .unwrap();
                } else {
                    seen.send(send_response(&mut stream).await).unwrap();
                }
            }
        });
        (address, heads)
    }

    #[tokio::test]
    async fn proxy_forwards_plain_and_tunnels_encrypted_requests() {
        let own = rcgen::generate_simple_self_signed(["prometheus.test".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let configuration = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let (address, mut heads) = start_proxy(TlsAcceptor::from(Arc::new(configuration))).await;
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        fs::write(&ca_file, own.cert.pem()).unwrap();
        let matcher = Matcher::builder()
            .all(format!("http://ana:secret@{address}"))
            .build();
        let ask = async |url: &str| {
            let settings = Settings {
                ca_file: Some(ca_file.clone()),
                ..Settings::new(url)
            };
            Client::with_proxies(&settings, &matcher)
                .unwrap()
                .fetch_endpoint("query", &[("query", "up")], 100)
                .await
                .unwrap()
        };
        let credentials = "roxy-authorization: Basic YW5hOnNlY3JldA==\r\n";
        assert_eq!(ask("http://prometheus.test:9090/x").await, "{}");
        let plain = heads.recv().await.unwrap().replace("Proxy", "proxy");
        assert!(
            plain.starts_with("GET http://prometheus.test:9090/x/api/v1/query?query=up"),
            "{plain}"
        );
        assert!(plain.contains(credentials), "{plain}");
        assert_eq!(ask("https://prometheus.test").await, "{}");
        let tunnel = heads.recv().await.unwrap();
        assert!(
            tunnel.starts_with("CONNECT prometheus.test:443 ")
                && tunnel.to_lowercase().contains("proxy-auth")
        );
        let inner = heads.recv().await.unwrap();
        assert!(
            inner.starts_with("GET /api/v1/query?query=up") && !inner.contains(credentials),
            "{inner}"
        );
    }

    #[test]
    fn local_and_excepted_addresses_bypass_proxy() {
        let matcher = |proxy: &str| {
            Matcher::builder()
                .all(proxy)
                .no("example.org, 10.0.0.0/8")
                .build()
        };
        let by = |url: &str| {
            find_proxy(
                &Address::new(url).unwrap(),
                &matcher("http://proxy.test:3128"),
            )
            .unwrap()
        };
        for url in [
            "http://localhost:9090",
            "https://127.0.0.1",
            "http://[::1]:9090",
            "http://p.example.org",
            "http://10.1.2.3",
        ] {
            assert!(by(url).is_none(), "{url}");
        }
        assert_eq!(
            by("https://prometheus.test").unwrap().uri(),
            "http://proxy.test:3128/"
        );
        let address = Address::new("https://prometheus.test").unwrap();
        let error = find_proxy(&address, &matcher("socks5://ana:secret@proxy.test:1080"))
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("NO_PROXY") && !error.contains("secret"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn unreachable_proxy_is_named_in_error() {
        let free = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let matcher = Matcher::builder()
            .all(format!("http://ana:secret@{free}"))
            .build();
        let client =
            Client::with_proxies(&Settings::new("http://prometheus.test:9090"), &matcher).unwrap();
        let error = client
            .fetch_endpoint("query", &[], 100)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("(through the proxy http://{free}/). Check"))
                && !error.contains("secret"),
            "{error}"
        );
    }
}
