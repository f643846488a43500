//! Rates of requests, guesses and connections, and the clients that they are counted for.

use std::time::Duration;

use super::{digest::Digest, rate::Rate};
use crate::peer::Who;

/// Wrong passwords for one user from one address.
pub(super) const GUESSES_FOR_USER: Rate = Rate {
    burst: 10,
    spacing: Duration::from_secs(6),
};

/// Wrong passwords from one address, for whatever users. Each takes a tenth of a second of
/// computing.
pub(super) const GUESSES: Rate = Rate {
    burst: 60,
    spacing: Duration::from_secs(1),
};

/// Wrong passwords through one proxy, for whatever users. Where clients can also reach the port
/// themselves, they can make up the addresses that a proxy would report.
pub(super) const GUESSES_BY_PROXY: Rate = Rate {
    burst: 300,
    spacing: Duration::from_millis(300),
};

/// Requests through one proxy without a valid token or session, for the same reason.
pub(super) const REQUESTS_BY_PROXY: Rate = Rate {
    burst: 5000,
    spacing: Duration::from_millis(1),
};

/// Encrypted connections from one address. Each takes up to a millisecond of computing, and none
/// shows a token before.
pub(super) const HANDSHAKES: Rate = Rate {
    burst: 2000,
    spacing: Duration::from_millis(2),
};

/// A client that guesses passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Guesser {
    /// The user whose password it would be; `None` for all users together.
    pub(super) user: Option<Digest>,
    pub(super) client: Who,
}

/// Who has a share of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Requester {
    /// The owner of a token, a session or a certificate, at an address.
    Identity(Digest, Who),
    /// Everybody else at an address.
    Client(Who),
    /// All clients of a proxy that are not identified.
    Proxy(Who),
}
