//! Statistics of the samples that all clients have received.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use serde::Serialize;

use crate::{
    frame::FrameKind,
    receive::{Arrival, time_since_epoch},
    spread::{Spread, Times},
};

pub(crate) struct Deliveries {
    /// Samples count if they were completed in this range, in milliseconds since 1970.
    window_ms: Range<u64>,
    /// The samples by the time of their completion.
    samples: BTreeMap<u64, SampleCount>,
    kernel: Times,
    read: Times,
    lagged: u64,
    last: Option<Duration>,
    longest_gap: Duration,
}

struct SampleCount {
    seq: u64,
    clients: u64,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    samples: usize,
    /// The number of samples times the number of clients.
    expected: u64,
    received: u64,
    lost: u64,
    /// The number of samples and notices that the server skipped because a client was too slow, as
    /// reported by the server.
    lagged: u64,
    /// The time from the completion of a sample until the kernel received it; absent over a unix
    /// socket.
    kernel_ms: Spread,
    /// The time from the completion of a sample until this process read it.
    read_ms: Spread,
    /// The longest time between two successive samples. The time of a sample is the time at which
    /// the first client received it.
    longest_gap_ms: u64,
}

impl Deliveries {
    pub(crate) fn new(window: Duration) -> Self {
        let begin = time_since_epoch().as_millis() as u64;
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

    /// Counts one frame. Returns whether the frame is the first one of its sample.
    pub(crate) fn count_frame(&mut self, kind: FrameKind, arrival: Arrival) -> bool {
        let (seq, at_ms) = match kind {
            FrameKind::Sample { seq, at_ms } if self.window_ms.contains(&at_ms) => (seq, at_ms),
            FrameKind::Lagged { missed } => {
                self.lagged += missed;
                return false;
            }
            FrameKind::Sample { .. } | FrameKind::Hello | FrameKind::Other => return false,
        };
        let seen = self
            .samples
            .entry(at_ms)
            .or_insert(SampleCount { seq, clients: 0 });
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

    /// Returns the statistics for this number of clients.
    pub(crate) fn report(self, clients: usize) -> Report {
        let seqs: Vec<_> = self.samples.values().map(|seen| seen.seq).collect();
        // A new collector restarts the sequence numbers. So samples that are lost between the old
        // and the new collector cannot be counted.
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
            kernel_ms: self.kernel.into_spread(),
            read_ms: self.read.into_spread(),
            longest_gap_ms: self.longest_gap.as_millis() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_not_received_by_clients_count_as_lost() {
        let mut deliveries = Deliveries::new(Duration::from_mins(1));
        let begin = deliveries.window_ms.start;
        // There are two clients. Both receive the first sample, one client receives the second,
        // none receives the third, and both receive the fourth.
        for (seq, second) in [(0, 0), (0, 0), (1, 1), (3, 3), (3, 3)] {
            let at_ms = begin + second * 1000;
            let read = Duration::from_millis(at_ms + 5);
            deliveries.count_frame(
                FrameKind::Sample { seq, at_ms },
                Arrival { kernel: None, read },
            );
        }
        // This sample was completed before the measurement started, so it must not be counted.
        let early = FrameKind::Sample {
            seq: 9,
            at_ms: begin - 1,
        };
        deliveries.count_frame(
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
