//! Rate limits for requests, guesses and connections, and the clients that they apply to.

use std::time::Duration;

use super::{digest::Digest, rate::Rate};
use crate::peer::Who;

/// The limit of wrong passwords for one user from one address.
pub(super) const GUESSES_FOR_USER: Rate = Rate {
    burst: 10,
    spacing: Duration::from_secs(6),
};

/// The limit of wrong passwords from one address for all users. Each takes a tenth of a second of
/// CPU time.
pub(super) const GUESSES: Rate = Rate {
    burst: 60,
    spacing: Duration::from_secs(1),
};

/// The limit of wrong passwords through one proxy for all users. Clients that can also reach the
/// port directly can invent the addresses that a proxy would report.
pub(super) const GUESSES_BY_PROXY: Rate = Rate {
    burst: 300,
    spacing: Duration::from_millis(300),
};

/// The limit of unauthenticated requests through one proxy, because reported addresses can be
/// invented.
pub(super) const REQUESTS_BY_PROXY: Rate = Rate {
    burst: 5000,
    spacing: Duration::from_millis(1),
};

/// The limit of TLS connections from one address. Each takes up to a millisecond of CPU time before
/// the client sends a token.
pub(super) const HANDSHAKES: Rate = Rate {
    burst: 2000,
    spacing: Duration::from_millis(2),
};

/// The client and user for which wrong passwords are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Guesser {
    /// The digest of the user's name, or `None` for all users together.
    pub(super) user: Option<Digest>,
    pub(super) client: Who,
}

/// The client for which requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Requester {
    /// The owner of a token, session or certificate at an address.
    Identity(Digest, Who),
    /// All unauthenticated clients at an address.
    Client(Who),
    /// All unauthenticated clients of a proxy.
    Proxy(Who),
}
