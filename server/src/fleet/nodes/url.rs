//! Address patterns for the nodes' servers.

use std::{fmt, net::IpAddr, str::FromStr};

use axum::http::Uri;
use gpumon_fleet::NodeAddress;

use super::problem::NodeProblem;

const DEFAULT_PATTERN: &str = "https://{host}:9123/";

/// An address pattern. `{host}` and `{port}` are replaced by the host and port of a node's metrics,
/// and `{node}` by the node's name in the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUrl(String);

/// The address of a node's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeTarget {
    pub(super) is_tls: bool,
    /// A hostname or an IP address. IPv6 addresses have no brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The value of the `Host` header.
    pub(super) authority: String,
    /// The path, with a trailing slash.
    pub(super) path: String,
}

impl Default for NodeUrl {
    fn default() -> Self {
        Self(DEFAULT_PATTERN.to_owned())
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NodeUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!("{what}: use an address with {{host}} or {{node}}, such as {DEFAULT_PATTERN}")
        };
        if text.contains('@') {
            return Err(wrong(
                "an address cannot contain credentials; specify a token with --node-token-file",
            ));
        }
        if !(text.contains("{host}") || text.contains("{node}")) {
            return Err(wrong("all nodes would have the same address"));
        }
        let url = Self(if text.ends_with('/') {
            text.to_owned()
        } else {
            format!("{text}/")
        });
        let sample = NodeAddress {
            host: "node".to_owned(),
            port: Some(9123),
        };
        url.resolve("node", &sample)
            .map_err(|_| wrong("the value is not a valid address"))?;
        Ok(url)
    }
}

impl NodeUrl {
    /// Returns `true` if all nodes have the same host and port, for example because they are behind
    /// the same reverse proxy.
    pub(super) fn has_fixed_host(&self) -> bool {
        let authority = self
            .0
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        authority.is_some_and(|authority| !authority.contains('{'))
    }

    /// Returns `true` if the port does not come from Prometheus.
    pub(super) fn has_fixed_port(&self) -> bool {
        !self.0.contains("{port}")
    }

    /// Returns the address of a node's server. Names from Prometheus are not trusted: each must be
    /// a hostname or an IP address.
    ///
    /// # Errors
    /// Returns an error if a name is not valid in an address.
    pub(super) fn resolve(
        &self,
        node: &str,
        address: &NodeAddress,
    ) -> Result<NodeTarget, NodeProblem> {
        let unfit = |text: &str| NodeProblem::NotAName(text.to_owned());
        let host = to_url_host(&address.host).ok_or_else(|| unfit(&address.host))?;
        let mut text = self.0.replace("{host}", &host);
        if text.contains("{port}") {
            let port = address.port.ok_or(NodeProblem::NoPort)?;
            text = text.replace("{port}", &port.to_string());
        }
        if text.contains("{node}") {
            text = text.replace(
                "{node}",
                &self::to_url_host(node).ok_or_else(|| unfit(node))?,
            );
        }
        NodeTarget::new(&text).ok_or_else(|| unfit(&text))
    }
}

impl NodeTarget {
    fn new(text: &str) -> Option<Self> {
        let uri: Uri = text
            .parse()
            .ok()
            .filter(|uri: &Uri| uri.query().is_none())?;
        let is_tls = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        let usual = if is_tls { 443 } else { 80 };
        let port = match authority.as_str().strip_prefix(authority.host())? {
            "" => usual,
            port => port
                .strip_prefix(':')?
                .parse()
                .ok()
                .filter(|port| *port != 0)?,
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let (authority, path) = (authority.to_string(), uri.path().to_owned());
        (!host.is_empty()).then_some(Self {
            is_tls,
            host,
            port,
            authority,
            path,
        })
    }
}

impl fmt::Display for NodeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Returns the host as it is written in addresses; `None` if it is neither a hostname nor an IP
/// address.
fn to_url_host(text: &str) -> Option<String> {
    match text.parse() {
        Ok(IpAddr::V4(_)) => return Some(text.to_owned()),
        Ok(IpAddr::V6(ip)) => return Some(format!("[{ip}]")),
        Err(_) => {}
    }
    let is_name = (1..=253).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_'));
    is_name.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_target(url: &str, host: &str) -> Result<String, NodeProblem> {
        let address = NodeAddress {
            host: host.to_owned(),
            port: Some(9400),
        };
        url.parse::<NodeUrl>()
            .unwrap()
            .resolve("gpu-1", &address)
            .map(|target| target.to_string())
    }

    #[test]
    fn node_address_is_built_from_pattern() {
        for (url, host, made) in [
            (DEFAULT_PATTERN, "node1", "https://node1:9123/"),
            (
                DEFAULT_PATTERN,
                "node1.example.org",
                "https://node1.example.org:9123/",
            ),
            (DEFAULT_PATTERN, "10.0.0.7", "https://10.0.0.7:9123/"),
            (DEFAULT_PATTERN, "fd00::7", "https://[fd00::7]:9123/"),
            (
                "http://{host}:{port}",
                "127.0.0.1",
                "http://127.0.0.1:9400/",
            ),
            (
                "https://{node}.gpus.example.org",
                "10.0.0.7",
                "https://gpu-1.gpus.example.org/",
            ),
            (
                "https://gate.example.org/gpumon/{host}/",
                "node1",
                "https://gate.example.org/gpumon/node1/",
            ),
        ] {
            assert_eq!(resolve_target(url, host).unwrap(), made);
        }
        let fixed = |url: &str| url.parse::<NodeUrl>().unwrap().has_fixed_host();
        assert!(fixed("https://gate.example.org/gpumon/{host}/"));
        assert!(
            !fixed(DEFAULT_PATTERN)
                && !fixed("https://{node}.gpus.example.org")
                && !fixed("https://gate:{port}/{host}")
        );
        let ports = |url: &str| {
            let url: NodeUrl = url.parse().unwrap();
            url.resolve(
                "n",
                &NodeAddress {
                    host: "n".to_owned(),
                    port: None,
                },
            )
        };
        assert_eq!(ports("https://{host}").unwrap().port, 443);
        assert!(matches!(
            ports("https://{host}:{port}/"),
            Err(NodeProblem::NoPort)
        ));
    }

    #[test]
    fn invalid_host_is_refused() {
        for host in [
            "",
            "a b",
            "evil.example/",
            "evil.example?",
            "evil.example#",
            "user@evil.example",
            "node:1@evil.example",
            "-oProxyCommand=x",
            ".",
            "a\nb",
            "ä",
            "a%2f",
            "[::1]",
            "a\\b",
            "{port}",
        ] {
            for url in [DEFAULT_PATTERN, "https://gate.example.org/{host}/"] {
                assert!(
                    matches!(resolve_target(url, host), Err(NodeProblem::NotAName(_))),
                    "{host:?}"
                );
            }
        }
        assert!(resolve_target(DEFAULT_PATTERN, &"a".repeat(254)).is_err());
    }

    #[test]
    fn invalid_pattern_is_refused() {
        for (url, why) in [
            ("https://node1:9123/", "same address"),
            ("https://ana:secret@{host}/", "--node-token-file"),
            ("ftp://{host}/", "the value is not a valid address"),
            ("{host}:9123", "the value is not a valid address"),
            ("https://{host}:99999/", "the value is not a valid address"),
            (
                "https://{host}:9123/?token=x",
                "the value is not a valid address",
            ),
            ("", "same address"),
        ] {
            let error = url.parse::<NodeUrl>().unwrap_err();
            assert!(
                error.contains(why) && error.contains(DEFAULT_PATTERN),
                "{url}: {error}"
            );
        }
    }
}
