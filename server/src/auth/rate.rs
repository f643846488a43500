//! Rate limits for each client's requests, password guesses and connections.

use std::{collections::HashMap, hash::Hash, sync::Mutex, time::Duration};

use tokio::time::Instant;

use super::credentials::Digest;
use crate::{lock, peer::PeerKey};

/// The maximum number of clients that are counted at the same time. More clients within seconds
/// indicate an attack, so further clients have to wait.
const MAX_CLIENTS: usize = 100_000;

/// A rate limit: `burst` actions at once, and then one action per `spacing`. If `spacing` is zero,
/// there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    pub(crate) spacing: Duration,
}

/// The number of recent actions of each client.
#[derive(Debug)]
pub(crate) struct RatePerClient<K> {
    /// For each client, the time from which a full burst is allowed again. Each action moves this
    /// time forward by the limit's spacing.
    even: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> RatePerClient<K> {
    pub(crate) fn new() -> Self {
        Self {
            even: Mutex::default(),
        }
    }

    /// Counts an action if it is allowed.
    ///
    /// # Errors
    /// Returns how long the client must wait before the action is allowed.
    pub(crate) fn admit(&self, client: K, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut even = lock::lock(&self.even);
        if even.len() >= MAX_CLIENTS {
            even.retain(|_, even| *even > now);
        }
        let before = even.get(&client).copied();
        if before.is_none() && even.len() >= MAX_CLIENTS {
            return Err(rate.spacing);
        }
        check_spacing(before, rate, now)?;
        even.insert(client, before.unwrap_or(now).max(now) + rate.spacing);
        Ok(())
    }

    /// Removes an action from the client's count.
    pub(crate) fn refund_one(&self, client: &K, rate: Rate) {
        let mut even = lock::lock(&self.even);
        if let Some(even) = even.get_mut(client) {
            *even -= rate.spacing;
        }
    }

    /// Checks whether an action is allowed, without counting it.
    ///
    /// # Errors
    /// Returns how long the client must wait before the action is allowed.
    pub(crate) fn check_without_counting(
        &self,
        client: &K,
        rate: Rate,
        now: Instant,
    ) -> Result<(), Duration> {
        let even = lock::lock(&self.even);
        check_spacing(even.get(client).copied(), rate, now)
    }
}

fn check_spacing(even: Option<Instant>, rate: Rate, now: Instant) -> Result<(), Duration> {
    let ahead = even.map_or(Duration::ZERO, |even| even.saturating_duration_since(now));
    let room = rate.spacing.saturating_mul(rate.burst.saturating_sub(1));
    match ahead.checked_sub(room) {
        None | Some(Duration::ZERO) => Ok(()),
        Some(wait) => Err(wait),
    }
}

// The server's rate limits, and the keys under which clients are counted.

/// The limit on wrong passwords for one user from one address.
pub(super) const GUESS_LIMIT_FOR_USER: Rate = Rate {
    burst: 10,
    spacing: Duration::from_secs(6),
};

/// The limit on wrong passwords from one address, for all users together. Each check takes a tenth
/// of a second of CPU time.
pub(super) const GUESS_LIMIT: Rate = Rate {
    burst: 60,
    spacing: Duration::from_secs(1),
};

/// The limit on wrong passwords through one proxy, for all users together. The limits per address
/// are not enough: a client that can also reach the port directly, without the proxy, can forge the
/// addresses that a proxy reports.
pub(super) const GUESS_LIMIT_BY_PROXY: Rate = Rate {
    burst: 300,
    spacing: Duration::from_millis(300),
};

/// The limit on unauthenticated requests through one proxy. It is needed because the addresses that
/// a proxy reports can be forged.
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
    /// The digest of the user's name; `None` if wrong passwords are counted for all users together.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_events::EVENT_RATE;

    const RATE: Rate = Rate {
        burst: 10,
        spacing: Duration::from_secs(6),
    };

    #[test]
    fn client_exceeding_burst_is_limited_to_steady_rate() {
        let counts = RatePerClient::new();
        let now = Instant::now();
        let admitted = |client, at| {
            (0..100)
                .filter(|_| counts.admit(client, RATE, at).is_ok())
                .count()
        };
        assert_eq!(admitted("a", now), 10);
        assert_eq!(
            counts.check_without_counting(&"a", RATE, now),
            Err(Duration::from_secs(6))
        );
        assert_eq!(admitted("b", now), 10, "another client");
        assert_eq!(admitted("a", now + Duration::from_secs(12)), 2);
        assert_eq!(admitted("a", now + Duration::from_mins(10)), 10);
    }

    #[test]
    fn events_exceeding_burst_are_limited_to_steady_rate() {
        let limit = RatePerClient::new();
        let start = Instant::now();
        let admitted = |after| {
            (0..100)
                .filter(|_| limit.admit("mark", EVENT_RATE, start + after).is_ok())
                .count()
        };
        assert_eq!(admitted(Duration::ZERO), 20);
        assert_eq!(admitted(Duration::from_millis(999)), 0);
        assert_eq!(admitted(Duration::from_secs(3)), 3);
        assert_eq!(admitted(Duration::from_secs(1000)), 20);
    }

    #[test]
    fn zero_spacing_disables_rate_limit() {
        let (counts, now) = (RatePerClient::new(), Instant::now());
        let any = Rate {
            burst: 1,
            spacing: Duration::ZERO,
        };
        assert!((0..1000).all(|_| counts.admit(1, any, now).is_ok()));
    }

    #[test]
    fn rate_limit_check_does_not_use_up_limit() {
        let counts = RatePerClient::new();
        let now = Instant::now();
        assert!((0..100).all(|_| counts.check_without_counting(&1, RATE, now).is_ok()));
        assert_eq!(
            (0..100)
                .filter(|_| counts.admit(1, RATE, now).is_ok())
                .count(),
            10
        );
    }

    #[test]
    fn refunded_action_does_not_use_up_limit() {
        let (counts, now) = (RatePerClient::new(), Instant::now());
        counts.refund_one(&1, RATE);
        for _ in 0..100 {
            assert!(counts.admit(1, RATE, now).is_ok());
            counts.refund_one(&1, RATE);
        }
        assert_eq!(
            (0..100)
                .filter(|_| counts.admit(1, RATE, now).is_ok())
                .count(),
            10
        );
    }

    #[test]
    fn number_of_counted_clients_is_limited() {
        let counts = RatePerClient::new();
        let now = Instant::now();
        assert!((0..MAX_CLIENTS).all(|client| counts.admit(client, RATE, now).is_ok()));
        assert!(counts.admit(MAX_CLIENTS, RATE, now).is_err());
        assert!(
            counts
                .admit(MAX_CLIENTS, RATE, now + Duration::from_secs(7))
                .is_ok(),
            "the others are forgotten"
        );
    }
}
