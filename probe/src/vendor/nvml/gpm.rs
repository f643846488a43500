//! GPU Performance Monitoring (GPM): hardware performance counters of Hopper and later GPUs, which
//! can be read without a profiler.
//!
//! Two threads must not call GPM at the same time, even for different GPUs, because driver 580 then
//! crashes in `nvmlGpmMetricsGet`. Threads therefore take turns. If one thread hangs in GPM, the
//! others continue without GPM metrics.
//!
//! A metric is calculated from two samples, which must be at least 100 ms apart. Taking a sample
//! costs 28 µs, and calculating the metrics of two samples costs about 2 ms.

use nvml_wrapper::enums::gpm::GpmMetricId;

use super::{
    backend::GpmResult as Counted, error::to_absence, link_rates::LinkRates, querier::Querier,
    query::Code,
};
use crate::model::{Absence, Absent, Activity, GpuSample, Reading, absent, now_ms};

/// The unit of link rates, which is MiB per second, contrary to the documentation: the driver
/// reported 51,407 for a copy at 55.5 GB/s.
const LINK_UNIT_BYTES: f64 = (1 << 20) as f64;

/// The GPU's activity and traffic during one period.
#[derive(Debug, Clone)]
pub(super) struct Rates {
    pub(super) activity: Reading<Activity>,
    pub(super) nvlink: LinkRates,
    pub(super) pcie: LinkRates,
}

absent! { Rates { activity, nvlink, pcie } }

#[derive(Default)]
pub(super) struct GpmReader {
    latest: Option<(u64, Rates)>,
}

/// The metrics to query, in the order in which their values are returned.
const METRICS: [GpmMetricId; 16] = [
    GpmMetricId::GraphicsUtil,
    GpmMetricId::SmUtil,
    GpmMetricId::SmOccupancy,
    GpmMetricId::AnyTensorUtil,
    GpmMetricId::HmmaTensorUtil,
    GpmMetricId::ImmaTensorUtil,
    GpmMetricId::DfmaTensorUtil,
    GpmMetricId::Fp64Util,
    GpmMetricId::Fp32Util,
    GpmMetricId::Fp16Util,
    GpmMetricId::IntegerUtil,
    GpmMetricId::DramBwUtil,
    GpmMetricId::PcieTxPerSec,
    GpmMetricId::PcieRxPerSec,
    GpmMetricId::NvlinkTotalTxPerSec,
    GpmMetricId::NvlinkTotalRxPerSec,
];

impl GpmReader {
    /// Returns the rates since the last call. The first call returns no rates. If the last call was
    /// too recent, returns the previous rates with their time.
    ///
    /// `mig` is the index of a MIG device, or `None` for the whole GPU.
    pub(super) fn read(&mut self, querier: &mut Querier, mig: Option<u32>) -> Rates {
        let metrics = METRICS.map(|metric| metric.as_c());
        let readings = match querier.read_gpm(mig, &metrics) {
            Ok(Counted::Counted(values)) => Rates::new(values),
            Ok(Counted::NotYet) => {
                return match &self.latest {
                    Some((at_ms, latest)) => latest.clone().with_time(*at_ms),
                    None => Rates::new_absent(&Absence::WarmingUp),
                };
            }
            Ok(Counted::Busy) => return Rates::new_absent(&Absence::NoAnswer),
            Err(code) => return Rates::new_absent(&to_absence(code)),
        };
        self.latest = Some((now_ms(), readings.clone()));
        readings
    }
}

impl Rates {
    fn new(values: Vec<Result<f64, Code>>) -> Self {
        let mut results = values.into_iter().map(|value| match value {
            Ok(value) if value.is_finite() => Reading::Now(value),
            Ok(_) => Reading::Absent(Absence::Unknown),
            Err(code) => Reading::Absent(to_absence(code)),
        });
        let mut next = || results.next().unwrap_or(Reading::Absent(Absence::Unknown));
        let percent =
            |reading: Reading<f64>| reading.map(|percent| (percent * 100.0).round() / 100.0);
        let bytes = |reading: Reading<f64>| reading.map(|mib| (mib * LINK_UNIT_BYTES).round());
        Self {
            activity: Reading::Now(Activity {
                graphics_percent: percent(next()),
                sm_percent: percent(next()),
                occupancy_percent: percent(next()),
                tensor_percent: percent(next()),
                tensor_half_percent: percent(next()),
                tensor_integer_percent: percent(next()),
                tensor_double_percent: percent(next()),
                fp64_percent: percent(next()),
                fp32_percent: percent(next()),
                fp16_percent: percent(next()),
                integer_percent: percent(next()),
                dram_bandwidth_percent: percent(next()),
            }),
            pcie: LinkRates {
                tx: bytes(next()),
                rx: bytes(next()),
            },
            nvlink: LinkRates {
                tx: bytes(next()),
                rx: bytes(next()),
            },
        }
    }

    pub(super) fn with_time(self, at_ms: u64) -> Self {
        Self {
            activity: self.activity.with_time(at_ms),
            nvlink: self.nvlink.with_time(at_ms),
            pcie: self.pcie.with_time(at_ms),
        }
    }

    pub(super) fn copy_to_sample(self, sample: &mut GpuSample) {
        sample.activity = self.activity;
        sample.nvlink.tx_bytes_per_second = self.nvlink.tx;
        sample.nvlink.rx_bytes_per_second = self.nvlink.rx;
        sample.pcie.tx_bytes_per_second = self.pcie.tx;
        sample.pcie.rx_bytes_per_second = self.pcie.rx;
    }
}
