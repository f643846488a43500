//! The columns of GPUs.

use gpumon_probe::model::{Activity, Gpu, GpuSample, Health, Process, Reading, Sample};

use super::{
    super::look::Look,
    Column,
    field::{number, plain, rounded, time, word},
};

/// What one row is about.
pub(super) struct Row {
    sample_ms: u64,
    gpu: GpuSample,
    known: Option<Gpu>,
}

pub(super) fn rows(look: &Look) -> Vec<Row> {
    let Sample { at_ms, gpus, .. } = &look.sample;
    let known = |index: u32| look.inventory.gpus.iter().find(|gpu| gpu.index == index).cloned();
    gpus.iter().map(|gpu| Row { sample_ms: *at_ms, gpu: gpu.clone(), known: known(gpu.index) }).collect()
}

const fn column(name: &'static str, help: &'static str, read: fn(&Row) -> Option<String>) -> Column<Row> {
    Column { name, help, usual: false, read }
}

const fn usual(name: &'static str, help: &'static str, read: fn(&Row) -> Option<String>) -> Column<Row> {
    Column { name, help, usual: true, read }
}

/// In the order in which they are shown.
pub(super) const COLUMNS: [Column<Row>; 42] = [
    usual("time", "when the sample was taken, UTC", |row| Some(time(row.sample_ms))),
    usual("index", "NVML's index", |row| Some(row.gpu.index.to_string())),
    usual("uuid", "the GPU's UUID", |row| row.gpu.uuid.clone()),
    usual("name", "the board's name", |row| plain(&row.known.as_ref()?.name)),
    column("pci_bus_id", "its place on the PCI bus", |row| plain(&row.known.as_ref()?.pci_bus_id)),
    usual("state", "ok, asleep, hung, lost or failed", |row| Some(state(&row.gpu.health).to_owned())),
    usual("utilization_gpu_percent", "time in which a kernel ran", |row| number(&row.gpu.utilization.gpu_percent)),
    column("utilization_memory_percent", "time in which memory was read or written", |row| {
        number(&row.gpu.utilization.memory_percent)
    }),
    column("utilization_encoder_percent", "video encoder", |row| number(&row.gpu.utilization.encoder_percent)),
    column("utilization_decoder_percent", "video decoder", |row| number(&row.gpu.utilization.decoder_percent)),
    column("utilization_jpeg_percent", "JPEG decoder", |row| number(&row.gpu.utilization.jpeg_percent)),
    column("utilization_ofa_percent", "optical flow", |row| number(&row.gpu.utilization.ofa_percent)),
    column("activity_sm_percent", "multiprocessors with work, from GPM; needs a server or --watch", |row| {
        active(row, |activity| &activity.sm_percent)
    }),
    column("activity_occupancy_percent", "warps that were resident, likewise", |row| {
        active(row, |activity| &activity.occupancy_percent)
    }),
    column("activity_tensor_percent", "tensor cores with work, likewise", |row| {
        active(row, |activity| &activity.tensor_percent)
    }),
    column("activity_dram_bandwidth_percent", "bandwidth of device memory in use, likewise", |row| {
        active(row, |activity| &activity.dram_bandwidth_percent)
    }),
    usual("memory_used_bytes", "memory that processes hold", |row| plain(&row.gpu.memory.used_bytes)),
    column("memory_free_bytes", "memory that can be allocated", |row| plain(&row.gpu.memory.free_bytes)),
    column("memory_reserved_bytes", "memory that the driver keeps", |row| plain(&row.gpu.memory.reserved_bytes)),
    usual("memory_total_bytes", "all of it", |row| plain(&row.gpu.memory.total_bytes)),
    usual("temperature_gpu_celsius", "the chip", |row| number(&row.gpu.temperature.gpu_celsius)),
    column("temperature_memory_celsius", "the memory", |row| number(&row.gpu.temperature.memory_celsius)),
    usual("power_draw_watts", "the board's draw", |row| number(&row.gpu.power.draw_watts)),
    column("power_instant_watts", "the same at the last of the driver's measurements", |row| {
        number(&row.gpu.power.instant_watts)
    }),
    usual("power_limit_watts", "the limit in force", |row| number(&row.gpu.power.limit_watts)),
    column("clocks_sm_mhz", "streaming multiprocessors", |row| plain(&row.gpu.clocks.sm_mhz)),
    column("clocks_graphics_mhz", "graphics engine", |row| plain(&row.gpu.clocks.graphics_mhz)),
    column("clocks_memory_mhz", "device memory", |row| plain(&row.gpu.clocks.memory_mhz)),
    column("clocks_video_mhz", "video encoder and decoder", |row| plain(&row.gpu.clocks.video_mhz)),
    column("performance_state", "P-state, 0 is the fastest", |row| plain(&row.gpu.performance_state)),
    column("fan_percent", "the fastest fan, of its full speed", |row| number(&row.gpu.fan_percent)),
    column("pcie_generation", "of the link as it runs now", |row| plain(&row.gpu.pcie.generation)),
    column("pcie_width", "lanes of the link as it runs now", |row| plain(&row.gpu.pcie.width)),
    column("pcie_tx_bytes_per_second", "what left the GPU; needs a server or --watch", |row| {
        number(&row.gpu.pcie.tx_bytes_per_second)
    }),
    column("pcie_rx_bytes_per_second", "what reached the GPU, likewise", |row| {
        number(&row.gpu.pcie.rx_bytes_per_second)
    }),
    column("nvlink_tx_bytes_per_second", "over all NVLinks from the GPU, likewise", |row| {
        number(&row.gpu.nvlink.tx_bytes_per_second)
    }),
    column("nvlink_rx_bytes_per_second", "over all NVLinks to the GPU, likewise", |row| {
        number(&row.gpu.nvlink.rx_bytes_per_second)
    }),
    usual("throttle_reasons", "what holds the clocks down, separated by blanks", |row| {
        let reasons = row.gpu.throttle_reasons.value()?;
        Some(reasons.iter().map(word).collect::<Vec<_>>().join(" "))
    }),
    column("conditions", "what is the matter, in sentences; needs a server or --watch", |row| {
        Some(row.gpu.conditions.iter().map(|condition| condition.text.as_str()).collect::<Vec<_>>().join(" "))
    }),
    usual("process_count", "processes that hold the GPU", |row| {
        Some((processes(row)?.len() + row.gpu.processes_omitted as usize).to_string())
    }),
    column("process_users", "who they are, separated by blanks", |row| {
        let mut users: Vec<&str> =
            all_processes(row)?.iter().filter_map(|process| Some(process.user.value()?.as_str())).collect();
        users.sort_unstable();
        users.dedup();
        Some(users.join(" "))
    }),
    column("process_memory_bytes", "what they hold together, as far as the driver tells", |row| {
        Some(rounded(all_processes(row)?.iter().filter_map(|process| process.memory_bytes.value()).sum::<u64>() as f64))
    }),
];

fn active(row: &Row, part: fn(&Activity) -> &Reading<f64>) -> Option<String> {
    number(part(row.gpu.activity.value()?))
}

/// `None` where some are left out of the sample, since what they are together is not what they all are.
fn all_processes(row: &Row) -> Option<&[Process]> {
    processes(row).filter(|_| row.gpu.processes_omitted == 0)
}

fn processes(row: &Row) -> Option<&[Process]> {
    row.gpu.processes.value().map(Vec::as_slice)
}

fn state(health: &Health) -> &'static str {
    match health {
        Health::Ok => "ok",
        Health::Asleep { .. } => "asleep",
        Health::Hung { .. } => "hung",
        Health::Lost { .. } => "lost",
        Health::Failed { .. } => "failed",
    }
}
