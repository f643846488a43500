//! The check of the headers `Host` and `Origin` on every route.
//!
//! A page of another site can make the browser send requests to this server, and can even read the
//! responses through DNS rebinding. Pages cannot change the headers `Host` and `Origin`, so these
//! distinguish such requests from those of this server's own page.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use percent_encoding::percent_decode_str;
use tokio::sync::watch;

use crate::{
    auth::AccessPolicy, connections::Arrival, live_settings::LiveSettings,
    public_origin::PublicOrigin,
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// A TCP port. It accepts the machine's loopback names, the connection's address, the names in
    /// the server's certificate, and the hosts of public origins.
    Port,
    /// A Unix socket. It accepts any name, because browsers cannot connect to it. Programs that
    /// can, such as jupyter-server-proxy, pass on the name that the browser used.
    Socket,
}

/// The state needed to check requests.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) access: Access,
    pub(crate) live: watch::Receiver<LiveSettings>,
    pub(crate) policy: Arc<AccessPolicy>,
}

/// The values of `Sec-Fetch-Dest` for responses that browsers render as a page or embed in one
/// (Fetch Metadata, section 2.1).
const PAGE_DESTINATIONS: [&str; 6] = [
    "document",
    "iframe",
    "frame",
    "fencedframe",
    "embed",
    "object",
];

pub(crate) async fn check_origin(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response {
    if is_api(request.uri().path()) && is_navigation(request.headers()) {
        let message = "the API is for programs and has no pages: open the page at /, or use curl\n";
        return (StatusCode::FORBIDDEN, message).into_response();
    }
    let arrival = request.extensions().get::<Arrival>();
    let local = arrival
        .and_then(|arrival| arrival.local)
        .map(|local| local.ip().to_canonical());
    let is_tls = arrival.is_some_and(|arrival| arrival.is_tls);
    match guard.check_headers(local, is_tls, request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, message)) => (status, message).into_response(),
    }
}

type Refusal = (StatusCode, &'static str);

impl Guard {
    /// Checks the `Host` and `Origin` headers. `local` is the server's own address of the
    /// connection.
    fn check_headers(
        &self,
        local: Option<IpAddr>,
        is_tls: bool,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let public = Arc::clone(&self.live.borrow().public_origins);
        let host: Authority = parse_single_header(headers, header::HOST.as_str()).ok_or((
            StatusCode::BAD_REQUEST,
            "a request needs exactly one valid Host header\n",
        ))?;
        if matches!(self.access, Access::Port) && !self.is_server_address(&host, local, &public) {
            return Err((
                StatusCode::FORBIDDEN,
                "this server does not accept this Host header: use http://localhost or \
                 http://127.0.0.1, or reach the machine with ssh -L 9123:127.0.0.1:9123; with TLS, \
                 use a name in the server's certificate; behind a reverse proxy, start gpumon \
                 serve with --public-origin and the address that browsers use, such as \
                 https://gpus.example.org\n",
            ));
        }
        if is_cross_site(headers) {
            return Err((
                StatusCode::FORBIDDEN,
                "requests from pages of another site are refused\n",
            ));
        }
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        // A proxy that changes the `Host` header keeps the original host in `X-Forwarded-Host`.
        let forwarded = matches!(self.access, Access::Socket)
            .then(|| parse_single_header(headers, "x-forwarded-host"))
            .flatten();
        let is_ours = parse_single_header(headers, header::ORIGIN.as_str()).is_some_and(
            |origin: PublicOrigin| {
                // A page that was not transferred over TLS may have been tampered with.
                let may_be_own = !is_tls || origin.is_https();
                let has_host = [Some(host), forwarded]
                    .iter()
                    .flatten()
                    .any(|own| origin.matches_host(own));
                (may_be_own && has_host) || public.contains(&origin)
            },
        );
        is_ours.then_some(()).ok_or((
            StatusCode::FORBIDDEN,
            "requests from pages of another origin are refused; behind a reverse proxy, start \
             gpumon serve with --public-origin and the address that browsers use, such as \
             https://gpus.example.org\n",
        ))
    }

    fn is_server_address(
        &self,
        host: &Authority,
        local: Option<IpAddr>,
        public: &[PublicOrigin],
    ) -> bool {
        let name = host.host();
        // DNS rebinding needs a name, so requests for an address are safe.
        let is_address = || {
            local.is_some_and(|local| {
                parse_address(name).is_some_and(|ip| ip.to_canonical() == local)
            })
        };
        let is_certified = || {
            self.policy
                .web_config()
                .is_some_and(|web| web.tls.as_ref().is_some_and(|tls| tls.has_name(name)))
        };
        is_loopback(name)
            || is_address()
            || public.iter().any(|origin| origin.matches_host(host))
            || is_certified()
    }
}

/// Returns `true` if the browser reports that a page of another site sent the request (Fetch
/// Metadata). Links from other sites to this server's page are allowed, because they open in a
/// window that the other site cannot read.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let opens_a_window = has_header_value(headers, "sec-fetch-mode", "navigate")
        && has_header_value(headers, "sec-fetch-dest", "document");
    has_header_value(headers, "sec-fetch-site", "cross-site") && !opens_a_window
}

/// Returns `true` for an API path of this server or of a node.
fn is_api(path: &str) -> bool {
    let of_node = path
        .strip_prefix("/nodes/")
        .and_then(|rest| rest.split_once('/'))
        .map(|(_, rest)| rest);
    let path = percent_decode_str(of_node.unwrap_or(path)).decode_utf8_lossy();
    path.trim_start_matches('/').starts_with("api/")
}

/// Returns `true` if the browser renders the response as a page or embeds it in one.
fn is_navigation(headers: &HeaderMap) -> bool {
    has_header_value(headers, "sec-fetch-mode", "navigate")
        || PAGE_DESTINATIONS
            .iter()
            .any(|page| has_header_value(headers, "sec-fetch-dest", page))
}

fn has_header_value(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get_all(name).iter().any(|found| found == value)
}

/// Returns a header's value if the header occurs exactly once and is valid.
fn parse_single_header<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.parse().ok()?;
    values.next().is_none().then_some(value)
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || parse_address(host).is_some_and(|ip| ip.is_loopback())
}

fn parse_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn check_request(access: Access, headers: &[(&'static str, &str)]) -> Result<(), StatusCode> {
        check_request_at(access, [127, 0, 0, 1].into(), false, headers)
    }

    fn check_request_at(
        access: Access,
        local: IpAddr,
        is_tls: bool,
        headers: &[(&'static str, &str)],
    ) -> Result<(), StatusCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let public_origins = ["https://gpus.example.org".parse().unwrap()].into();
        let live = LiveSettings {
            public_origins,
            ..LiveSettings::default()
        }
        .into_constant_receiver();
        let guard = Guard {
            access,
            live,
            policy: Arc::new(AccessPolicy::allow_all()),
        };
        guard
            .check_headers(Some(local), is_tls, &map)
            .map_err(|(status, _)| status)
    }

    #[test]
    fn host_header_must_match_address_of_connection() {
        let local: IpAddr = [10, 0, 0, 7].into();
        let answer = |host: &str| check_request_at(Access::Port, local, true, &[("host", host)]);
        assert_eq!(
            (answer("10.0.0.7:9123"), answer("10.0.0.7")),
            (Ok(()), Ok(()))
        );
        for host in ["10.0.0.8", "10.0.0.7.evil.example", "evil.example:9123"] {
            assert_eq!(answer(host), Err(StatusCode::FORBIDDEN), "{host}");
        }
        let mapped = check_request_at(
            Access::Port,
            local,
            true,
            &[("host", "[::ffff:10.0.0.7]:9123")],
        );
        assert_eq!(mapped, Ok(()));
    }

    #[test]
    fn unencrypted_origin_is_refused_over_tls() {
        let local = [127, 0, 0, 1].into();
        for (scheme, is_tls, answer) in [
            ("https", true, Ok(())),
            ("http", true, Err(StatusCode::FORBIDDEN)),
            ("http", false, Ok(())),
        ] {
            let origin = format!("{scheme}://localhost:9123");
            let asked = check_request_at(
                Access::Port,
                local,
                is_tls,
                &[("host", "localhost:9123"), ("origin", &origin)],
            );
            assert_eq!(asked, answer, "{scheme} {is_tls}");
        }
    }

    #[test]
    fn loopback_port_refuses_other_host_names() {
        for host in [
            "localhost:9123",
            "127.0.0.1:9123",
            "[::1]:9123",
            "LOCALHOST",
        ] {
            assert_eq!(
                check_request(Access::Port, &[("host", host)]),
                Ok(()),
                "{host}"
            );
        }
        for host in [
            "evil.example:9123",
            "127.0.0.1.evil.example",
            "192.168.1.4:9123",
            "localhost.evil.example",
        ] {
            assert_eq!(
                check_request(Access::Port, &[("host", host)]),
                Err(StatusCode::FORBIDDEN),
                "{host}"
            );
        }
    }

    #[test]
    fn invalid_or_repeated_host_is_refused() {
        assert_eq!(
            check_request(Access::Port, &[]),
            Err(StatusCode::BAD_REQUEST)
        );
        assert_eq!(
            check_request(Access::Socket, &[("host", "a b")]),
            Err(StatusCode::BAD_REQUEST)
        );
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(
            check_request(Access::Port, &twice),
            Err(StatusCode::BAD_REQUEST)
        );
    }

    #[test]
    fn request_from_public_origin_may_have_any_host() {
        for host in ["gpus.example.org", "127.0.0.1:9123"] {
            for (origin, answer) in [
                ("https://gpus.example.org", Ok(())),
                (
                    "https://gpus.example.org.evil.example",
                    Err(StatusCode::FORBIDDEN),
                ),
                ("null", Err(StatusCode::FORBIDDEN)),
            ] {
                assert_eq!(
                    check_request(Access::Port, &[("host", host), ("origin", origin)]),
                    answer,
                    "{host} {origin}"
                );
            }
        }
        let framed = [
            ("host", "gpus.example.org"),
            ("sec-fetch-site", "cross-site"),
        ];
        assert_eq!(
            check_request(Access::Port, &framed),
            Err(StatusCode::FORBIDDEN),
            "other sites are refused all the same"
        );
    }

    #[test]
    fn foreign_origin_is_refused() {
        let own = [
            ("host", "localhost:9123"),
            ("origin", "http://localhost:9123"),
        ];
        assert_eq!(check_request(Access::Port, &own), Ok(()));
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost:8888",
            "file://",
            "http://localhost:9123.evil.example",
        ] {
            let foreign = [("host", "localhost:9123"), ("origin", origin)];
            assert_eq!(
                check_request(Access::Port, &foreign),
                Err(StatusCode::FORBIDDEN),
                "{origin}"
            );
        }
    }

    #[test]
    fn cross_site_request_may_only_navigate_to_page() {
        let ask_from = |more: &[(&'static str, &'static str)]| {
            let headers = [
                &[("host", "localhost:9123"), ("sec-fetch-site", "cross-site")],
                more,
            ]
            .concat();
            check_request(Access::Port, &headers)
        };
        assert_eq!(ask_from(&[]), Err(StatusCode::FORBIDDEN));
        assert_eq!(
            ask_from(&[("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")]),
            Err(StatusCode::FORBIDDEN)
        );
        assert_eq!(
            ask_from(&[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")]),
            Err(StatusCode::FORBIDDEN)
        );
        assert_eq!(
            ask_from(&[
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document")
            ]),
            Ok(())
        );
        for site in ["same-origin", "same-site", "none"] {
            assert_eq!(
                check_request(
                    Access::Port,
                    &[("host", "localhost"), ("sec-fetch-site", site)]
                ),
                Ok(()),
                "{site}"
            );
        }
    }

    #[test]
    fn api_path_is_recognized_below_nodes() {
        for path in [
            "/api/v1/runs",
            "/nodes/gpu1/api/v1/runs",
            "/nodes/gpu1/%61pi/v1/runs",
            "/nodes/a%2Fb/api/v1/runs",
        ] {
            assert!(is_api(path), "{path}");
        }
        for path in [
            "/",
            "/metrics",
            "/nodes/gpu1/",
            "/nodes/gpu1/assets/api/x.js",
            "/apis",
            "/assets/api/",
        ] {
            assert!(!is_api(path), "{path}");
        }
    }

    #[test]
    fn navigation_is_distinguished_from_fetch() {
        let headers = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())])
        };
        assert!(is_navigation(&headers("sec-fetch-mode", "navigate")));
        for page in PAGE_DESTINATIONS {
            assert!(is_navigation(&headers("sec-fetch-dest", page)), "{page}");
        }
        for mode in ["cors", "no-cors", "same-origin", "websocket"] {
            assert!(!is_navigation(&headers("sec-fetch-mode", mode)), "{mode}");
        }
        assert!(
            !is_navigation(&headers("sec-fetch-dest", "empty"))
                && !is_navigation(&HeaderMap::new())
        );
    }

    #[test]
    fn forwarded_host_is_used_on_unix_socket() {
        let direct = [
            ("host", "hub.example.org"),
            ("origin", "https://hub.example.org"),
        ];
        assert_eq!(check_request(Access::Socket, &direct), Ok(()));
        let rewritten = [
            ("host", "backend"),
            ("x-forwarded-host", "hub.example.org"),
            ("origin", "https://hub.example.org"),
        ];
        assert_eq!(check_request(Access::Socket, &rewritten), Ok(()));
        let foreign = [
            ("host", "hub.example.org"),
            ("origin", "https://evil.example"),
        ];
        assert_eq!(
            check_request(Access::Socket, &foreign),
            Err(StatusCode::FORBIDDEN)
        );
        // A port has no trusted proxy, so `X-Forwarded-Host` is ignored.
        let claimed = [
            ("host", "localhost:9123"),
            ("x-forwarded-host", "evil.example"),
            ("origin", "http://evil.example"),
        ];
        assert_eq!(
            check_request(Access::Port, &claimed),
            Err(StatusCode::FORBIDDEN)
        );
    }
}
