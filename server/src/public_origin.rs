//! The option `--public-origin`: the address at which browsers reach the server through a reverse
//! proxy.

use std::str::FromStr;

use axum::http::{Uri, uri::Authority};
use thiserror::Error;

/// The scheme, host and port that browsers send in the `Origin` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicOrigin {
    host: String,
    port: u16,
    is_https: bool,
}

/// The error for an invalid public origin.
#[derive(Debug, Error)]
#[error(
    "{0}; use the scheme, the host and, if it is not the default, the port, such as \
     https://gpus.example.org"
)]
pub struct InvalidOrigin(&'static str);

impl FromStr for PublicOrigin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let uri: Uri = text.parse().map_err(|_| InvalidOrigin("not a URL"))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => {
                return Err(InvalidOrigin(
                    "an origin must begin with https:// or http://",
                ));
            }
        };
        let authority = uri
            .authority()
            .filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or(InvalidOrigin("the host is missing"))?;
        if authority.as_str().contains('@') {
            return Err(InvalidOrigin("an origin cannot contain a user"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(InvalidOrigin(
                "an origin cannot contain a path; the proxy can serve gpumon below any path",
            ));
        }
        if authority.host().contains('*') {
            return Err(InvalidOrigin(
                "an origin cannot contain a wildcard; repeat the option for each origin",
            ));
        }
        let port = authority.port_u16().unwrap_or(default_port(is_https));
        // The parser ignores a port that is not a number, so such a port is detected here.
        if authority.port_u16().is_none() && authority.as_str().len() > authority.host().len() {
            return Err(InvalidOrigin("the port is not a number from 1 to 65535"));
        }
        Ok(Self {
            host: authority.host().to_ascii_lowercase(),
            port,
            is_https,
        })
    }
}

impl PublicOrigin {
    /// Returns `true` if the scheme is `https`.
    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns `true` if this `Host` header belongs to a request to this origin.
    pub(crate) fn matches_host(&self, host: &Authority) -> bool {
        host.host().eq_ignore_ascii_case(&self.host)
            && host.port_u16().unwrap_or(default_port(self.is_https)) == self.port
    }
}

fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_has_scheme_host_and_port() {
        let origin: PublicOrigin = "https://GPUs.example.org/".parse().unwrap();
        let is = |text: &str| {
            text.parse()
                .is_ok_and(|other: PublicOrigin| other == origin)
        };
        assert!(is("https://gpus.example.org") && is("https://gpus.example.org:443"));
        for other in [
            "http://gpus.example.org",
            "https://gpus.example.org:8443",
            "https://example.org",
            "null",
            "",
        ] {
            assert!(!is(other), "{other}");
        }
        let has_host = |host: &str| origin.matches_host(&host.parse().unwrap());
        assert!(has_host("gpus.example.org") && has_host("GPUS.example.org:443"));
        assert!(!has_host("gpus.example.org:80") && !has_host("gpus.example.org.evil.example"));
    }

    #[test]
    fn invalid_origin_is_refused_with_advice() {
        for (text, why) in [
            ("gpus.example.org", "https://"),
            ("ftp://gpus.example.org", "https://"),
            ("https://", "URL"),
            ("https://gpus.example.org/gpumon", "path"),
            ("https://gpus.example.org?x", "path"),
            ("https://me@gpus.example.org", "user"),
            ("https://gpus.example.org:", "port"),
            ("https://gpus.example.org:99999", "port"),
            ("https://*.example.org", "wildcard"),
            ("", "URL"),
        ] {
            let error = text.parse::<PublicOrigin>().unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("as https://gpus.example.org"),
                "{text}: {error}"
            );
        }
    }
}
