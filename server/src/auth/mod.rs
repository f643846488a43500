//! Authentication, authorization and rate limits.
//!
//! - [`scope`] contains the scopes of access, [`identity`] the authenticated identity, [`client`]
//!   the client of a request, and [`read_permission`] the permission of a stream.
//! - [`tokens`], [`passwords`] and client certificates are the credentials. [`sessions`] contains
//!   the web page's sessions, which [`routes`] starts and ends. Only the [`digest`] of a credential
//!   is stored.
//! - [`access_policy`] combines all of these for one server, and reads changed files again.
//!   [`check`] runs before every route.
//! - [`rate`] counts each client's actions, and [`limits`] contains the limits.

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
    check::{authenticate_request, limit_rate},
    client::{Client, format_peer},
    passwords::Users,
    rate::{Rate, RatePerClient},
};
pub(crate) use check::ReadPermission;
pub(crate) use client::{Identity, SESSION_PATH, Scope};
pub(crate) use credentials::Digest;
