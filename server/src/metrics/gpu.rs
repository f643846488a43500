//! What a GPU does, from its newest sample.

use gpumon_probe::model::{Activity, GpuSample, Reading};

use super::{
    scrape::{Scrape, count, number, ratio, word},
    text::{
        Kind::{self, Counter, Gauge},
        Page,
    },
};

/// One number of a GPU: its name, what it is, and how it is read.
type Series = (&'static str, Kind, &'static str, fn(&GpuSample) -> Option<f64>);

const SERIES: &[Series] = &[
    (
        "gpumon_gpu_utilization_ratio",
        Gauge,
        "Time in which at least one kernel ran; not how much of the GPU it used.",
        |gpu| ratio(&gpu.utilization.gpu_percent),
    ),
    ("gpumon_gpu_memory_utilization_ratio", Gauge, "Time in which device memory was read or written.", |gpu| {
        ratio(&gpu.utilization.memory_percent)
    }),
    ("gpumon_gpu_encoder_utilization_ratio", Gauge, "Use of the video encoder.", |gpu| {
        ratio(&gpu.utilization.encoder_percent)
    }),
    ("gpumon_gpu_decoder_utilization_ratio", Gauge, "Use of the video decoder.", |gpu| {
        ratio(&gpu.utilization.decoder_percent)
    }),
    ("gpumon_gpu_jpeg_utilization_ratio", Gauge, "Use of the JPEG decoder.", |gpu| {
        ratio(&gpu.utilization.jpeg_percent)
    }),
    ("gpumon_gpu_ofa_utilization_ratio", Gauge, "Use of the optical flow accelerator.", |gpu| {
        ratio(&gpu.utilization.ofa_percent)
    }),
    ("gpumon_gpu_sm_active_ratio", Gauge, "Time in which a multiprocessor had work, averaged over all.", |gpu| {
        active(gpu, |it| &it.sm_percent)
    }),
    ("gpumon_gpu_sm_occupancy_ratio", Gauge, "Warps that were resident, of those that could be.", |gpu| {
        active(gpu, |it| &it.occupancy_percent)
    }),
    ("gpumon_gpu_tensor_active_ratio", Gauge, "Time in which the tensor cores worked.", |gpu| {
        active(gpu, |it| &it.tensor_percent)
    }),
    (
        "gpumon_gpu_tensor_half_active_ratio",
        Gauge,
        "Time in which the tensor cores worked on half precision or narrower.",
        |gpu| active(gpu, |it| &it.tensor_half_percent),
    ),
    ("gpumon_gpu_tensor_integer_active_ratio", Gauge, "Time in which the tensor cores worked on integers.", |gpu| {
        active(gpu, |it| &it.tensor_integer_percent)
    }),
    (
        "gpumon_gpu_tensor_double_active_ratio",
        Gauge,
        "Time in which the tensor cores worked on double precision.",
        |gpu| active(gpu, |it| &it.tensor_double_percent),
    ),
    ("gpumon_gpu_fp64_active_ratio", Gauge, "Time in which the double-precision units worked.", |gpu| {
        active(gpu, |it| &it.fp64_percent)
    }),
    ("gpumon_gpu_fp32_active_ratio", Gauge, "Time in which the single-precision units worked.", |gpu| {
        active(gpu, |it| &it.fp32_percent)
    }),
    ("gpumon_gpu_fp16_active_ratio", Gauge, "Time in which the half-precision units worked.", |gpu| {
        active(gpu, |it| &it.fp16_percent)
    }),
    ("gpumon_gpu_integer_active_ratio", Gauge, "Time in which the integer units worked.", |gpu| {
        active(gpu, |it| &it.integer_percent)
    }),
    ("gpumon_gpu_dram_bandwidth_ratio", Gauge, "Bandwidth of device memory in use, of what it can do.", |gpu| {
        active(gpu, |it| &it.dram_bandwidth_percent)
    }),
    ("gpumon_gpu_memory_total_bytes", Gauge, "Device memory, all of it.", |gpu| count(&gpu.memory.total_bytes)),
    ("gpumon_gpu_memory_used_bytes", Gauge, "Device memory that processes hold.", |gpu| count(&gpu.memory.used_bytes)),
    ("gpumon_gpu_memory_reserved_bytes", Gauge, "Device memory that driver and firmware keep.", |gpu| {
        count(&gpu.memory.reserved_bytes)
    }),
    ("gpumon_gpu_memory_free_bytes", Gauge, "Device memory that nobody holds.", |gpu| count(&gpu.memory.free_bytes)),
    ("gpumon_gpu_power_watts", Gauge, "Draw of the board, averaged over a second on most boards.", |gpu| {
        number(&gpu.power.draw_watts)
    }),
    ("gpumon_gpu_power_instant_watts", Gauge, "Draw of the board at the driver's last measurement.", |gpu| {
        number(&gpu.power.instant_watts)
    }),
    ("gpumon_gpu_power_average_watts", Gauge, "Draw of the board, averaged over a second.", |gpu| {
        number(&gpu.power.average_watts)
    }),
    ("gpumon_gpu_power_limit_watts", Gauge, "The power limit in force.", |gpu| number(&gpu.power.limit_watts)),
    ("gpumon_gpu_energy_joules_total", Counter, "Energy since the driver was loaded.", |gpu| {
        number(&gpu.power.energy_joules_total)
    }),
    ("gpumon_gpu_temperature_celsius", Gauge, "Temperature of the chip.", |gpu| number(&gpu.temperature.gpu_celsius)),
    ("gpumon_gpu_memory_temperature_celsius", Gauge, "Temperature of the memory.", |gpu| {
        number(&gpu.temperature.memory_celsius)
    }),
    (
        "gpumon_gpu_temperature_margin_celsius",
        Gauge,
        "How much warmer the chip may get before its clocks are lowered.",
        |gpu| number(&gpu.temperature.margin_celsius),
    ),
    ("gpumon_gpu_graphics_clock_hertz", Gauge, "Clock of the graphics engine.", |gpu| hertz(&gpu.clocks.graphics_mhz)),
    ("gpumon_gpu_sm_clock_hertz", Gauge, "Clock of the multiprocessors.", |gpu| hertz(&gpu.clocks.sm_mhz)),
    ("gpumon_gpu_memory_clock_hertz", Gauge, "Clock of device memory.", |gpu| hertz(&gpu.clocks.memory_mhz)),
    ("gpumon_gpu_video_clock_hertz", Gauge, "Clock of video encoder and decoder.", |gpu| hertz(&gpu.clocks.video_mhz)),
    ("gpumon_gpu_performance_state", Gauge, "P-state, 0 (fastest) to 15.", |gpu| number(&gpu.performance_state)),
    ("gpumon_gpu_fan_speed_ratio", Gauge, "Speed of the fastest fan, of its full speed.", |gpu| {
        ratio(&gpu.fan_percent)
    }),
    ("gpumon_gpu_pcie_generation", Gauge, "Generation of PCIe at which the link runs now.", |gpu| {
        number(&gpu.pcie.generation)
    }),
    ("gpumon_gpu_pcie_lanes", Gauge, "Lanes of the PCIe link.", |gpu| number(&gpu.pcie.width)),
    ("gpumon_gpu_pcie_transmit_bytes_per_second", Gauge, "What crosses PCIe from the GPU.", |gpu| {
        number(&gpu.pcie.tx_bytes_per_second)
    }),
    ("gpumon_gpu_pcie_receive_bytes_per_second", Gauge, "What crosses PCIe to the GPU.", |gpu| {
        number(&gpu.pcie.rx_bytes_per_second)
    }),
    ("gpumon_gpu_nvlink_transmit_bytes_per_second", Gauge, "What crosses all NVLinks from the GPU.", |gpu| {
        number(&gpu.nvlink.tx_bytes_per_second)
    }),
    ("gpumon_gpu_nvlink_receive_bytes_per_second", Gauge, "What crosses all NVLinks to the GPU.", |gpu| {
        number(&gpu.nvlink.rx_bytes_per_second)
    }),
    ("gpumon_gpu_processes", Gauge, "Processes that hold the GPU.", |gpu| {
        gpu.processes.value().map(|all| all.len() as f64 + f64::from(gpu.processes_omitted))
    }),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for (name, kind, help, read) in SERIES {
        let mut family = page.family(name, *kind, help);
        for told in &scrape.gpus {
            family.add(told.labels(), told.readings.and_then(read));
        }
    }
    let mut throttled = page.family("gpumon_gpu_throttled", Gauge, "1 for as long as this holds the clocks down.");
    for told in &scrape.gpus {
        let reasons = told.readings.and_then(|gpu| gpu.throttle_reasons.value());
        for reason in reasons.into_iter().flatten() {
            throttled.add(told.labels().into_iter().chain([("reason", word(reason).as_str())]), Some(1.0));
        }
    }
}

fn active(gpu: &GpuSample, part: fn(&Activity) -> &Reading<f64>) -> Option<f64> {
    ratio(part(gpu.activity.value()?))
}

fn hertz(reading: &Reading<u32>) -> Option<f64> {
    number(reading).map(|mhz| mhz * 1e6)
}
