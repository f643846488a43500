//! The catalogue of the numbers that can be drawn over time.
//!
//! A reading that should have a history (and a chart) needs one line here.

use super::{Activity, GpuSample, HostSample, Reading};

/// One number of what `S` is a sample of.
#[derive(Debug, Clone, Copy)]
pub struct Metric<S = GpuSample> {
    /// Its name in history frames: the path in the sample, joined by dots; it ends in the unit.
    pub id: &'static str,
    /// Takes it out of a sample; `None` where it is absent.
    pub read: fn(&S) -> Option<f64>,
}

/// Every metric of a GPU that history keeps. Those of [`OVERVIEW`] stand first.
pub const METRICS: &[Metric] = &[
    Metric { id: "utilization.gpu_percent", read: |gpu| value(&gpu.utilization.gpu_percent) },
    Metric { id: "activity.sm_percent", read: |gpu| active(gpu, |activity| &activity.sm_percent) },
    Metric { id: "activity.tensor_percent", read: |gpu| active(gpu, |activity| &activity.tensor_percent) },
    Metric { id: "memory.used_bytes", read: |gpu| count(&gpu.memory.used_bytes) },
    Metric { id: "power.draw_watts", read: |gpu| value(&gpu.power.draw_watts) },
    Metric { id: "temperature.gpu_celsius", read: |gpu| value(&gpu.temperature.gpu_celsius) },
    Metric { id: "clocks.sm_mhz", read: |gpu| whole(&gpu.clocks.sm_mhz) },
    Metric { id: "activity.occupancy_percent", read: |gpu| active(gpu, |activity| &activity.occupancy_percent) },
    Metric { id: "activity.fp64_percent", read: |gpu| active(gpu, |activity| &activity.fp64_percent) },
    Metric { id: "activity.fp32_percent", read: |gpu| active(gpu, |activity| &activity.fp32_percent) },
    Metric { id: "activity.fp16_percent", read: |gpu| active(gpu, |activity| &activity.fp16_percent) },
    Metric { id: "activity.integer_percent", read: |gpu| active(gpu, |activity| &activity.integer_percent) },
    Metric {
        id: "activity.dram_bandwidth_percent",
        read: |gpu| active(gpu, |activity| &activity.dram_bandwidth_percent),
    },
    Metric { id: "utilization.memory_percent", read: |gpu| value(&gpu.utilization.memory_percent) },
    Metric { id: "utilization.encoder_percent", read: |gpu| value(&gpu.utilization.encoder_percent) },
    Metric { id: "utilization.decoder_percent", read: |gpu| value(&gpu.utilization.decoder_percent) },
    Metric { id: "utilization.jpeg_percent", read: |gpu| value(&gpu.utilization.jpeg_percent) },
    Metric { id: "utilization.ofa_percent", read: |gpu| value(&gpu.utilization.ofa_percent) },
    Metric { id: "power.instant_watts", read: |gpu| value(&gpu.power.instant_watts) },
    Metric { id: "temperature.memory_celsius", read: |gpu| value(&gpu.temperature.memory_celsius) },
    Metric { id: "clocks.memory_mhz", read: |gpu| whole(&gpu.clocks.memory_mhz) },
    Metric { id: "clocks.video_mhz", read: |gpu| whole(&gpu.clocks.video_mhz) },
    Metric { id: "pcie.tx_bytes_per_second", read: |gpu| value(&gpu.pcie.tx_bytes_per_second) },
    Metric { id: "pcie.rx_bytes_per_second", read: |gpu| value(&gpu.pcie.rx_bytes_per_second) },
    Metric { id: "nvlink.tx_bytes_per_second", read: |gpu| value(&gpu.nvlink.tx_bytes_per_second) },
    Metric { id: "nvlink.rx_bytes_per_second", read: |gpu| value(&gpu.nvlink.rx_bytes_per_second) },
    Metric { id: "fan_percent", read: |gpu| value(&gpu.fan_percent) },
];

/// What a client gets without asking for more: enough for an overview of all GPUs.
pub const OVERVIEW: usize = 7;

/// Every metric of the machine that history keeps.
pub const HOST_METRICS: &[Metric<HostSample>] = &[
    Metric { id: "host.cpu.busy_percent", read: |host| value(&host.cpu.busy_percent) },
    Metric { id: "host.memory.used_bytes", read: |host| count(&host.memory.used_bytes) },
    Metric { id: "host.swap.used_bytes", read: |host| count(&host.swap.used_bytes) },
    Metric { id: "host.disk.read_bytes_per_second", read: |host| value(&host.disk.read_bytes_per_second) },
    Metric { id: "host.disk.written_bytes_per_second", read: |host| value(&host.disk.written_bytes_per_second) },
    Metric {
        id: "host.network.received_bytes_per_second",
        read: |host| value(&host.network.received_bytes_per_second),
    },
    Metric { id: "host.network.sent_bytes_per_second", read: |host| value(&host.network.sent_bytes_per_second) },
];

fn active(gpu: &GpuSample, part: fn(&Activity) -> &Reading<f64>) -> Option<f64> {
    value(part(gpu.activity.value()?))
}

fn value(reading: &Reading<f64>) -> Option<f64> {
    reading.value().copied()
}

fn whole(reading: &Reading<u32>) -> Option<f64> {
    reading.value().map(|value| f64::from(*value))
}

fn count(reading: &Reading<u64>) -> Option<f64> {
    reading.value().map(|value| *value as f64)
}
