//! The scopes of access.

use std::{fmt, str::FromStr};

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scope of access. Each scope includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// The metrics, and whether the server is ready.
    Metrics,
    /// All readings and states that the server shows.
    Read,
    /// Starting and canceling runs, setting marks, and controlling a replay.
    Run,
}

/// The path of the sign-in endpoint.
pub(crate) const SESSION_PATH: &str = "/api/v1/session";

const ALL: [Scope; 3] = [Scope::Metrics, Scope::Read, Scope::Run];

impl Scope {
    /// Returns the scope that a request needs. `None` means everybody: the page without its data,
    /// the sign-in, and whether the server is alive. Unknown paths below `/api/` need at least
    /// [`Scope::Read`].
    pub(crate) fn required_scope(method: &Method, path: &str) -> Option<Self> {
        let is_reading = method == Method::GET || method == Method::HEAD;
        match path {
            "/healthz" | SESSION_PATH => None,
            "/metrics" | "/metrics/dcgm" | "/metrics/dcgm-4.9" | "/readyz" if is_reading => {
                Some(Self::Metrics)
            }
            // Requests to a node need only the read scope here: viewers sign in at the node, which
            // checks any changes.
            _ if path.starts_with("/nodes/") => Some(Self::Read),
            _ if !is_reading => Some(Self::Run),
            _ if path.starts_with("/api/") => Some(Self::Read),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Read => "read",
            Self::Run => "run",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        ALL.into_iter().find(|scope| scope.name() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_includes_lower_scopes() {
        assert!(Scope::Metrics < Scope::Read && Scope::Read < Scope::Run);
        assert_eq!("run".parse(), Ok(Scope::Run));
        assert!("Run".parse::<Scope>().is_err() && "".parse::<Scope>().is_err());
    }

    #[test]
    fn scope_depends_on_method_and_path() {
        let required = |method: &str, path| Scope::required_scope(&method.parse().unwrap(), path);
        for (path, scope) in [
            ("/healthz", None),
            ("/", None),
            ("/assets/main.js", None),
            ("/metrics", Some(Scope::Metrics)),
            ("/metrics/dcgm", Some(Scope::Metrics)),
            ("/metrics/dcgm-4.9", Some(Scope::Metrics)),
            ("/readyz", Some(Scope::Metrics)),
            ("/api/v1/snapshot", Some(Scope::Read)),
            ("/api/v1/stream", Some(Scope::Read)),
            ("/api/v2/whatever", Some(Scope::Read)),
        ] {
            assert_eq!(required("GET", path), scope, "{path}");
            assert_eq!(required("HEAD", path), scope, "{path}");
        }
        for method in ["POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            assert_eq!(
                required(method, "/api/v1/runs"),
                Some(Scope::Run),
                "{method}"
            );
            assert_eq!(required(method, "/metrics"), Some(Scope::Run), "{method}");
        }
    }
}
