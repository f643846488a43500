//! What came of the samples, over all clients.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use serde::Serialize;

use crate::{
    frame::Kind,
    receive::{Arrival, now},
    spread::{Spread, Times},
};

pub(crate) struct Deliveries {
    /// Of the times at which samples were put together, in milliseconds since 1970: those that
    /// count.
    window_ms: Range<u64>,
    /// By that time.
    samples: BTreeMap<u64, Seen>,
    kernel: Times,
    read: Times,
    lagged: u64,
    last: Option<Duration>,
    longest_gap: Duration,
}

struct Seen {
    seq: u64,
    clients: u64,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    samples: usize,
    /// Times clients: what should have come.
    expected: u64,
    received: u64,
    lost: u64,
    /// Samples and notices of which the server itself said that somebody was too slow for them.
    lagged: u64,
    /// From when a sample was put together until the kernel had it; absent over a unix socket.
    kernel_ms: Spread,
    /// The same, until it was read here.
    read_ms: Spread,
    /// Between two samples, as the first client of each gets it.
    longest_gap_ms: u64,
}

impl Deliveries {
    pub(crate) fn new(window: Duration) -> Self {
        let begin = now().as_millis() as u64;
        Self {
            window_ms: begin..begin + window.as_millis() as u64,
            samples: BTreeMap::new(),
            kernel: Times::default(),
            read: Times::default(),
            lagged: 0,
            last: None,
            longest_gap: Duration::ZERO,
        }
    }

    /// Takes in one frame; whether it is the first of a sample.
    pub(crate) fn take(&mut self, kind: Kind, arrival: Arrival) -> bool {
        let (seq, at_ms) = match kind {
            Kind::Sample { seq, at_ms } if self.window_ms.contains(&at_ms) => (seq, at_ms),
            Kind::Lagged { missed } => {
                self.lagged += missed;
                return false;
            }
            Kind::Sample { .. } | Kind::Hello | Kind::Other => return false,
        };
        let seen = self
            .samples
            .entry(at_ms)
            .or_insert(Seen { seq, clients: 0 });
        seen.clients += 1;
        let is_first = seen.clients == 1;
        let made = Duration::from_millis(at_ms);
        self.read.push(arrival.read.saturating_sub(made));
        if let Some(kernel) = arrival.kernel {
            self.kernel.push(kernel.saturating_sub(made));
        }
        if is_first && let Some(last) = self.last.replace(arrival.read) {
            self.longest_gap = self.longest_gap.max(arrival.read.saturating_sub(last));
        }
        is_first
    }

    /// For so many clients.
    pub(crate) fn report(self, clients: usize) -> Report {
        let seqs: Vec<_> = self.samples.values().map(|seen| seen.seq).collect();
        // Where a new collector counts anew, nothing tells what was missed between the two.
        let nobody_saw: u64 = seqs
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0] + 1))
            .sum();
        let received: u64 = self.samples.values().map(|seen| seen.clients).sum();
        let expected = (self.samples.len() as u64 + nobody_saw) * clients as u64;
        Report {
            samples: self.samples.len(),
            expected,
            received,
            lost: expected.saturating_sub(received),
            lagged: self.lagged,
            kernel_ms: self.kernel.spread(),
            read_ms: self.read.spread(),
            longest_gap_ms: self.longest_gap.as_millis() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_did_not_come_are_lost() {
        let mut deliveries = Deliveries::new(Duration::from_mins(1));
        let begin = deliveries.window_ms.start;
        // Two clients: both get the first, one gets the next, and nobody the one after that.
        for (seq, second) in [(0, 0), (0, 0), (1, 1), (3, 3), (3, 3)] {
            let at_ms = begin + second * 1000;
            let read = Duration::from_millis(at_ms + 5);
            deliveries.take(Kind::Sample { seq, at_ms }, Arrival { kernel: None, read });
        }
        // Put together before the measurement began.
        let early = Kind::Sample {
            seq: 9,
            at_ms: begin - 1,
        };
        deliveries.take(
            early,
            Arrival {
                kernel: None,
                read: Duration::from_millis(begin),
            },
        );
        let report = deliveries.report(2);
        assert_eq!(
            (
                report.samples,
                report.expected,
                report.received,
                report.lost
            ),
            (3, 8, 5, 3)
        );
        assert_eq!(report.longest_gap_ms, 2000);
        assert_eq!(report.kernel_ms, Spread::default());
    }
}
