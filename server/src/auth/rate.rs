//! Rate limits for each client.

use std::{collections::HashMap, hash::Hash, sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::lock;

/// The maximum number of clients that are counted separately. If there are more within seconds, it
/// is an attack, and new clients have to wait.
const MOST_CLIENTS: usize = 100_000;

/// A rate limit: the number of actions at once, and the time until another one is allowed. There is
/// no limit if that time is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    pub(crate) spacing: Duration,
}

/// The number of recent actions of each client.
#[derive(Debug)]
pub(crate) struct RatePerClient<K> {
    /// The time at which each client's past actions are used up: each action moves it by the
    /// spacing of the limit. Clients whose time has passed have the full limit again.
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
    /// Returns the time after which it is allowed.
    pub(crate) fn admit(&self, client: K, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut even = lock::lock(&self.even);
        if even.len() >= MOST_CLIENTS {
            even.retain(|_, even| *even > now);
        }
        let before = even.get(&client).copied();
        if before.is_none() && even.len() >= MOST_CLIENTS {
            return Err(rate.spacing);
        }
        wait(before, rate, now)?;
        even.insert(client, before.unwrap_or(now).max(now) + rate.spacing);
        Ok(())
    }

    /// Removes an action from the count.
    pub(crate) fn forgive(&self, client: &K, rate: Rate) {
        let mut even = lock::lock(&self.even);
        if let Some(even) = even.get_mut(client) {
            *even -= rate.spacing;
        }
    }

    /// Checks whether an action is allowed, without counting it.
    ///
    /// # Errors
    /// Returns the time after which it is allowed.
    pub(crate) fn check(&self, client: &K, rate: Rate, now: Instant) -> Result<(), Duration> {
        let even = lock::lock(&self.even);
        wait(even.get(client).copied(), rate, now)
    }
}

fn wait(even: Option<Instant>, rate: Rate, now: Instant) -> Result<(), Duration> {
    let ahead = even.map_or(Duration::ZERO, |even| even.saturating_duration_since(now));
    let room = rate.spacing.saturating_mul(rate.burst.saturating_sub(1));
    match ahead.checked_sub(room) {
        None | Some(Duration::ZERO) => Ok(()),
        Some(wait) => Err(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::RATE as MARK_RATE;

    const RATE: Rate = Rate {
        burst: 10,
        spacing: Duration::from_secs(6),
    };

    #[test]
    fn each_client_has_a_burst_and_then_one_at_a_time() {
        let counts = RatePerClient::new();
        let now = Instant::now();
        let admitted = |client, at| {
            (0..100)
                .filter(|_| counts.admit(client, RATE, at).is_ok())
                .count()
        };
        assert_eq!(admitted("a", now), 10);
        assert_eq!(counts.check(&"a", RATE, now), Err(Duration::from_secs(6)));
        assert_eq!(admitted("b", now), 10, "another client");
        assert_eq!(admitted("a", now + Duration::from_secs(12)), 2);
        assert_eq!(admitted("a", now + Duration::from_mins(10)), 10);
    }

    #[test]
    fn marks_come_at_once_and_then_each_second() {
        let limit = RatePerClient::new();
        let start = Instant::now();
        let admitted = |after| {
            (0..100)
                .filter(|_| limit.admit("mark", MARK_RATE, start + after).is_ok())
                .count()
        };
        assert_eq!(admitted(Duration::ZERO), 20);
        assert_eq!(admitted(Duration::from_millis(999)), 0);
        assert_eq!(admitted(Duration::from_secs(3)), 3);
        assert_eq!(admitted(Duration::from_secs(1000)), 20);
    }

    #[test]
    fn no_time_between_two_is_no_limit() {
        let (counts, now) = (RatePerClient::new(), Instant::now());
        let any = Rate {
            burst: 1,
            spacing: Duration::ZERO,
        };
        assert!((0..1000).all(|_| counts.admit(1, any, now).is_ok()));
    }

    #[test]
    fn checking_counts_nothing() {
        let counts = RatePerClient::new();
        let now = Instant::now();
        assert!((0..100).all(|_| counts.check(&1, RATE, now).is_ok()));
        assert_eq!(
            (0..100)
                .filter(|_| counts.admit(1, RATE, now).is_ok())
                .count(),
            10
        );
    }

    #[test]
    fn what_is_forgiven_does_not_count() {
        let (counts, now) = (RatePerClient::new(), Instant::now());
        counts.forgive(&1, RATE);
        for _ in 0..100 {
            assert!(counts.admit(1, RATE, now).is_ok());
            counts.forgive(&1, RATE);
        }
        assert_eq!(
            (0..100)
                .filter(|_| counts.admit(1, RATE, now).is_ok())
                .count(),
            10
        );
    }

    #[test]
    fn many_clients_take_no_more_memory_than_some() {
        let counts = RatePerClient::new();
        let now = Instant::now();
        assert!((0..MOST_CLIENTS).all(|client| counts.admit(client, RATE, now).is_ok()));
        assert!(counts.admit(MOST_CLIENTS, RATE, now).is_err());
        assert!(
            counts
                .admit(MOST_CLIENTS, RATE, now + Duration::from_secs(7))
                .is_ok(),
            "the others are forgotten"
        );
    }
}
