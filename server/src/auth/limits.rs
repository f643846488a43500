//! Rate limits for requests, password guesses and connections, and the keys under which clients are
//! counted.

use std::time::Duration;

use super::{digest::Digest, rate::Rate};
use crate::peer::PeerKey;

/// The limit of wrong passwords for a user from the same address.
pub(super) const GUESS_LIMIT_FOR_USER: Rate = Rate {
    burst: 10,
    spacing: Duration::from_secs(6),
};

/// The limit of wrong passwords from one address for all users. Each check takes a tenth of a
/// second of CPU time.
pub(super) const GUESS_LIMIT: Rate = Rate {
    burst: 60,
    spacing: Duration::from_secs(1),
};

/// The limit of wrong passwords through one proxy for all users. A client that can also reach the
/// port directly can forge the addresses that a proxy reports.
pub(super) const GUESS_LIMIT_BY_PROXY: Rate = Rate {
    burst: 300,
    spacing: Duration::from_millis(300),
};

/// The limit of unauthenticated requests through one proxy. The addresses that a proxy reports can
/// be forged.
pub(super) const REQUEST_LIMIT_BY_PROXY: Rate = Rate {
    burst: 5000,
    spacing: Duration::from_millis(1),
};

/// The limit of TLS handshakes from one address. Each takes up to a millisecond of CPU time before
/// the client has sent a token.
pub(super) const HANDSHAKE_LIMIT: Rate = Rate {
    burst: 2000,
    spacing: Duration::from_millis(2),
};

/// The client and user for which wrong passwords are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Guesser {
    /// The digest of the user's name, or `None` for all users together.
    pub(super) user: Option<Digest>,
    pub(super) client: PeerKey,
}

/// The client for which requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Requester {
    /// The owner of a token, session or certificate at an address.
    Identity(Digest, PeerKey),
    /// All unauthenticated clients at an address.
    Client(PeerKey),
    /// All unauthenticated clients of a proxy.
    Proxy(PeerKey),
}
