//! The same under the names, labels and units of dcgm-exporter, so that its dashboards and alerts work.
//!
//! What gpumon does not read is left out: `DCGM_FI_PROF_GR_ENGINE_ACTIVE` and vGPU licences. So is
//! `DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL`, whose unit is not documented. An Xid is told for as long as it is the matter.

use gpumon_probe::model::{Activity, ConditionKind, GpuDetails, GpuSample, MemorySample, MigSample, Reading};

use super::{
    scrape::{Scrape, Told, count, number, ratio},
    text::{
        Kind::{self, Counter, Gauge},
        Label, Page,
    },
};

type Series = (&'static str, Kind, &'static str, fn(&GpuSample) -> Option<f64>);
type DetailsSeries = (&'static str, Kind, &'static str, fn(&GpuDetails) -> Option<f64>);
type MemorySeries = (&'static str, &'static str, fn(&MemorySample) -> &Reading<u64>);
type ActivitySeries = (&'static str, &'static str, fn(&Activity) -> &Reading<f64>);

const SERIES: &[Series] = &[
    ("DCGM_FI_DEV_SM_CLOCK", Gauge, "Clock of the multiprocessors in MHz.", |gpu| number(&gpu.clocks.sm_mhz)),
    ("DCGM_FI_DEV_MEM_CLOCK", Gauge, "Clock of device memory in MHz.", |gpu| number(&gpu.clocks.memory_mhz)),
    ("DCGM_FI_DEV_MEMORY_TEMP", Gauge, "Temperature of the memory in degrees Celsius.", |gpu| {
        number(&gpu.temperature.memory_celsius)
    }),
    ("DCGM_FI_DEV_GPU_TEMP", Gauge, "Temperature of the chip in degrees Celsius.", |gpu| {
        number(&gpu.temperature.gpu_celsius)
    }),
    ("DCGM_FI_DEV_POWER_USAGE", Gauge, "Draw of the board in watts.", |gpu| number(&gpu.power.draw_watts)),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Counter, "Energy since the driver was loaded, in millijoules.", |gpu| {
        number(&gpu.power.energy_joules_total).map(|joules| joules * 1000.0)
    }),
    ("DCGM_FI_DEV_GPU_UTIL", Gauge, "Time in which a kernel ran, in percent.", |gpu| {
        number(&gpu.utilization.gpu_percent)
    }),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", Gauge, "Time in which memory was read or written, in percent.", |gpu| {
        number(&gpu.utilization.memory_percent)
    }),
    ("DCGM_FI_DEV_ENC_UTIL", Gauge, "Use of the video encoder in percent.", |gpu| {
        number(&gpu.utilization.encoder_percent)
    }),
    ("DCGM_FI_DEV_DEC_UTIL", Gauge, "Use of the video decoder in percent.", |gpu| {
        number(&gpu.utilization.decoder_percent)
    }),
    ("DCGM_FI_DEV_XID_ERRORS", Gauge, "The Xid that is the matter with the GPU.", newest_xid),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", Gauge, "What crosses PCIe from the GPU, in bytes per second.", |gpu| {
        number(&gpu.pcie.tx_bytes_per_second)
    }),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", Gauge, "What crosses PCIe to the GPU, in bytes per second.", |gpu| {
        number(&gpu.pcie.rx_bytes_per_second)
    }),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", Gauge, "What crosses NVLink from the GPU, in bytes per second.", |gpu| {
        number(&gpu.nvlink.tx_bytes_per_second)
    }),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", Gauge, "What crosses NVLink to the GPU, in bytes per second.", |gpu| {
        number(&gpu.nvlink.rx_bytes_per_second)
    }),
];

const DETAILS: &[DetailsSeries] = &[
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Counter, "PCIe packets that had to be sent again.", |it| {
        count(&it.pcie_replays_total)
    }),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Counter, "Rows replaced after uncorrected errors.", |it| {
        it.remapped_rows.value().map(|rows| rows.uncorrectable.into())
    }),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Counter, "Rows replaced after corrected errors.", |it| {
        it.remapped_rows.value().map(|rows| rows.correctable.into())
    }),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", Gauge, "Whether a row could not be replaced.", |it| {
        it.remapped_rows.value().map(|rows| f64::from(u8::from(rows.failed)))
    }),
];

const MEMORY: &[MemorySeries] = &[
    ("DCGM_FI_DEV_FB_FREE", "Device memory that nobody holds, in MiB.", |memory| &memory.free_bytes),
    ("DCGM_FI_DEV_FB_USED", "Device memory that processes hold, in MiB.", |memory| &memory.used_bytes),
    ("DCGM_FI_DEV_FB_RESERVED", "Device memory that driver and firmware keep, in MiB.", |memory| {
        &memory.reserved_bytes
    }),
];

const ACTIVITY: &[ActivitySeries] = &[
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Time in which the graphics or compute engine was busy, 0 to 1.", |it| {
        &it.graphics_percent
    }),
    ("DCGM_FI_PROF_SM_ACTIVE", "Time in which a multiprocessor had work, 0 to 1.", |it| &it.sm_percent),
    ("DCGM_FI_PROF_SM_OCCUPANCY", "Warps that were resident, 0 to 1.", |it| &it.occupancy_percent),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Time in which the tensor cores worked, 0 to 1.", |it| &it.tensor_percent),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "Memory bandwidth in use, 0 to 1.", |it| &it.dram_bandwidth_percent),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Time in which the double-precision units worked, 0 to 1.", |it| {
        &it.fp64_percent
    }),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Time in which the single-precision units worked, 0 to 1.", |it| {
        &it.fp32_percent
    }),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Time in which the half-precision units worked, 0 to 1.", |it| &it.fp16_percent),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for (name, kind, help, read) in SERIES {
        let mut family = page.family(name, *kind, help);
        for told in &scrape.gpus {
            family.add(labels(scrape, told, &device(told)), told.readings.and_then(read));
        }
    }
    for (name, kind, help, read) in DETAILS {
        let mut family = page.family(name, *kind, help);
        for told in &scrape.gpus {
            family.add(labels(scrape, told, &device(told)), told.details.and_then(read));
        }
    }
    let mib = |reading: &Reading<u64>| reading.value().map(|bytes| (bytes >> 20) as f64);
    for (name, help, read) in MEMORY {
        by_instance(page, scrape, name, help, |gpu| mib(read(&gpu.memory)), |mig| mib(read(&mig.memory)));
    }
    for (name, help, read) in ACTIVITY {
        let of = |activity: &Reading<Activity>| ratio(read(activity.value()?));
        by_instance(page, scrape, name, help, |gpu| of(&gpu.activity), |mig| of(&mig.activity));
    }
}

/// What is told of MIG devices where there are any, and of the whole GPU otherwise, so that sums are right.
fn by_instance(
    page: &mut Page,
    scrape: &Scrape<'_>,
    name: &str,
    help: &str,
    of_gpu: impl Fn(&GpuSample) -> Option<f64>,
    of_mig: impl Fn(&MigSample) -> Option<f64>,
) {
    let mut family = page.family(name, Gauge, help);
    for told in &scrape.gpus {
        let Some(gpu) = told.readings else { continue };
        let device = device(told);
        let devices = gpu.mig_devices.value().map_or(&[][..], Vec::as_slice);
        if devices.is_empty() {
            family.add(labels(scrape, told, &device), of_gpu(gpu));
        }
        for mig in devices {
            let known = told.gpu.mig_devices.iter().find(|known| known.uuid == mig.uuid);
            let profile = known.and_then(|known| known.profile.value()).map_or("", String::as_str);
            let id = mig.instance.gpu_instance.to_string();
            let rest = [("GPU_I_PROFILE", profile), ("GPU_I_ID", id.as_str())];
            family.add(labels(scrape, told, &device).chain(rest), of_mig(mig));
        }
    }
}

/// `nvidia0`: the device file.
fn device(told: &Told<'_>) -> String {
    format!("nvidia{}", told.gpu.board.minor_number.value().unwrap_or(&told.gpu.index))
}

fn labels<'a>(scrape: &Scrape<'a>, told: &'a Told<'a>, device: &'a str) -> impl Iterator<Item = Label<'a>> {
    let inventory = scrape.snapshot.inventory.as_ref();
    let known = |reading: &'a Reading<String>| reading.value().map_or("", String::as_str);
    [
        ("gpu", told.index.as_str()),
        ("UUID", told.gpu.uuid.as_deref().unwrap_or_default()),
        ("pci_bus_id", known(&told.gpu.pci_bus_id)),
        ("device", device),
        ("modelName", known(&told.gpu.name)),
        ("Hostname", inventory.map_or("", |inventory| inventory.hostname.as_str())),
        ("DCGM_FI_DRIVER_VERSION", inventory.map_or("", |inventory| known(&inventory.platform.driver_version))),
    ]
    .into_iter()
}

fn newest_xid(gpu: &GpuSample) -> Option<f64> {
    let xids = gpu.conditions.iter().filter_map(|condition| match condition.kind {
        ConditionKind::Xid { code, last_ms, .. } => Some((last_ms, code)),
        _ => None,
    });
    xids.max().map(|(_, code)| code.into())
}
