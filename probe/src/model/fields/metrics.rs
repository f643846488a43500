//! What is told as a metric and nothing more: of samples, of details, and of boards.

use super::{
    Kind::{self, Counter, Gauge, State},
    Metric,
    Unit::{self, Bytes, BytesPerSecond, Celsius, Count, Megahertz, Seconds, Watts},
    access::Number,
};
use crate::model::{Board, ConditionKind, GpuDetails, GpuSample, NvLink, Reading, SpareRows};

const THROTTLED: &str = "Time in which the clocks were throttled for this reason.";

const ECC: &str = "ECC errors since the driver was loaded (volatile) or over the lifetime of the GPU (aggregate).";

/// What parts of a sample say together; dcgm-exporter alone has names for it.
pub const SAMPLE_METRICS: &[Metric<GpuSample>] = &[
    sample(
        Gauge,
        Count,
        "Device memory in use, as a share of what is not reserved.",
        used_share,
    )
    .dcgm("DCGM_FI_DEV_FB_USED_PERCENT", "DCGM_FI_DEV_FB_USED_RATIO"),
    sample(
        State,
        Count,
        "What holds the clocks down, as NVML's bits.",
        event_reasons,
    )
    .dcgm(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    ),
    // The same under the name that it had before.
    sample(
        State,
        Count,
        "What holds the clocks down, as NVML's bits.",
        event_reasons,
    )
    .dcgm(
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    ),
    sample(
        Gauge,
        BytesPerSecond,
        "Traffic over all NVLinks, in both directions.",
        |it| {
            Some(number(&it.nvlink.rx_bytes_per_second)? + number(&it.nvlink.tx_bytes_per_second)?)
        },
    )
    .dcgm(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
    ),
    sample(
        State,
        Count,
        "Xid of the newest error that still lasts; 0 if there is none.",
        |it| Some(newest_xid(it)),
    )
    .dcgm("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR")
    .outlasts_gpu(),
];

/// What changes slowly: settings, errors and links.
pub const DETAIL_METRICS: &[Metric<GpuDetails>] = &[
    detail(State, Count, "Whether persistence mode is enabled.", |it| {
        flag(&it.modes.persistence)
    })
    .prometheus("gpumon_gpu_persistence_mode")
    .dcgm(
        "DCGM_FI_DEV_PERSISTENCE_MODE",
        "DCGM_FI_DEV_GPU_PERSISTENCE_MODE",
    ),
    detail(State, Count, "Whether ECC is enabled.", |it| {
        part(&it.modes.ecc, |mode| mode.current.into())
    })
    .prometheus("gpumon_gpu_ecc_mode")
    .dcgm("DCGM_FI_DEV_ECC_CURRENT", "DCGM_FI_DEV_ECC_MODE"),
    detail(
        State,
        Count,
        "Whether ECC is enabled after the next GPU reset.",
        |it| part(&it.modes.ecc, |mode| mode.pending.into()),
    )
    .prometheus("gpumon_gpu_ecc_mode_pending")
    .dcgm("DCGM_FI_DEV_ECC_PENDING", "DCGM_FI_DEV_ECC_PENDING"),
    detail(State, Count, "Whether MIG mode is enabled.", |it| {
        part(&it.modes.mig, |mode| mode.current.into())
    })
    .prometheus("gpumon_gpu_mig_mode")
    .dcgm("DCGM_FI_DEV_MIG_MODE", "DCGM_FI_DEV_MIG_MODE"),
    detail(
        Gauge,
        Watts,
        "The power limit that was requested; the one in force can be lower.",
        |it| number(&it.requested_power_limit_watts),
    )
    .prometheus("gpumon_gpu_power_limit_requested_watts")
    .dcgm(
        "DCGM_FI_DEV_POWER_MGMT_LIMIT",
        "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS",
    ),
    detail(Gauge, Megahertz, "Application clocks.", |it| {
        number(&it.application_clocks.graphics_mhz)
    })
    .prometheus("gpumon_gpu_application_clock_hertz")
    .labels(&[("clock", "graphics")]),
    detail(Gauge, Megahertz, "Application clocks.", |it| {
        number(&it.application_clocks.memory_mhz)
    })
    .prometheus("gpumon_gpu_application_clock_hertz")
    .labels(&[("clock", "memory")])
    .dcgm(
        "DCGM_FI_DEV_APP_MEM_CLOCK",
        "DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ",
    ),
    detail(Counter, Seconds, THROTTLED, |it| {
        number(&it.throttled.power_seconds_total)
    })
    .prometheus("gpumon_gpu_throttled_seconds_total")
    .labels(&[("reason", "power")])
    .dcgm("DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_POWER_VIOLATION"),
    detail(Counter, Seconds, THROTTLED, |it| {
        number(&it.throttled.thermal_seconds_total)
    })
    .prometheus("gpumon_gpu_throttled_seconds_total")
    .labels(&[("reason", "thermal")])
    .dcgm(
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "DCGM_FI_DEV_THERMAL_VIOLATION",
    ),
    detail(Counter, Seconds, THROTTLED, |it| {
        number(&it.throttled.sync_boost_seconds_total)
    })
    .prometheus("gpumon_gpu_throttled_seconds_total")
    .labels(&[("reason", "sync_boost")])
    .dcgm(
        "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
        "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    ),
    detail(Counter, Seconds, THROTTLED, |it| {
        number(&it.throttled.board_limit_seconds_total)
    })
    .prometheus("gpumon_gpu_throttled_seconds_total")
    .labels(&[("reason", "board_limit")])
    .dcgm(
        "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
        "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    ),
    detail(Counter, Seconds, THROTTLED, |it| {
        number(&it.throttled.low_utilization_seconds_total)
    })
    .prometheus("gpumon_gpu_throttled_seconds_total")
    .labels(&[("reason", "low_utilization")])
    .dcgm(
        "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
        "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
    ),
    detail(Counter, Seconds, THROTTLED, |it| {
        number(&it.throttled.reliability_seconds_total)
    })
    .prometheus("gpumon_gpu_throttled_seconds_total")
    .labels(&[("reason", "reliability")])
    .dcgm(
        "DCGM_FI_DEV_RELIABILITY_VIOLATION",
        "DCGM_FI_DEV_RELIABILITY_VIOLATION",
    ),
    detail(Counter, Count, ECC, |it| {
        number(&it.ecc.volatile.corrected_total)
    })
    .prometheus("gpumon_gpu_ecc_errors_total")
    .labels(&[("counter", "volatile"), ("error", "corrected")])
    .dcgm(
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    ),
    detail(Counter, Count, ECC, |it| {
        number(&it.ecc.volatile.uncorrected_total)
    })
    .prometheus("gpumon_gpu_ecc_errors_total")
    .labels(&[("counter", "volatile"), ("error", "uncorrected")])
    .dcgm(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    ),
    detail(Counter, Count, ECC, |it| {
        number(&it.ecc.aggregate.corrected_total)
    })
    .prometheus("gpumon_gpu_ecc_errors_total")
    .labels(&[("counter", "aggregate"), ("error", "corrected")])
    .dcgm(
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
    ),
    detail(Counter, Count, ECC, |it| {
        number(&it.ecc.aggregate.uncorrected_total)
    })
    .prometheus("gpumon_gpu_ecc_errors_total")
    .labels(&[("counter", "aggregate"), ("error", "uncorrected")])
    .dcgm(
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
    ),
    detail(Counter, Count, "Retired memory pages by cause.", |it| {
        part(&it.retired_pages, |pages| pages.single_bit.into())
    })
    .prometheus("gpumon_gpu_retired_pages_total")
    .labels(&[("cause", "single_bit")])
    .dcgm(
        "DCGM_FI_DEV_RETIRED_SBE",
        "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL",
    ),
    detail(Counter, Count, "Retired memory pages by cause.", |it| {
        part(&it.retired_pages, |pages| pages.double_bit.into())
    })
    .prometheus("gpumon_gpu_retired_pages_total")
    .labels(&[("cause", "double_bit")])
    .dcgm(
        "DCGM_FI_DEV_RETIRED_DBE",
        "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL",
    ),
    detail(
        State,
        Count,
        "Whether a page retirement is pending until the next GPU reset.",
        |it| part(&it.retired_pages, |pages| pages.pending.into()),
    )
    .prometheus("gpumon_gpu_retired_pages_pending")
    .dcgm(
        "DCGM_FI_DEV_RETIRED_PENDING",
        "DCGM_FI_DEV_PAGE_RETIRED_PENDING",
    ),
    detail(Counter, Count, "Remapped memory rows by cause.", |it| {
        part(&it.remapped_rows, |rows| rows.correctable.into())
    })
    .prometheus("gpumon_gpu_remapped_rows_total")
    .labels(&[("cause", "correctable")])
    .dcgm(
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL",
    ),
    detail(Counter, Count, "Remapped memory rows by cause.", |it| {
        part(&it.remapped_rows, |rows| rows.uncorrectable.into())
    })
    .prometheus("gpumon_gpu_remapped_rows_total")
    .labels(&[("cause", "uncorrectable")])
    .dcgm(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
    ),
    detail(
        State,
        Count,
        "Whether a row remapping is pending until the next GPU reset.",
        |it| part(&it.remapped_rows, |rows| rows.pending.into()),
    )
    .prometheus("gpumon_gpu_remapped_rows_pending")
    .dcgm(
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
    ),
    detail(State, Count, "Whether a row remapping has failed.", |it| {
        part(&it.remapped_rows, |rows| rows.failed.into())
    })
    .prometheus("gpumon_gpu_remapped_rows_failed")
    .dcgm(
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_ROW_REMAP_FAILED",
    ),
    detail(
        Gauge,
        Count,
        "Memory banks by how many spare rows they have left.",
        |it| spare(it, |rows| rows.max),
    )
    .prometheus("gpumon_gpu_memory_banks")
    .labels(&[("spare_rows", "max")])
    .dcgm(
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX",
        "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX",
    ),
    detail(
        Gauge,
        Count,
        "Memory banks by how many spare rows they have left.",
        |it| spare(it, |rows| rows.high),
    )
    .prometheus("gpumon_gpu_memory_banks")
    .labels(&[("spare_rows", "high")])
    .dcgm(
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH",
        "DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH",
    ),
    detail(
        Gauge,
        Count,
        "Memory banks by how many spare rows they have left.",
        |it| spare(it, |rows| rows.partial),
    )
    .prometheus("gpumon_gpu_memory_banks")
    .labels(&[("spare_rows", "partial")])
    .dcgm(
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL",
        "DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL",
    ),
    detail(
        Gauge,
        Count,
        "Memory banks by how many spare rows they have left.",
        |it| spare(it, |rows| rows.low),
    )
    .prometheus("gpumon_gpu_memory_banks")
    .labels(&[("spare_rows", "low")])
    .dcgm(
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW",
        "DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW",
    ),
    detail(
        Gauge,
        Count,
        "Memory banks by how many spare rows they have left.",
        |it| spare(it, |rows| rows.none),
    )
    .prometheus("gpumon_gpu_memory_banks")
    .labels(&[("spare_rows", "none")])
    .dcgm(
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
        "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE",
    ),
    detail(
        Gauge,
        Bytes,
        "Size of BAR1, through which the host maps device memory.",
        |it| part(&it.bar1, |bar1| bar1.total_bytes as f64),
    )
    .prometheus("gpumon_gpu_bar1_total_bytes")
    .dcgm("DCGM_FI_DEV_BAR1_TOTAL", "DCGM_FI_DEV_BAR1_CAPACITY_BYTES"),
    detail(Gauge, Bytes, "BAR1 memory in use.", |it| {
        part(&it.bar1, |bar1| bar1.used_bytes as f64)
    })
    .prometheus("gpumon_gpu_bar1_used_bytes")
    .dcgm("DCGM_FI_DEV_BAR1_USED", "DCGM_FI_DEV_BAR1_USED_BYTES"),
    detail(Gauge, Bytes, "BAR1 memory not in use.", |it| {
        part(&it.bar1, |bar1| (bar1.total_bytes - bar1.used_bytes) as f64)
    })
    .dcgm("DCGM_FI_DEV_BAR1_FREE", "DCGM_FI_DEV_BAR1_FREE_BYTES"),
    detail(Counter, Count, "PCIe replays.", |it| {
        number(&it.pcie_replays_total)
    })
    .prometheus("gpumon_gpu_pcie_replays_total")
    .dcgm(
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "DCGM_FI_DEV_PCIE_REPLAY_TOTAL",
    ),
    detail(Gauge, Count, "Number of NVLinks by state.", |it| {
        links(it, |link| link.active.value() == Some(&true))
    })
    .prometheus("gpumon_gpu_nvlinks")
    .labels(&[("state", "up")]),
    detail(Gauge, Count, "Number of NVLinks by state.", |it| {
        links(it, |link| link.active.value() == Some(&false))
    })
    .prometheus("gpumon_gpu_nvlinks")
    .labels(&[("state", "down")]),
    detail(Counter, Count, "Errors of all NVLinks by kind.", |it| {
        link_errors(it, |link| &link.replays_total)
    })
    .prometheus("gpumon_gpu_nvlink_errors_total")
    .labels(&[("error", "replay")])
    .dcgm(
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL",
    ),
    detail(Counter, Count, "Errors of all NVLinks by kind.", |it| {
        link_errors(it, |link| &link.recoveries_total)
    })
    .prometheus("gpumon_gpu_nvlink_errors_total")
    .labels(&[("error", "recovery")])
    .dcgm(
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL",
    ),
    detail(Counter, Count, "Errors of all NVLinks by kind.", |it| {
        link_errors(it, |link| &link.crc_errors_total)
    })
    .prometheus("gpumon_gpu_nvlink_errors_total")
    .labels(&[("error", "crc")])
    .dcgm(
        "DCGM_FI_DEV_NVLINK_ERROR_DL_CRC",
        "DCGM_FI_DEV_NVLINK_CRC_ERROR_TOTAL",
    ),
    detail(
        State,
        Count,
        "What the driver asks for before the GPU is used again, as NVML's number.",
        |it| {
            it.recovery_action
                .value()
                .map(|action| f64::from(*action as u8))
        },
    )
    .dcgm(
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        "DCGM_FI_DEV_GPU_RECOVERY_ACTION",
    ),
];

/// What never changes.
pub const BOARD_METRICS: &[Metric<Board>] = &[
    board(
        Gauge,
        Watts,
        "The power limit after a reset of the driver.",
        |it| number(&it.power_limits.default_watts),
    )
    .prometheus("gpumon_gpu_power_limit_default_watts")
    .dcgm(
        "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF",
        "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS",
    ),
    board(
        Gauge,
        Watts,
        "The lowest power limit that can be set.",
        |it| number(&it.power_limits.min_watts),
    )
    .prometheus("gpumon_gpu_power_limit_min_watts")
    .dcgm(
        "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN",
        "DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS",
    ),
    board(
        Gauge,
        Watts,
        "The highest power limit that can be set.",
        |it| number(&it.power_limits.max_watts),
    )
    .prometheus("gpumon_gpu_power_limit_max_watts")
    .dcgm(
        "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX",
        "DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS",
    ),
    board(
        Gauge,
        Celsius,
        "Temperatures from which on the GPU lowers its clocks, or switches itself off.",
        |it| number(&it.thresholds.slowdown_celsius),
    )
    .prometheus("gpumon_gpu_temperature_threshold_celsius")
    .labels(&[("threshold", "slowdown")])
    .dcgm(
        "DCGM_FI_DEV_SLOWDOWN_TEMP",
        "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS",
    ),
    board(
        Gauge,
        Celsius,
        "Temperatures from which on the GPU lowers its clocks, or switches itself off.",
        |it| number(&it.thresholds.shutdown_celsius),
    )
    .prometheus("gpumon_gpu_temperature_threshold_celsius")
    .labels(&[("threshold", "shutdown")])
    .dcgm(
        "DCGM_FI_DEV_SHUTDOWN_TEMP",
        "DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS",
    ),
    board(
        Gauge,
        Celsius,
        "Temperatures from which on the GPU lowers its clocks, or switches itself off.",
        |it| number(&it.thresholds.gpu_max_celsius),
    )
    .prometheus("gpumon_gpu_temperature_threshold_celsius")
    .labels(&[("threshold", "gpu_max")])
    .dcgm(
        "DCGM_FI_DEV_GPU_MAX_OP_TEMP",
        "DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS",
    ),
    board(
        Gauge,
        Celsius,
        "Temperatures from which on the GPU lowers its clocks, or switches itself off.",
        |it| number(&it.thresholds.memory_max_celsius),
    )
    .prometheus("gpumon_gpu_temperature_threshold_celsius")
    .labels(&[("threshold", "memory_max")])
    .dcgm(
        "DCGM_FI_DEV_MEM_MAX_OP_TEMP",
        "DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS",
    ),
    board(Gauge, Megahertz, "Highest clocks.", |it| {
        number(&it.max_clocks.sm_mhz)
    })
    .prometheus("gpumon_gpu_max_clock_hertz")
    .labels(&[("clock", "sm")])
    .dcgm("DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ"),
    board(Gauge, Megahertz, "Highest clocks.", |it| {
        number(&it.max_clocks.graphics_mhz)
    })
    .prometheus("gpumon_gpu_max_clock_hertz")
    .labels(&[("clock", "graphics")]),
    board(Gauge, Megahertz, "Highest clocks.", |it| {
        number(&it.max_clocks.memory_mhz)
    })
    .prometheus("gpumon_gpu_max_clock_hertz")
    .labels(&[("clock", "memory")])
    .dcgm(
        "DCGM_FI_DEV_MAX_MEM_CLOCK",
        "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ",
    ),
    board(Gauge, Megahertz, "Highest clocks.", |it| {
        number(&it.max_clocks.video_mhz)
    })
    .prometheus("gpumon_gpu_max_clock_hertz")
    .labels(&[("clock", "video")])
    .dcgm(
        "DCGM_FI_DEV_MAX_VIDEO_CLOCK",
        "DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ",
    ),
    board(
        Gauge,
        Count,
        "Highest PCIe generation of board and slot.",
        |it| number(&it.pcie_max_generation),
    )
    .prometheus("gpumon_gpu_pcie_max_generation")
    .dcgm(
        "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
        "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
    ),
    board(Gauge, Count, "Lanes that board and slot have.", |it| {
        number(&it.pcie_max_width)
    })
    .prometheus("gpumon_gpu_pcie_max_lanes")
    .dcgm(
        "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
        "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
    ),
];

// They say of what the closure is told.

const fn sample(
    kind: Kind,
    unit: Unit,
    help: &'static str,
    read: fn(&GpuSample) -> Option<f64>,
) -> Metric<GpuSample> {
    Metric::new(kind, unit, help, read)
}

const fn detail(
    kind: Kind,
    unit: Unit,
    help: &'static str,
    read: fn(&GpuDetails) -> Option<f64>,
) -> Metric<GpuDetails> {
    Metric::new(kind, unit, help, read)
}

const fn board(
    kind: Kind,
    unit: Unit,
    help: &'static str,
    read: fn(&Board) -> Option<f64>,
) -> Metric<Board> {
    Metric::new(kind, unit, help, read)
}

fn number<T: Number>(reading: &Reading<T>) -> Option<f64> {
    reading.value().map(|value| value.to_f64())
}

fn flag(reading: &Reading<bool>) -> Option<f64> {
    reading.value().map(|is| (*is).into())
}

fn part<T>(reading: &Reading<T>, read: impl Fn(&T) -> f64) -> Option<f64> {
    reading.value().map(read)
}

fn used_share(gpu: &GpuSample) -> Option<f64> {
    let memory = &gpu.memory;
    let usable = number(&memory.total_bytes)? - number(&memory.reserved_bytes)?;
    number(&memory.used_bytes)
        .filter(|_| usable > 0.0)
        .map(|used| (used / usable).min(1.0))
}

fn event_reasons(gpu: &GpuSample) -> Option<f64> {
    part(&gpu.throttle_reasons, |reasons| {
        reasons.iter().fold(0, |bits, reason| bits | reason.bit()) as f64
    })
}

fn newest_xid(gpu: &GpuSample) -> f64 {
    let xids = gpu
        .conditions
        .iter()
        .filter_map(|condition| match condition.kind {
            ConditionKind::Xid { code, last_ms, .. } => Some((last_ms, code)),
            _ => None,
        });
    xids.max().map_or(0.0, |(_, code)| code.into())
}

fn spare(details: &GpuDetails, read: fn(&SpareRows) -> u32) -> Option<f64> {
    Some(read(details.remapped_rows.value()?.spare.as_ref()?).into())
}

/// How many are so; `None` where there are none at all.
fn links(details: &GpuDetails, is_so: fn(&NvLink) -> bool) -> Option<f64> {
    let links = details.nvlinks.value().filter(|links| !links.is_empty())?;
    Some(links.iter().filter(|link| is_so(link)).count() as f64)
}

/// Added up over those that count them; `None` where none does.
fn link_errors(details: &GpuDetails, read: fn(&NvLink) -> &Reading<u64>) -> Option<f64> {
    details
        .nvlinks
        .value()?
        .iter()
        .filter_map(|link| number(read(link)))
        .reduce(|one, other| one + other)
}
