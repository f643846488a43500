//! Who may come in, by what, and how often.
//!
//! - [`scope`] is what somebody may do, [`identity`] who somebody has shown to be, [`client`] who
//!   asks, [`leave`] for how long.
//! - [`tokens`], [`passwords`] and client certificates are what is shown; [`sessions`] are those of
//!   the page, which [`routes`] begin and end. None of it is kept, but its [`digest`].
//! - [`doors`] is all of that for one server, read anew when its files change; [`check`] stands
//!   before every route.
//! - [`rate`] is how often each client may do something, [`limits`] which rates there are.

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
