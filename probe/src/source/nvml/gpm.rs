//! GPU Performance Monitoring: the hardware's own counters, on Hopper and later, without a profiler.
//!
//! Two threads must not be in it at once, not even for two GPUs: driver 580 then crashes in `nvmlGpmMetricsGet`. So
//! threads take turns, and one that hangs costs the others their activity and nothing else.
//!
//! A metric is the difference of two samples, which must be at least 100 ms apart. A sample costs 28 us, the metrics of
//! two of them about 2 ms.

use std::time::{Duration, Instant};

use nvml_wrapper::{
    Device, GpmSample, Nvml, enums::gpm::GpmMetricId, error::NvmlError, gpm::gpm_metrics_get,
    struct_wrappers::gpm::GpmMetricResult,
};

use super::{ask::Asker, error::absence, turn::Turn};
use crate::model::{Absence, Activity, Reading, now_ms};

/// All threads of the process take this turn.
pub(super) static TURN: Turn = Turn::new();

/// 64 GPUs take 130 ms one after another.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// NVML refuses two samples that are closer together.
pub(super) const SHORTEST_WINDOW: Duration = Duration::from_millis(100);

/// The driver gives link rates in MiB per second, whatever its documentation says: 51,407 where 55.5 GB/s were copied.
const LINK_UNIT_BYTES: f64 = (1 << 20) as f64;

/// Link rates and activity, of one window of time.
#[derive(Debug, Clone)]
pub(super) struct GpmReadings {
    pub(super) activity: Reading<Activity>,
    pub(super) pcie_tx: Reading<f64>,
    pub(super) pcie_rx: Reading<f64>,
    pub(super) nvlink_tx: Reading<f64>,
    pub(super) nvlink_rx: Reading<f64>,
}

/// Remembers the sample before, and what came of the last two.
pub(super) struct GpmReader {
    supported: bool,
    before: Option<(Instant, GpmSample<'static>)>,
    latest: Option<(u64, GpmReadings)>,
}

/// In the order in which they are asked for.
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
    pub(super) fn new() -> Self {
        Self { supported: false, before: None, latest: None }
    }

    /// What happened since the call before. The first call has nothing to compare with; one that follows too closely
    /// gives what the last one gave, with its time.
    ///
    /// `instance` is a GPU instance of MIG; `None` is the whole GPU.
    pub(super) fn read(
        &mut self,
        nvml: &'static Nvml,
        device: &Device<'static>,
        instance: Option<u32>,
        asker: &mut Asker,
    ) -> GpmReadings {
        if let (Some((at, _)), Some((read_ms, latest))) = (&self.before, &self.latest)
            && at.elapsed() < SHORTEST_WINDOW
        {
            return latest.clone().dated(*read_ms);
        }
        let Some(_turn) = TURN.take(PATIENCE) else {
            return GpmReadings::absent(&Absence::NoAnswer);
        };
        if !self.supported {
            if let Reading::Absent(reason) = asker.ask("GPM", || supported(nvml, device)) {
                return GpmReadings::absent(&reason);
            }
            self.supported = true;
        }
        let sample = match instance {
            None => asker.ask("GPM sample", || device.gpm_sample()),
            Some(instance) => asker.ask("GPM sample of a MIG device", || device.gpm_mig_sample(instance)),
        };
        let now = match sample {
            Reading::Now(sample) | Reading::Earlier { value: sample, .. } => sample,
            Reading::Absent(reason) => return GpmReadings::absent(&reason),
        };
        let taken = Instant::now();
        let readings = match &self.before {
            None => GpmReadings::absent(&Absence::WarmingUp),
            Some((_, before)) => match asker.ask("GPM metrics", || gpm_metrics_get(nvml, before, &now, &METRICS)) {
                Reading::Now(results) | Reading::Earlier { value: results, .. } => GpmReadings::new(results),
                Reading::Absent(reason) => GpmReadings::absent(&reason),
            },
        };
        self.before = Some((taken, now));
        self.latest = Some((now_ms(), readings.clone()));
        readings
    }
}

impl Drop for GpmReader {
    /// Freeing a sample is a call, too.
    fn drop(&mut self) {
        let _turn = TURN.take(PATIENCE);
        self.before = None;
    }
}

/// A library without the function that frees samples would make the wrapper panic when it frees one.
fn supported(nvml: &Nvml, device: &Device<'_>) -> Result<(), NvmlError> {
    let complete = nvml.lib().nvmlGpmSampleFree.is_ok();
    if complete && device.gpm_support()? { Ok(()) } else { Err(NvmlError::NotSupported) }
}

impl GpmReadings {
    fn new(results: Vec<Result<GpmMetricResult, NvmlError>>) -> Self {
        let mut results = results.into_iter().map(|result| match result {
            Ok(result) if result.value.is_finite() => Reading::Now(result.value),
            Ok(_) => Reading::Absent(Absence::Unknown),
            Err(error) => Reading::Absent(absence(&error)),
        });
        let mut next = || results.next().unwrap_or(Reading::Absent(Absence::Unknown));
        let percent = |reading: Reading<f64>| reading.map(|percent| (percent * 100.0).round() / 100.0);
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
            pcie_tx: bytes(next()),
            pcie_rx: bytes(next()),
            nvlink_tx: bytes(next()),
            nvlink_rx: bytes(next()),
        }
    }

    fn absent(reason: &Absence) -> Self {
        let absent = || Reading::Absent(reason.clone());
        Self {
            activity: Reading::Absent(reason.clone()),
            pcie_tx: absent(),
            pcie_rx: absent(),
            nvlink_tx: absent(),
            nvlink_rx: absent(),
        }
    }

    fn dated(self, at_ms: u64) -> Self {
        Self {
            activity: self.activity.dated(at_ms),
            pcie_tx: self.pcie_tx.dated(at_ms),
            pcie_rx: self.pcie_rx.dated(at_ms),
            nvlink_tx: self.nvlink_tx.dated(at_ms),
            nvlink_rx: self.nvlink_rx.dated(at_ms),
        }
    }
}
