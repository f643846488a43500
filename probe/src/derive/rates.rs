//! Rates computed from two consecutive samples.
//!
//! Recordings contain only counters. Their rates are computed afterwards, so that the live view and
//! playback use the same code.

use crate::model::{Absence, HostSample, Reading};

/// Computes the rates of each sample from the previous one.
#[derive(Debug, Default)]
pub struct HostRates {
    before: Option<HostSample>,
}

impl HostRates {
    /// Fills in the rates of `host`, using the previous sample.
    pub fn fill_host_rates(&mut self, host: &mut HostSample) {
        // The sampler may pass the same reading again, because the host is read less often than the
        // GPUs or has responded slowly.
        if let Some(known) = self
            .before
            .as_ref()
            .filter(|before| before.at_ms == host.at_ms)
        {
            host.clone_from(known);
            return;
        }
        let before = self
            .before
            .as_ref()
            .filter(|before| before.at_ms <= host.at_ms);
        let rate = |total: fn(&HostSample) -> &Reading<u64>,
                    known: fn(&HostSample) -> &Reading<f64>| {
            let now = total(host);
            if let Some(reason) = now.absence() {
                return Reading::Absent(reason.clone());
            }
            let Some(before) = before else {
                return Reading::Absent(Absence::WarmingUp);
            };
            let (then_ms, now_ms) = (
                total(before).read_at_ms(before.at_ms),
                now.read_at_ms(host.at_ms),
            );
            // A counter that has not been read again keeps its rate.
            if then_ms == now_ms {
                return known(before).clone().with_time(now_ms);
            }
            compute_rate(
                total(before).value(),
                now.value(),
                now_ms.saturating_sub(then_ms),
            )
        };
        let read = rate(
            |host| &host.disk.read_bytes_total,
            |host| &host.disk.read_bytes_per_second,
        );
        let written = rate(
            |host| &host.disk.written_bytes_total,
            |host| &host.disk.written_bytes_per_second,
        );
        let received = rate(
            |host| &host.network.received_bytes_total,
            |host| &host.network.received_bytes_per_second,
        );
        let sent = rate(
            |host| &host.network.sent_bytes_total,
            |host| &host.network.sent_bytes_per_second,
        );
        host.disk.read_bytes_per_second = read;
        host.disk.written_bytes_per_second = written;
        host.network.received_bytes_per_second = received;
        host.network.sent_bytes_per_second = sent;
        self.before = Some(host.clone());
    }
}

/// Returns the growth per second. If the counter has decreased, it was reset because a disk or card
/// was replaced, and the rate is available only after another sample.
fn compute_rate(before: Option<&u64>, after: Option<&u64>, elapsed_ms: u64) -> Reading<f64> {
    let bytes = after
        .zip(before)
        .and_then(|(after, before)| after.checked_sub(*before));
    match (bytes, elapsed_ms) {
        (Some(bytes), 1..) => Reading::Now((bytes as f64 * 1000.0 / elapsed_ms as f64).round()),
        _ => Reading::Absent(Absence::WarmingUp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostReader;

    #[test]
    fn rarely_read_counter_keeps_its_rate() {
        let mut rates = HostRates::default();
        let mut rate_of = |at_ms, received_bytes_total| {
            let mut host = HostReader::new().read();
            host.at_ms = at_ms;
            host.network.received_bytes_total = received_bytes_total;
            rates.fill_host_rates(&mut host);
            host.network.received_bytes_per_second
        };
        assert_eq!(
            rate_of(1_000, Reading::Now(0)),
            Reading::Absent(Absence::WarmingUp)
        );
        assert_eq!(rate_of(3_000, Reading::Now(4_000)), Reading::Now(2_000.0));
        let same = Reading::Earlier {
            value: 4_000,
            at_ms: 3_000,
        };
        assert_eq!(
            rate_of(4_000, same.clone()),
            Reading::Earlier {
                value: 2_000.0,
                at_ms: 3_000
            }
        );
        assert_eq!(
            rate_of(5_000, same),
            Reading::Earlier {
                value: 2_000.0,
                at_ms: 3_000
            }
        );
        assert_eq!(rate_of(7_000, Reading::Now(8_000)), Reading::Now(1_000.0));
    }

    #[test]
    fn rate_is_bytes_per_elapsed_time() {
        assert_eq!(
            compute_rate(Some(&1000), Some(&3000), 500),
            Reading::Now(4000.0)
        );
        assert_eq!(
            compute_rate(Some(&1000), Some(&1000), 500),
            Reading::Now(0.0)
        );
    }

    #[test]
    fn decreasing_counter_does_not_give_rate() {
        assert_eq!(
            compute_rate(Some(&1000), Some(&3000), 0),
            Reading::Absent(Absence::WarmingUp)
        );
        assert_eq!(
            compute_rate(Some(&3000), Some(&1000), 500),
            Reading::Absent(Absence::WarmingUp)
        );
        assert_eq!(
            compute_rate(None, Some(&1000), 500),
            Reading::Absent(Absence::WarmingUp)
        );
    }
}
