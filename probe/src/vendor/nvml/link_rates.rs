//! `NVLink` and PCIe rates of GPUs without GPM. `NVLink` rates are calculated from the growth of
//! two counters that cover all links.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    backend::Backend,
    error::to_absence,
    querier::Querier,
    query::{Query, Subject},
    schedule::{self, IntervalTimer},
    to_model::{DATA_UNIT_BYTES, TimedAnswers},
};
use crate::{
    model::{Absence, Absent, Reading, absent, now_ms},
    vendor::lock,
};

/// The minimum time between two readings of the `NVLink` counters. Reading both costs 2.7 ms.
const NVLINK_READ_INTERVAL: Duration = Duration::from_secs(1);

/// The traffic over a link in each direction, in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinkRates {
    pub(super) tx: Reading<f64>,
    pub(super) rx: Reading<f64>,
}

absent! { LinkRates { tx, rx } }

impl LinkRates {
    pub(super) fn with_time(self, at_ms: u64) -> Self {
        Self {
            tx: self.tx.with_time(at_ms),
            rx: self.rx.with_time(at_ms),
        }
    }
}

pub(super) struct LinkRateReader {
    every: IntervalTimer,
    before: Option<(Instant, [f64; 2])>,
    latest: LinkRates,
}

impl LinkRateReader {
    pub(super) fn new() -> Self {
        Self {
            every: IntervalTimer::new(NVLINK_READ_INTERVAL),
            before: None,
            latest: LinkRates::new_absent(&Absence::WarmingUp),
        }
    }

    /// Returns the rates between the last two readings of the counters, with the time of the later
    /// one.
    pub(super) fn read(&mut self, querier: &mut Querier) -> LinkRates {
        if self.every.is_due() {
            querier.run_queries(None, &schedule::TOTAL_TRAFFIC_QUERIES);
            let [tx, rx] = schedule::TOTAL_TRAFFIC_QUERIES
                .map(|query| TimedAnswers::new(&querier.read_cache(), 0).read_float(query));
            self.latest = match (tx, rx) {
                (Reading::Now(tx), Reading::Now(rx)) => {
                    self.compute_rates(Instant::now(), [tx, rx])
                }
                (Reading::Absent(reason), _) | (_, Reading::Absent(reason)) => {
                    LinkRates::new_absent(&reason)
                }
                _ => LinkRates::new_absent(&Absence::Unknown),
            };
        }
        self.latest.clone()
    }

    fn compute_rates(&mut self, at: Instant, counters: [f64; 2]) -> LinkRates {
        let Some((before_at, before)) = self.before.replace((at, counters)) else {
            return LinkRates::new_absent(&Absence::WarmingUp);
        };
        let (seconds, at_ms) = (at.duration_since(before_at).as_secs_f64(), now_ms());
        let [tx, rx] = [0, 1].map(|direction| match counters[direction] - before[direction] {
            // The counters have restarted, for example after a reset.
            backwards if backwards < 0.0 => Reading::Absent(Absence::WarmingUp),
            data => Reading::Earlier {
                value: (data * DATA_UNIT_BYTES / seconds).round(),
                at_ms,
            },
        });
        LinkRates { tx, rx }
    }
}

/// The `nvmlPcieUtilCounter_t` for sent data. `PCIE_RX` is for received data.
const PCIE_TX: u32 = 0;
const PCIE_RX: u32 = 1;

/// The unit of NVML's PCIe rates, 1 KB.
pub(super) const PCIE_UNIT_BYTES: f64 = 1000.0;

/// A thread that measures PCIe rates, and its latest result.
///
/// `nvmlDeviceGetPcieThroughput` blocks while it measures, which takes 20 ms per direction, so it
/// is called on a separate thread. The counters behind `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` would not
/// block, but they have only 32 bits and wrap every 77 ms at full speed.
pub(super) struct PcieMeter {
    ask: SyncSender<()>,
    latest: Arc<Mutex<LinkRates>>,
}

impl PcieMeter {
    /// Starts the measuring thread, which ends when the returned value is dropped. Returns `None`
    /// if the thread cannot be started.
    pub(super) fn start(answers: Arc<dyn Backend>, index: u32) -> Option<Self> {
        let (ask, asked) = mpsc::sync_channel::<()>(1);
        let latest = Arc::new(Mutex::new(LinkRates::new_absent(&Absence::WarmingUp)));
        let shared = Arc::clone(&latest);
        let body = move || {
            while asked.recv().is_ok() {
                let rates = measure_pcie_rates(&*answers, index);
                *lock(&shared) = rates;
            }
        };
        thread::Builder::new()
            .name(format!("gpu-{index}-pcie"))
            .spawn(body)
            .ok()?;
        Some(Self { ask, latest })
    }

    /// Returns the latest rates with their time. Starts the next measurement unless one is still in
    /// progress.
    pub(super) fn latest(&self) -> LinkRates {
        let latest = lock(&self.latest).clone();
        let _ = self.ask.try_send(());
        latest
    }
}

/// Measures the PCIe rates, which takes 20 ms per direction.
pub(super) fn measure_pcie_rates(answers: &dyn Backend, index: u32) -> LinkRates {
    let rate = |counter| match answers
        .run_query(Subject::from_gpu(index), Query::PcieThroughput(counter))
    {
        Ok(kilobytes) => {
            let value = kilobytes.number_at(0).unwrap_or(0) as f64 * PCIE_UNIT_BYTES;
            Reading::Earlier {
                value,
                at_ms: now_ms(),
            }
        }
        Err(code) => Reading::Absent(to_absence(code)),
    };
    LinkRates {
        tx: rate(PCIE_TX),
        rx: rate(PCIE_RX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_counter_growth_over_time() {
        let mut reader = LinkRateReader::new();
        let begun = Instant::now();
        assert_eq!(
            reader.compute_rates(begun, [1000.0, 5.0]),
            LinkRates::new_absent(&Absence::WarmingUp)
        );
        let later = reader.compute_rates(begun + Duration::from_secs(2), [3000.0, 4.0]);
        assert!(
            matches!(later.tx, Reading::Earlier { value, .. } if (value - 1_024_000.0).abs() < 1.0),
            "{later:?}"
        );
        assert_eq!(
            later.rx,
            Reading::Absent(Absence::WarmingUp),
            "it began anew"
        );
    }
}
