//! Authentication, authorization and rate limits.
//!
//! - [`scope`] has the scopes of access, [`identity`] the authenticated identity, [`client`] the
//!   client of a request, [`leave`] the permission of a stream.
//! - [`tokens`], [`passwords`] and client certificates are the credentials; [`sessions`] are those
//!   of the page, which [`routes`] start and end. Only the [`digest`] of a credential is stored.
//! - [`doors`] combines all of this for one server, and reads changed files again; [`check`] runs
//!   before every route.
//! - [`rate`] counts the actions of each client, [`limits`] has the limits.

mod check;
mod client;
mod cookie;
mod credentials;
mod digest;
mod doors;
mod identity;
mod leave;
mod limits;
mod passwords;
mod rate;
pub(crate) mod routes;
mod scope;
mod sessions;
mod tokens;

pub use self::doors::{DoorError, DoorSettings, Doors};
pub(crate) use self::{
    check::{check, limit},
    client::{Client, place},
    digest::Digest,
    identity::Identity,
    leave::Leave,
    passwords::Users,
    rate::{Rate, RatePerClient},
    scope::{SESSION, Scope},
};
