//! Rates from two neighbouring samples.
//!
//! Counters are what is recorded; rates are made from them afterwards, so that a live view and a replay of a recording
//! go through the same code.

use crate::model::{Absence, HostSample, Reading};

/// Remembers one sample and makes rates of the next.
#[derive(Debug, Default)]
pub struct HostRates {
    before: Option<HostSample>,
}

impl HostRates {
    /// Fills in the rates of `host` from the sample before it.
    pub fn fill(&mut self, host: &mut HostSample) {
        // The same reading, handed in again: the host is read less often than the GPUs, or was slow to answer.
        if let Some(known) = self.before.as_ref().filter(|before| before.at_ms == host.at_ms) {
            host.clone_from(known);
            return;
        }
        let before = self.before.as_ref().filter(|before| before.at_ms <= host.at_ms);
        let rate = |total: fn(&HostSample) -> &Reading<u64>| match (before, total(host)) {
            (_, Reading::Absent(reason)) => Reading::Absent(reason.clone()),
            (None, _) => Reading::Absent(Absence::WarmingUp),
            (Some(before), now) => per_second(total(before).value(), now.value(), host.at_ms - before.at_ms),
        };
        let read = rate(|host| &host.disk.read_bytes_total);
        let written = rate(|host| &host.disk.written_bytes_total);
        let received = rate(|host| &host.network.received_bytes_total);
        let sent = rate(|host| &host.network.sent_bytes_total);
        host.disk.read_bytes_per_second = read;
        host.disk.written_bytes_per_second = written;
        host.network.received_bytes_per_second = received;
        host.network.sent_bytes_per_second = sent;
        self.before = Some(host.clone());
    }
}

/// A counter that went backwards began anew (a disk or card was replaced), so that its rate needs another sample.
fn per_second(before: Option<&u64>, after: Option<&u64>, elapsed_ms: u64) -> Reading<f64> {
    let bytes = after.zip(before).and_then(|(after, before)| after.checked_sub(*before));
    match (bytes, elapsed_ms) {
        (Some(bytes), 1..) => Reading::Now((bytes as f64 * 1000.0 / elapsed_ms as f64).round()),
        _ => Reading::Absent(Absence::WarmingUp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_the_time_between_two_readings() {
        assert_eq!(per_second(Some(&1000), Some(&3000), 500), Reading::Now(4000.0));
        assert_eq!(per_second(Some(&1000), Some(&1000), 500), Reading::Now(0.0));
    }

    #[test]
    fn no_time_or_a_counter_that_runs_backwards_gives_no_rate() {
        assert_eq!(per_second(Some(&1000), Some(&3000), 0), Reading::Absent(Absence::WarmingUp));
        assert_eq!(per_second(Some(&3000), Some(&1000), 500), Reading::Absent(Absence::WarmingUp));
        assert_eq!(per_second(None, Some(&1000), 500), Reading::Absent(Absence::WarmingUp));
    }
}
