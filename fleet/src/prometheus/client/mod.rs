//! A client for Prometheus' HTTP API, with time and size limits.
//!
//! Redirects are not followed, because only the user decides where requests and credentials are
//! sent.

mod error;
mod proxy;

use std::{
    io::Read,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use error::format_causes;
use flate2::read::GzDecoder;
use gpumon_probe::{file_stamp::FileStamp, owner::clean_line};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Request, StatusCode,
    body::Incoming,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderName,
        HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
    },
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{Client as Pool, connect::HttpConnector},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::timeout;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::settings::{Address, Authorization, ClientCertificate, Settings, SettingsError};
use crate::{
    credentials::{
        NO_AUTHORITIES, client_config_builder, read_basic_header, read_bearer_header,
        read_certificates, read_private_key, read_root_certificates,
    },
    hosts::list::strip_user,
};

pub(super) use error::QueryError;

/// The maximum number of idle connections that are kept open for later queries.
const IDLE_CONNECTIONS: usize = 4;
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Headers that settings cannot set, because the client sets them itself.
const CLIENT_HEADERS: [&str; 8] = [
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept",
    "accept-encoding",
    "te",
];

type Connections = Pool<HttpsConnector<proxy::Connector>, Empty<Bytes>>;

/// A client for one Prometheus server.
pub(super) struct Client {
    address: Address,
    settings: Settings,
    headers: HeaderMap,
    proxy: Option<Intercept>,
    connections: Mutex<(Vec<Option<FileStamp>>, Arc<Connections>)>,
}

impl Client {
    /// Creates a client from `settings`.
    ///
    /// # Errors
    /// Returns the problem with the settings, or with a file that they refer to.
    pub(super) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Self::with_proxies(settings, &Matcher::from_env())
    }

    fn with_proxies(settings: &Settings, proxies: &Matcher) -> Result<Self, SettingsError> {
        let address = Address::new(&settings.url)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let (name, value) = parse_header(name, value)?;
            headers.append(name, value);
        }
        read_authorization(&settings.authorization).map_err(SettingsError)?;
        let stamps = read_tls_file_stamps(settings);
        let proxy = proxy::find_proxy(&address, proxies)?;
        let connections =
            Arc::new(build_connections(settings, &address, proxy.clone()).map_err(SettingsError)?);
        Ok(Self {
            address,
            settings: settings.clone(),
            headers,
            proxy,
            connections: Mutex::new((stamps, connections)),
        })
    }

    /// Returns the server's address for display to users.
    pub(super) fn address(&self) -> &str {
        self.address.display_text()
    }

    /// Returns the response of an endpoint such as `query`. The response may have at most `most`
    /// bytes.
    pub(super) async fn fetch_endpoint(
        &self,
        endpoint: &str,
        parameters: &[(&str, &str)],
        most: usize,
    ) -> Result<Bytes, QueryError> {
        let request = self.send_request(endpoint, parameters, most);
        let answered = timeout(self.settings.timeout, request).await;
        answered.unwrap_or_else(|_| Err(self.timeout_error()))
    }

    pub(super) fn timeout_error(&self) -> QueryError {
        QueryError::Slow {
            address: self.display_address(),
            limit: self.settings.timeout,
        }
    }

    async fn send_request(
        &self,
        endpoint: &str,
        parameters: &[(&str, &str)],
        most: usize,
    ) -> Result<Bytes, QueryError> {
        // The server is asked to abort the query when this client stops waiting.
        let limit = format!("{}s", self.settings.timeout.as_secs_f64());
        let mut parameters = parameters.to_vec();
        parameters.push(("timeout", &limit));
        let request = self
            .build_request(&self.address.endpoint_url(endpoint, &parameters))
            .map_err(QueryError::Credentials)?;
        let connections = self
            .current_connections()
            .map_err(QueryError::Credentials)?;
        let way = self
            .proxy
            .as_ref()
            .map(|proxy| format!(" (through the proxy {})", proxy.uri()))
            .unwrap_or_default();
        let unreachable = |cause: String| QueryError::Unreachable {
            address: self.display_address(),
            cause: cause + &way,
        };
        let answer = connections
            .request(request)
            .await
            .map_err(|error| unreachable(format_causes(&error)))?;
        let (head, body) = answer.into_parts();
        match head.status {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                return Err(QueryError::Refused {
                    address: self.display_address(),
                    status: head.status,
                });
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                return Err(QueryError::NotThere {
                    address: self.display_address(),
                    status: head.status,
                });
            }
            status if status.is_redirection() => {
                let to = describe_redirect_target(head.headers.get(LOCATION));
                return Err(QueryError::Elsewhere {
                    address: self.display_address(),
                    status,
                    to,
                });
            }
            _ => {}
        }
        let read = read_body(&head.headers, body, most).await;
        let bytes = read.map_err(|error| match error {
            BodyError::TooLarge => QueryError::TooLarge {
                address: self.display_address(),
                most,
            },
            BodyError::Broken(cause) => unreachable(cause),
            BodyError::Unknown(cause) => QueryError::NotPrometheus {
                address: self.display_address(),
                cause,
            },
        })?;
        if head.status.is_success() {
            return Ok(bytes);
        }
        let message = super::answer::parse_error_message(&bytes)
            .unwrap_or_else(|| "no reason given".to_owned());
        Err(QueryError::Rejected {
            address: self.display_address(),
            status: head.status,
            message,
        })
    }

    fn build_request(&self, address: &str) -> Result<Request<Empty<Bytes>>, String> {
        let request = Request::get(address)
            .header(ACCEPT, "application/json")
            .header(
                ACCEPT_ENCODING,
                if self.address.is_local {
                    "identity"
                } else {
                    "gzip"
                },
            )
            .header(USER_AGENT, concat!("gpumon/", env!("CARGO_PKG_VERSION")));
        let mut request = request
            .body(Empty::new())
            .map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        if let Some(value) = self
            .proxy
            .as_ref()
            .filter(|_| !self.address.is_encrypted)
            .and_then(Intercept::basic_auth)
        {
            headers.insert(PROXY_AUTHORIZATION, value.clone());
        }
        if let Some(value) = read_authorization(&self.settings.authorization)? {
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Returns the pool of connections, or a new pool if a certificate file has changed.
    fn current_connections(&self) -> Result<Arc<Connections>, String> {
        let stamps = read_tls_file_stamps(&self.settings);
        let mut known = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.0 != stamps {
            *known = (
                stamps,
                Arc::new(build_connections(
                    &self.settings,
                    &self.address,
                    self.proxy.clone(),
                )?),
            );
        }
        Ok(Arc::clone(&known.1))
    }

    fn display_address(&self) -> String {
        self.address.display_text().to_owned()
    }
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), SettingsError> {
    let unfit = |cause: &str| {
        SettingsError(format!(
            "the header '{}' cannot be sent: {cause}",
            clean_line(name)
        ))
    };
    let header = HeaderName::try_from(name).map_err(|_| {
        unfit("its name must contain only letters, digits and dashes, as in X-Scope-OrgID")
    })?;
    if CLIENT_HEADERS.contains(&header.as_str()) {
        return Err(unfit(
            "gpumon sets this header itself; put credentials into a file",
        ));
    }
    let mut value =
        HeaderValue::try_from(value).map_err(|_| unfit("its value contains invalid characters"))?;
    value.set_sensitive(true);
    Ok((header, value))
}

fn build_connections(
    settings: &Settings,
    address: &Address,
    proxy: Option<Intercept>,
) -> Result<Connections, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let configuration = if address.is_encrypted {
        build_tls_config(settings)?
    } else {
        build_unencrypted_config()?
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(configuration)
        .https_or_http()
        .enable_http1();
    Ok(Pool::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector.wrap_connector(proxy::Connector { tcp, proxy })))
}

/// Describes a redirect's destination without its user, password and query, because these may
/// contain secrets.
fn describe_redirect_target(location: Option<&HeaderValue>) -> String {
    let uri = location.and_then(|value| value.to_str().ok()?.parse::<hyper::Uri>().ok());
    let of = |uri: hyper::Uri| {
        let host = uri.authority().map(|authority| {
            format!(
                "{}://{}",
                uri.scheme_str().unwrap_or("http"),
                strip_user(authority.as_str())
            )
        });
        format!("{}{}", host.unwrap_or_default(), uri.path())
    };
    clean_line(&uri.map_or_else(|| "an unknown address".to_owned(), of))
}

// Reading of response bodies up to a maximum size.

/// The reasons why a response body cannot be read.
enum BodyError {
    TooLarge,
    /// The body ended early.
    Broken(String),
    /// The body has an unsupported encoding.
    Unknown(String),
}

/// Returns the decompressed body. Both the compressed and the decompressed size are limited to
/// `most` bytes.
async fn read_body(headers: &HeaderMap, body: Incoming, most: usize) -> Result<Bytes, BodyError> {
    let bytes = Limited::new(body, most).collect().await.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            BodyError::TooLarge
        } else {
            BodyError::Broken(format_causes(error.as_ref()))
        }
    })?;
    let bytes = bytes.to_bytes();
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(bytes),
        Some(b"gzip" | b"x-gzip") => {
            let unpacked = tokio::task::spawn_blocking(move || decompress(&bytes, most)).await;
            unpacked.unwrap_or_else(|error| Err(BodyError::Broken(error.to_string())))
        }
        Some(_) => Err(BodyError::Unknown(
            "its response has an encoding that was not requested".to_owned(),
        )),
    }
}

fn decompress(bytes: &[u8], most: usize) -> Result<Bytes, BodyError> {
    let mut all = Vec::with_capacity(bytes.len().saturating_mul(16).min(most));
    let length = GzDecoder::new(bytes)
        .take(most as u64 + 1)
        .read_to_end(&mut all);
    match length {
        Err(error) => Err(BodyError::Unknown(format!(
            "its gzip data is invalid ({error})"
        ))),
        Ok(length) if length > most => Err(BodyError::TooLarge),
        Ok(_) => Ok(all.into()),
    }
}

// Credentials and trusted certificates for Prometheus, which are read again when their files
// change.

/// Returns the `Authorization` header's value, if any. The file is read at each call, because
/// Kubernetes replaces tokens every hour.
///
/// # Errors
/// Returns the problem with the file and its remedy.
fn read_authorization(of: &Authorization) -> Result<Option<HeaderValue>, String> {
    match of {
        Authorization::None => Ok(None),
        Authorization::BearerFile(path) => read_bearer_header(path).map(Some),
        Authorization::Basic {
            user,
            password_file,
        } => read_basic_header(user, password_file).map(Some),
    }
}

/// Returns the TLS configuration for an unencrypted address. It trusts no certificate.
fn build_unencrypted_config() -> Result<ClientConfig, String> {
    Ok(client_config_builder()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// Returns the TLS configuration that `settings` describe.
///
/// # Errors
/// Returns the problem with a file and its remedy.
fn build_tls_config(settings: &Settings) -> Result<ClientConfig, String> {
    let roots = read_root_certificates(settings.ca_file.as_deref())?.ok_or_else(|| {
        format!("{NO_AUTHORITIES}, or specify a file with the CA certificate of Prometheus")
    })?;
    let builder = client_config_builder()?.with_root_certificates(roots);
    let Some(ClientCertificate {
        certificate_file,
        key_file,
    }) = &settings.client_certificate
    else {
        return Ok(builder.with_no_client_auth());
    };
    let fits = builder.with_client_auth_cert(
        read_certificates(certificate_file)?,
        read_private_key(key_file)?,
    );
    fits.map_err(|error| {
        format!(
            "{} does not match its private key: {error}; specify the file that contains the \
             matching key",
            certificate_file.display()
        )
    })
}

/// Returns a stamp for each file that the TLS configuration is read from. The stamp changes when
/// the file changes.
fn read_tls_file_stamps(settings: &Settings) -> Vec<Option<FileStamp>> {
    let own = settings
        .client_certificate
        .iter()
        .flat_map(|it| [&it.certificate_file, &it.key_file]);
    let files = settings.ca_file.iter().chain(own);
    files.map(|path| FileStamp::read(path)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn decompression_is_limited() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&[b'x'; 1000]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(decompress(&packed, 1000).ok().unwrap().len(), 1000);
        assert!(matches!(decompress(&packed, 999), Err(BodyError::TooLarge)));
        assert!(matches!(
            decompress(&packed[..20], 1000),
            Err(BodyError::Unknown(_))
        ));
    }
}
