//! Authentication, authorization and rate limits.
//!
//! - [`client`] contains the client of a request, its authenticated identity, and the scopes of
//!   access.
//! - [`tokens`], [`passwords`] and client certificates are the credentials. [`credentials`] parses
//!   them from requests, and hashes them, because the server stores only digests. [`sessions`]
//!   contains the web page's sessions, which [`routes`] starts and ends.
//! - [`access_policy`] combines all of these for one server, and reads changed files again.
//!   [`check`] runs before every route, and ends streams whose permission has ended.
//! - [`rate`] counts each client's actions, and contains the limits.

mod access_policy;
mod check;
mod client;
mod credentials;
mod passwords;
mod rate;
pub(crate) mod routes;
mod sessions;
mod tokens;

pub use self::access_policy::{AccessError, AccessPolicy, AccessSettings};
pub(crate) use self::{
    check::{ReadPermission, authenticate_request, limit_rate},
    client::{Client, Identity, SESSION_PATH, Scope, format_peer},
    credentials::Digest,
    passwords::Users,
    rate::{Rate, RatePerClient},
    sessions::{HOST_COOKIE_PREFIX, SESSION_COOKIE_PREFIX, cookie_values},
};
