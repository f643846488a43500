//! The readings that can be charted.

use gpumon_probe::model::{Absence, Activity, Gpu, GpuSample, HostSample, Reading};

use super::{glyphs::Glyphs, text::rate, theme::Meaning};
use crate::words::size;

/// What a number is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Percent,
    Bytes,
    Watts,
    Celsius,
    Megahertz,
    BytesPerSecond,
}

/// One number of a GPU over time.
pub(super) struct Metric {
    /// As settings name it.
    pub(super) id: &'static str,
    /// Its name in a server's history, where that comes unasked.
    pub(super) path: Option<&'static str>,
    /// As it stands above its chart.
    pub(super) label: &'static str,
    pub(super) meaning: Meaning,
    pub(super) unit: Unit,
    /// Takes it out of a sample, or says why it is absent.
    pub(super) read: fn(&GpuSample) -> Result<f64, &Absence>,
    /// The upper end of its axis; `None` where none is known.
    pub(super) limit: fn(&GpuSample, Option<&Gpu>) -> Option<f64>,
}

/// One number of the machine over time.
pub(super) struct HostMetric {
    pub(super) label: &'static str,
    pub(super) meaning: Meaning,
    pub(super) unit: Unit,
    pub(super) read: fn(&HostSample) -> Option<f64>,
    pub(super) limit: fn(&HostSample) -> Option<f64>,
}

impl Unit {
    /// `64 %`, `78.2 GiB`, `692 W`.
    pub(super) fn format(self, value: f64, glyphs: Glyphs) -> String {
        match self {
            Self::Percent => format!("{value:.0} %"),
            Self::Bytes => size(value),
            Self::Watts => format!("{value:.0} W"),
            Self::Celsius => format!("{value:.0} {}", glyphs.celsius()),
            Self::Megahertz => format!("{value:.0} MHz"),
            Self::BytesPerSecond => rate(value),
        }
    }

    /// The lower end of an axis.
    pub(super) fn floor(self) -> f64 {
        if self == Self::Celsius { 20.0 } else { 0.0 }
    }

    /// The upper end where nothing else is known than the largest value to be drawn.
    pub(super) fn ceiling(self, largest: f64) -> f64 {
        match self {
            Self::Percent | Self::Celsius => 100.0_f64.max(largest),
            Self::Bytes | Self::Watts | Self::Megahertz | Self::BytesPerSecond => round_up(largest),
        }
    }
}

/// The next of 1, 2 or 5 times a power of ten, so that an axis does not change with every sample.
fn round_up(value: f64) -> f64 {
    if value <= 1.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|end| *end >= value).unwrap_or(value)
}

fn of<T>(reading: &Reading<T>, number: impl FnOnce(&T) -> f64) -> Result<f64, &Absence> {
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => Ok(number(value)),
        Reading::Absent(reason) => Err(reason),
    }
}

fn number(reading: &Reading<f64>) -> Result<f64, &Absence> {
    of(reading, |number| *number)
}

fn activity(gpu: &GpuSample, part: fn(&Activity) -> &Reading<f64>) -> Result<f64, &Absence> {
    match &gpu.activity {
        Reading::Now(parts) | Reading::Earlier { value: parts, .. } => number(part(parts)),
        Reading::Absent(reason) => Err(reason),
    }
}

const fn share(
    id: &'static str,
    path: Option<&'static str>,
    label: &'static str,
    read: fn(&GpuSample) -> Result<f64, &Absence>,
) -> Metric {
    Metric { id, path, label, meaning: Meaning::Utilization, unit: Unit::Percent, read, limit: |_, _| None }
}

const fn traffic(id: &'static str, label: &'static str, read: fn(&GpuSample) -> Result<f64, &Absence>) -> Metric {
    Metric { id, path: None, label, meaning: Meaning::Traffic, unit: Unit::BytesPerSecond, read, limit: |_, _| None }
}

/// Every number of a GPU that can be charted; the first four are those that are shown unless others are chosen.
pub(super) const METRICS: &[Metric] = &[
    share("utilization", Some("utilization.gpu_percent"), "Utilization", |gpu| number(&gpu.utilization.gpu_percent)),
    Metric {
        id: "memory",
        path: Some("memory.used_bytes"),
        label: "Memory",
        meaning: Meaning::Memory,
        unit: Unit::Bytes,
        read: |gpu| of(&gpu.memory.used_bytes, |bytes| *bytes as f64),
        limit: |gpu, _| gpu.memory.total_bytes.value().map(|bytes| *bytes as f64),
    },
    Metric {
        id: "power",
        path: Some("power.draw_watts"),
        label: "Power",
        meaning: Meaning::Power,
        unit: Unit::Watts,
        read: |gpu| number(&gpu.power.draw_watts),
        limit: |gpu, _| gpu.power.limit_watts.value().copied(),
    },
    Metric {
        id: "temperature",
        path: Some("temperature.gpu_celsius"),
        label: "Temperature",
        meaning: Meaning::Temperature,
        unit: Unit::Celsius,
        read: |gpu| number(&gpu.temperature.gpu_celsius),
        limit: |_, _| Some(100.0),
    },
    share("sm", Some("activity.sm_percent"), "SM active", |gpu| activity(gpu, |parts| &parts.sm_percent)),
    share("tensor", Some("activity.tensor_percent"), "Tensor cores", |gpu| {
        activity(gpu, |parts| &parts.tensor_percent)
    }),
    share("occupancy", None, "Occupancy", |gpu| activity(gpu, |parts| &parts.occupancy_percent)),
    share("dram", None, "Memory bandwidth", |gpu| activity(gpu, |parts| &parts.dram_bandwidth_percent)),
    share("fp64", None, "FP64 units", |gpu| activity(gpu, |parts| &parts.fp64_percent)),
    share("fp32", None, "FP32 units", |gpu| activity(gpu, |parts| &parts.fp32_percent)),
    share("fp16", None, "FP16 units", |gpu| activity(gpu, |parts| &parts.fp16_percent)),
    share("integer", None, "Integer units", |gpu| activity(gpu, |parts| &parts.integer_percent)),
    share("memory-busy", None, "Memory busy", |gpu| number(&gpu.utilization.memory_percent)),
    share("encoder", None, "Encoder", |gpu| number(&gpu.utilization.encoder_percent)),
    share("decoder", None, "Decoder", |gpu| number(&gpu.utilization.decoder_percent)),
    Metric {
        id: "sm-clock",
        path: Some("clocks.sm_mhz"),
        label: "SM clock",
        meaning: Meaning::Temperature,
        unit: Unit::Megahertz,
        read: |gpu| of(&gpu.clocks.sm_mhz, |mhz| f64::from(*mhz)),
        limit: |_, board| board?.board.max_clocks.sm_mhz.value().map(|mhz| f64::from(*mhz)),
    },
    Metric {
        id: "memory-clock",
        path: None,
        label: "Memory clock",
        meaning: Meaning::Memory,
        unit: Unit::Megahertz,
        read: |gpu| of(&gpu.clocks.memory_mhz, |mhz| f64::from(*mhz)),
        limit: |_, board| board?.board.max_clocks.memory_mhz.value().map(|mhz| f64::from(*mhz)),
    },
    Metric {
        id: "memory-temperature",
        path: None,
        label: "Memory temperature",
        meaning: Meaning::Temperature,
        unit: Unit::Celsius,
        read: |gpu| number(&gpu.temperature.memory_celsius),
        limit: |_, _| Some(100.0),
    },
    share("fan", None, "Fan", |gpu| number(&gpu.fan_percent)),
    traffic("pcie-tx", "PCIe sent", |gpu| number(&gpu.pcie.tx_bytes_per_second)),
    traffic("pcie-rx", "PCIe received", |gpu| number(&gpu.pcie.rx_bytes_per_second)),
    traffic("nvlink-tx", "NVLink sent", |gpu| number(&gpu.nvlink.tx_bytes_per_second)),
    traffic("nvlink-rx", "NVLink received", |gpu| number(&gpu.nvlink.rx_bytes_per_second)),
];

/// Every number of the machine that can be charted.
pub(super) const HOST_METRICS: &[HostMetric] = &[
    HostMetric {
        label: "CPU",
        meaning: Meaning::Utilization,
        unit: Unit::Percent,
        read: |host| host.cpu.busy_percent.value().copied(),
        limit: |_| Some(100.0),
    },
    HostMetric {
        label: "RAM",
        meaning: Meaning::Memory,
        unit: Unit::Bytes,
        read: |host| host.memory.used_bytes.value().map(|bytes| *bytes as f64),
        limit: |host| host.memory.total_bytes.value().map(|bytes| *bytes as f64),
    },
    HostMetric {
        label: "Disk read",
        meaning: Meaning::Traffic,
        unit: Unit::BytesPerSecond,
        read: |host| host.disk.read_bytes_per_second.value().copied(),
        limit: |_| None,
    },
    HostMetric {
        label: "Disk written",
        meaning: Meaning::Traffic,
        unit: Unit::BytesPerSecond,
        read: |host| host.disk.written_bytes_per_second.value().copied(),
        limit: |_| None,
    },
    HostMetric {
        label: "Network received",
        meaning: Meaning::Traffic,
        unit: Unit::BytesPerSecond,
        read: |host| host.network.received_bytes_per_second.value().copied(),
        limit: |_| None,
    },
    HostMetric {
        label: "Network sent",
        meaning: Meaning::Traffic,
        unit: Unit::BytesPerSecond,
        read: |host| host.network.sent_bytes_per_second.value().copied(),
        limit: |_| None,
    },
];

/// Where a metric stands in [`METRICS`].
pub(super) fn position(id: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own_and_history_is_taken_from_the_catalogue() {
        let names: HashSet<_> = METRICS.iter().map(|metric| metric.id).collect();
        assert_eq!(names.len(), METRICS.len());
        let kept: Vec<_> = METRICS.iter().filter_map(|metric| metric.path).collect();
        for known in &gpumon_probe::model::METRICS[..gpumon_probe::model::OVERVIEW] {
            assert!(kept.contains(&known.id), "{} has a history and no chart", known.id);
        }
        assert_eq!(kept.len(), gpumon_probe::model::OVERVIEW);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (largest, end) in [(0.0, 1.0), (1.5, 2.0), (2.1, 5.0), (7e9, 1e10), (1e10, 1e10)] {
            let ceiling = Unit::BytesPerSecond.ceiling(largest);
            assert!((ceiling - end).abs() < 1e-6 * end, "{largest}: {ceiling}");
        }
    }
}
