//! Webhook addresses. An address is a secret, because anyone who knows it can send messages, and is
//! never shown.

use std::fmt;

/// The example URL in error messages, without its scheme.
const EXAMPLE_URL: &str = "://HOST/PATH";

/// A parsed `http` or `https` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookAddress {
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// The name or address of the host. An IPv6 address has no brackets.
    pub host: String,
    pub port: u16,
    /// The path with the query.
    pub target: String,
}

impl WebhookAddress {
    /// Parses a URL.
    ///
    /// # Errors
    /// Returns what is wrong with the URL, without quoting it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        const EXPECTED_URL: &str = "the URL of a webhook must have the form \"https://HOST/PATH\"";
        let (scheme, rest) = url.split_once("://").ok_or(EXPECTED_URL)?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(EXPECTED_URL),
        };
        if rest
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii())
        {
            return Err(
                "the URL contains spaces or non-ASCII characters; percent-encode them, for example \
                 a space as %20",
            );
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(
                "the URL contains a user name, which is not sent; put the credentials into the \
                 path or the query",
            );
        }
        let usual = if is_tls { 443 } else { 80 };
        let (host, port) = match authority
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'))
        {
            Some((host, "")) => (host, Some(usual)),
            Some((host, port)) => (
                host,
                port.strip_prefix(':').and_then(|port| port.parse().ok()),
            ),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, port.parse().ok()),
                None => (authority, Some(usual)),
            },
        };
        let port = port
            .filter(|port| *port != 0)
            .ok_or("the port of the URL must be a number from 1 to 65535")?;
        if host.is_empty() {
            return Err(EXPECTED_URL);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port,
            target: format!("{slash}{target}"),
        })
    }

    /// Returns the host and port as written in a URL, without a default port.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// Replaces everything in `text` that may be a webhook address, except for the example URL.
pub(super) fn redact_urls(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at);
        let end = address
            .find(|c: char| c.is_whitespace() || "\"'`".contains(c))
            .unwrap_or(address.len());
        let (address, behind) = address.split_at(end);
        hidden.extend([
            before,
            if address == EXAMPLE_URL {
                EXAMPLE_URL
            } else {
                "://…"
            },
        ]);
        rest = behind;
    }
    hidden + rest
}

impl fmt::Debug for WebhookAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_url_is_never_displayed() {
        let parts = |url| {
            WebhookAddress::parse(url)
                .map(|it| (it.is_tls, it.host.clone(), it.port, it.target.clone()))
        };
        assert_eq!(
            parts("https://hooks.example.org/services/T0/B0?x=1#y"),
            Ok((
                true,
                "hooks.example.org".into(),
                443,
                "/services/T0/B0?x=1".into()
            ))
        );
        assert_eq!(
            parts("http://127.0.0.1:8080"),
            Ok((false, "127.0.0.1".into(), 8080, "/".into()))
        );
        assert_eq!(
            parts("http://[::1]:81?a"),
            Ok((false, "::1".into(), 81, "/?a".into()))
        );
        assert_eq!(
            WebhookAddress::parse("http://[::1]:81/")
                .unwrap()
                .authority(),
            "[::1]:81"
        );
        for bad in [
            "hooks.example.org",
            "ftp://a/",
            "https:///x",
            "https://u:p@a/",
            "http://a:0/",
            "http://a b/",
        ] {
            let error = WebhookAddress::parse(bad).unwrap_err();
            assert!(!error.contains(bad), "{error}");
        }
        let shown = format!(
            "{:?}",
            WebhookAddress::parse("https://hooks.example.org/secret")
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}
