//! A client for Prometheus' HTTP API, with limits of time and bytes.
//!
//! Redirects are not followed, because the user decides where requests and credentials are sent.

mod body;
mod error;
mod files;
mod proxy;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use gpumon_probe::{file_stamp::FileStamp, owner::clean_line};
use http_body_util::Empty;
use hyper::{
    Request, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION,
        PROXY_AUTHORIZATION, USER_AGENT,
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

pub(super) use self::error::QueryError;
use self::error::causes;
use super::{
    address::Address,
    settings::{Settings, SettingsError},
};

/// The maximum number of idle connections that are kept for further queries.
const IDLE_CONNECTIONS: usize = 4;
const IDLE: Duration = Duration::from_mins(1);

/// Headers that the client sets itself.
const OWN_HEADERS: [&str; 8] = [
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

/// A client of one Prometheus.
pub(super) struct Client {
    address: Address,
    settings: Settings,
    headers: HeaderMap,
    proxy: Option<Intercept>,
    connections: Mutex<(Vec<Option<FileStamp>>, Arc<Connections>)>,
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    /// Returns the problem of the settings, or of a file that they name.
    pub(super) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Self::with_proxies(settings, &Matcher::from_env())
    }

    fn with_proxies(settings: &Settings, proxies: &Matcher) -> Result<Self, SettingsError> {
        let address = Address::new(&settings.url)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let (name, value) = header(name, value)?;
            headers.append(name, value);
        }
        files::authorization(&settings.authorization).map_err(SettingsError)?;
        let stamps = files::read_stamps(&files::of_tls(settings));
        let proxy = proxy::of(&address, proxies)?;
        let connections =
            Arc::new(connections(settings, &address, proxy.clone()).map_err(SettingsError)?);
        Ok(Self {
            address,
            settings: settings.clone(),
            headers,
            proxy,
            connections: Mutex::new((stamps, connections)),
        })
    }

    /// Returns the address for display.
    pub(super) fn address(&self) -> &str {
        self.address.name()
    }

    /// Returns the answer of an endpoint such as `query`, with at most `most` bytes.
    pub(super) async fn get(
        &self,
        endpoint: &str,
        parameters: &[(&str, &str)],
        most: usize,
    ) -> Result<Bytes, QueryError> {
        let limit = self.settings.timeout;
        let answered = timeout(limit, self.ask(endpoint, parameters, most)).await;
        answered.unwrap_or_else(|_| {
            Err(QueryError::Slow {
                address: self.name(),
                limit,
            })
        })
    }

    async fn ask(
        &self,
        endpoint: &str,
        parameters: &[(&str, &str)],
        most: usize,
    ) -> Result<Bytes, QueryError> {
        // Prometheus aborts the query after the same time.
        let limit = format!("{}s", self.settings.timeout.as_secs_f64());
        let mut parameters = parameters.to_vec();
        parameters.push(("timeout", &limit));
        let request = self
            .request(&self.address.endpoint(endpoint, &parameters))
            .map_err(QueryError::Credentials)?;
        let connections = self.connections().map_err(QueryError::Credentials)?;
        let way = self
            .proxy
            .as_ref()
            .map(|proxy| format!(" (by the proxy {})", proxy.uri()))
            .unwrap_or_default();
        let unreachable = |cause: String| QueryError::Unreachable {
            address: self.name(),
            cause: cause + &way,
        };
        let answer = connections
            .request(request)
            .await
            .map_err(|error| unreachable(causes(&error)))?;
        let (head, body) = answer.into_parts();
        match head.status {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                return Err(QueryError::Refused {
                    address: self.name(),
                    status: head.status,
                });
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                return Err(QueryError::NotThere {
                    address: self.name(),
                    status: head.status,
                });
            }
            status if status.is_redirection() => {
                let to = origin(head.headers.get(LOCATION));
                return Err(QueryError::Elsewhere {
                    address: self.name(),
                    status,
                    to,
                });
            }
            _ => {}
        }
        let read = body::read(&head.headers, body, most).await;
        let bytes = read.map_err(|error| match error {
            body::BodyError::TooLarge => QueryError::TooLarge {
                address: self.name(),
                most,
            },
            body::BodyError::Broken(cause) => unreachable(cause),
            body::BodyError::Unknown(cause) => QueryError::NotPrometheus {
                address: self.name(),
                cause,
            },
        })?;
        if head.status.is_success() {
            return Ok(bytes);
        }
        let message = super::answer::error_message(&bytes)
            .unwrap_or_else(|| "it does not say why".to_owned());
        Err(QueryError::Rejected {
            address: self.name(),
            status: head.status,
            message,
        })
    }

    fn request(&self, address: &str) -> Result<Request<Empty<Bytes>>, String> {
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
        if let Some(value) = files::authorization(&self.settings.authorization)? {
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Returns the connections, or new ones if a certificate has been replaced.
    fn connections(&self) -> Result<Arc<Connections>, String> {
        let stamps = files::read_stamps(&files::of_tls(&self.settings));
        let mut known = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.0 != stamps {
            *known = (
                stamps,
                Arc::new(connections(
                    &self.settings,
                    &self.address,
                    self.proxy.clone(),
                )?),
            );
        }
        Ok(Arc::clone(&known.1))
    }

    fn name(&self) -> String {
        self.address.name().to_owned()
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), SettingsError> {
    let unfit = |cause: &str| {
        SettingsError(format!(
            "'{}' is no header to send: {cause}",
            clean_line(name)
        ))
    };
    let header = HeaderName::try_from(name)
        .map_err(|_| unfit("use letters, digits and dashes, as X-Scope-OrgID"))?;
    if OWN_HEADERS.contains(&header.as_str()) {
        return Err(unfit(
            "this server sets it itself; credentials come from a file",
        ));
    }
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| unfit("its value has characters that none can have"))?;
    value.set_sensitive(true);
    Ok((header, value))
}

fn connections(
    settings: &Settings,
    address: &Address,
    proxy: Option<Intercept>,
) -> Result<Connections, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let configuration = if address.is_encrypted {
        files::tls(settings)?
    } else {
        files::no_tls()?
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(configuration)
        .https_or_http()
        .enable_http1();
    Ok(Pool::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector.wrap_connector(proxy::Connector { tcp, proxy })))
}

/// Returns the destination of a redirect, without parts that may be secret.
fn origin(location: Option<&HeaderValue>) -> String {
    let uri = location.and_then(|value| value.to_str().ok()?.parse::<hyper::Uri>().ok());
    let of = |uri: hyper::Uri| {
        let host = uri.authority().map(|authority| {
            format!(
                "{}://{}",
                uri.scheme_str().unwrap_or("http"),
                without_user(authority.as_str())
            )
        });
        format!("{}{}", host.unwrap_or_default(), uri.path())
    };
    clean_line(&uri.map_or_else(|| "an address that it does not tell".to_owned(), of))
}

fn without_user(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or(authority)
}
