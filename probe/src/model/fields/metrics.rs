//! Metrics that are not fields: numbers from samples, details and boards that are exported only
//! under the metric names of Prometheus and dcgm-exporter.

use super::{
    Dcgm,
    Kind::{self, Counter, Gauge, State},
    Unit::{self, Bytes, BytesPerSecond, Celsius, Count, Megahertz, Seconds, Watts},
    access::Number,
};
use crate::model::{Board, ConditionKind, GpuDetails, GpuSample, NvLink, Reading, SpareRows};

/// A number in a value of type `S`, such as a sample, and its names in Prometheus and
/// dcgm-exporter.
#[derive(Debug, Clone, Copy)]
pub struct Metric<S: 'static> {
    pub help: &'static str,
    pub unit: Unit,
    /// How the number changes over time.
    pub kind: Kind,
    pub read: fn(&S) -> Option<f64>,
    /// The name in Prometheus. Metrics with the same name are adjacent, and have the same help text
    /// and kind.
    pub prometheus: Option<&'static str>,
    /// The labels that distinguish metrics of the same name.
    pub labels: &'static [(&'static str, &'static str)],
    /// The names in dcgm-exporter, if it has this metric.
    pub dcgm: Option<Dcgm>,
    /// Whether the metric is also reported for a GPU that does not respond.
    pub outlasts_gpu: bool,
}

/// Creates metrics from families. A family has a kind, a unit, a Prometheus name and a help text.
/// Each metric in a family has labels, optional names in dcgm-exporter, and `true` if the metric is
/// also reported for a GPU that does not respond.
macro_rules! metrics {
    ($subject:ty; $(
        $kind:ident $unit:ident $prometheus:literal $help:expr;
        $([$($label:ident: $value:literal),*] ($($dcgm:literal),*)
            $read:expr $(, $outlasts:literal)?;)+
    )+) => {
        &[$($(Metric::<$subject> {
            help: $help,
            unit: $unit,
            kind: $kind,
            read: $read,
            prometheus: name_of($prometheus),
            labels: &[$((stringify!($label), $value)),*],
            dcgm: Dcgm::from_names(&[$($dcgm),*]),
            outlasts_gpu: false $(|| $outlasts)?,
        }),+),+]
    };
}

const fn name_of(name: &'static str) -> Option<&'static str> {
    if name.is_empty() { None } else { Some(name) }
}

const THROTTLED: &str = "Time in which the clocks were throttled for this reason.";

const ECC: &str = "ECC errors since the driver was loaded (volatile) or over the lifetime of the \
                   GPU (aggregate).";

/// Metrics computed from several readings in a sample, which exist only in dcgm-exporter's format.
pub const SAMPLE_METRICS: &[Metric<GpuSample>] = metrics! { GpuSample;
    Gauge Count "" "Device memory in use, as a share of the memory that is not reserved.";
        [] ("DCGM_FI_DEV_FB_USED_PERCENT", "DCGM_FI_DEV_FB_USED_RATIO") used_memory_fraction;
    State Count "" "Reasons for reduced clocks, as an NVML bit mask.";
        [] ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS") throttle_reason_mask;
        // This is dcgm-exporter's former name for the previous metric.
        [] ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS") throttle_reason_mask;
    Gauge BytesPerSecond "" "Traffic over all NVLinks, in both directions.";
        [] ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND")
            nvlink_traffic;
    State Count "" "The newest Xid that is still active; 0 if there is none.";
        [] ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR") |it| Some(newest_xid(it)), true;
};

/// Metrics of slowly changing readings: settings, errors and links.
pub const DETAIL_METRICS: &[Metric<GpuDetails>] = metrics! { GpuDetails;
    State Count "gpumon_gpu_persistence_mode" "Whether persistence mode is enabled.";
        [] ("DCGM_FI_DEV_PERSISTENCE_MODE", "DCGM_FI_DEV_GPU_PERSISTENCE_MODE")
            |it| read_part(&it.modes.persistence, |is| (*is).into());
    State Count "gpumon_gpu_ecc_mode" "Whether ECC is enabled.";
        [] ("DCGM_FI_DEV_ECC_CURRENT", "DCGM_FI_DEV_ECC_MODE")
            |it| read_part(&it.modes.ecc, |mode| mode.current.into());
    State Count "gpumon_gpu_ecc_mode_pending" "Whether ECC will be enabled after the next GPU \
     reset.";
        [] ("DCGM_FI_DEV_ECC_PENDING") |it| read_part(&it.modes.ecc, |mode| mode.pending.into());
    State Count "gpumon_gpu_mig_mode" "Whether MIG mode is enabled.";
        [] ("DCGM_FI_DEV_MIG_MODE") |it| read_part(&it.modes.mig, |mode| mode.current.into());
    Gauge Watts "gpumon_gpu_power_limit_requested_watts"
        "The power limit that was requested; the one in force can be lower.";
        [] ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS")
            |it| read_number(&it.requested_power_limit_watts);
    Gauge Megahertz "gpumon_gpu_application_clock_hertz" "Application clocks.";
        [clock: "graphics"] () |it| read_number(&it.application_clocks.graphics_mhz);
        [clock: "memory"] ("DCGM_FI_DEV_APP_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ")
            |it| read_number(&it.application_clocks.memory_mhz);
    Counter Seconds "gpumon_gpu_throttled_seconds_total" THROTTLED;
        [reason: "power"] ("DCGM_FI_DEV_POWER_VIOLATION")
            |it| read_number(&it.throttled.power_seconds_total);
        [reason: "thermal"] ("DCGM_FI_DEV_THERMAL_VIOLATION")
            |it| read_number(&it.throttled.thermal_seconds_total);
        [reason: "sync_boost"] ("DCGM_FI_DEV_SYNC_BOOST_VIOLATION")
            |it| read_number(&it.throttled.sync_boost_seconds_total);
        [reason: "board_limit"] ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION")
            |it| read_number(&it.throttled.board_limit_seconds_total);
        [reason: "low_utilization"] ("DCGM_FI_DEV_LOW_UTIL_VIOLATION")
            |it| read_number(&it.throttled.low_utilization_seconds_total);
        [reason: "reliability"] ("DCGM_FI_DEV_RELIABILITY_VIOLATION")
            |it| read_number(&it.throttled.reliability_seconds_total);
    Counter Count "gpumon_gpu_ecc_errors_total" ECC;
        [counter: "volatile", error: "corrected"] ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL")
            |it| read_number(&it.ecc.volatile.corrected_total);
        [counter: "volatile", error: "uncorrected"] ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")
            |it| read_number(&it.ecc.volatile.uncorrected_total);
        [counter: "aggregate", error: "corrected"] ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL")
            |it| read_number(&it.ecc.aggregate.corrected_total);
        [counter: "aggregate", error: "uncorrected"] ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL")
            |it| read_number(&it.ecc.aggregate.uncorrected_total);
    Counter Count "gpumon_gpu_retired_pages_total" "Retired memory pages by cause.";
        [cause: "single_bit"] ("DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL")
            |it| read_part(&it.retired_pages, |pages| pages.single_bit.into());
        [cause: "double_bit"] ("DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL")
            |it| read_part(&it.retired_pages, |pages| pages.double_bit.into());
    State Count "gpumon_gpu_retired_pages_pending"
        "Whether a page retirement is pending until the next GPU reset.";
        [] ("DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING")
            |it| read_part(&it.retired_pages, |pages| pages.pending.into());
    Counter Count "gpumon_gpu_remapped_rows_total" "Remapped memory rows by cause.";
        [cause: "correctable"] (
            "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL"
        )
            |it| read_part(&it.remapped_rows, |rows| rows.correctable.into());
        [cause: "uncorrectable"] (
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"
        )
            |it| read_part(&it.remapped_rows, |rows| rows.uncorrectable.into());
    State Count "gpumon_gpu_remapped_rows_pending"
        "Whether a row remapping is pending until the next GPU reset.";
        [] ("DCGM_FI_DEV_ROW_REMAP_PENDING")
            |it| read_part(&it.remapped_rows, |rows| rows.pending.into());
    State Count "gpumon_gpu_remapped_rows_failed" "Whether a row remapping has failed.";
        [] ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED")
            |it| read_part(&it.remapped_rows, |rows| rows.failed.into());
    Gauge Count "gpumon_gpu_memory_banks" "Memory banks by the number of spare rows that they \
                                           have left.";
        [spare_rows: "max"] (
            "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX",
            "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX"
        )
            |it| spare_rows(it, |rows| rows.max);
        [spare_rows: "high"] (
            "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH",
            "DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH"
        )
            |it| spare_rows(it, |rows| rows.high);
        [spare_rows: "partial"] (
            "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL",
            "DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL"
        )
            |it| spare_rows(it, |rows| rows.partial);
        [spare_rows: "low"] (
            "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW",
            "DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW"
        )
            |it| spare_rows(it, |rows| rows.low);
        [spare_rows: "none"] (
            "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
            "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"
        )
            |it| spare_rows(it, |rows| rows.none);
    Gauge Bytes "gpumon_gpu_bar1_total_bytes"
        "Size of BAR1, through which the host maps device memory.";
        [] ("DCGM_FI_DEV_BAR1_TOTAL", "DCGM_FI_DEV_BAR1_CAPACITY_BYTES")
            |it| read_part(&it.bar1, |bar1| bar1.total_bytes as f64);
    Gauge Bytes "gpumon_gpu_bar1_used_bytes" "BAR1 memory in use.";
        [] ("DCGM_FI_DEV_BAR1_USED", "DCGM_FI_DEV_BAR1_USED_BYTES")
            |it| read_part(&it.bar1, |bar1| bar1.used_bytes as f64);
    Gauge Bytes "" "BAR1 memory not in use.";
        [] ("DCGM_FI_DEV_BAR1_FREE", "DCGM_FI_DEV_BAR1_FREE_BYTES")
            |it| read_part(&it.bar1, |bar1| (bar1.total_bytes - bar1.used_bytes) as f64);
    Counter Count "gpumon_gpu_pcie_replays_total" "PCIe replays.";
        [] ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL")
            |it| read_number(&it.pcie_replays_total);
    Gauge Count "gpumon_gpu_nvlinks" "Number of NVLinks by state.";
        [state: "up"] () |it| count_links(it, |link| link.active.value() == Some(&true));
        [state: "down"] () |it| count_links(it, |link| link.active.value() == Some(&false));
    Counter Count "gpumon_gpu_nvlink_errors_total" "Errors of all NVLinks by kind.";
        [error: "replay"] (
            "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL"
        )
            |it| sum_link_errors(it, |link| &link.replays_total);
        [error: "recovery"] (
            "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
            "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL"
        )
            |it| sum_link_errors(it, |link| &link.recoveries_total);
        [error: "crc"] ("DCGM_FI_DEV_NVLINK_ERROR_DL_CRC", "DCGM_FI_DEV_NVLINK_CRC_ERROR_TOTAL")
            |it| sum_link_errors(it, |link| &link.crc_errors_total);
    State Count "" "The recovery action that the driver requests before the GPU is used again, \
     as an NVML code.";
        [] ("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_GPU_RECOVERY_ACTION")
            |it| read_part(&it.recovery_action, |action| f64::from(*action as u8));
};

/// Metrics of a board's constant properties.
pub const BOARD_METRICS: &[Metric<Board>] = metrics! { Board;
    Gauge Watts "gpumon_gpu_power_limit_default_watts"
        "The default power limit, which applies after the driver is reset.";
        [] ("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS")
            |it| read_number(&it.power_limits.default_watts);
    Gauge Watts "gpumon_gpu_power_limit_min_watts" "The lowest power limit that can be set.";
        [] ("DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", "DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS")
            |it| read_number(&it.power_limits.min_watts);
    Gauge Watts "gpumon_gpu_power_limit_max_watts" "The highest power limit that can be set.";
        [] ("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS")
            |it| read_number(&it.power_limits.max_watts);
    Gauge Celsius "gpumon_gpu_temperature_threshold_celsius"
        "Temperatures at which the GPU reduces its clocks or switches itself off.";
        [threshold: "slowdown"] (
            "DCGM_FI_DEV_SLOWDOWN_TEMP",
            "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS"
        )
            |it| read_number(&it.thresholds.slowdown_celsius);
        [threshold: "shutdown"] (
            "DCGM_FI_DEV_SHUTDOWN_TEMP",
            "DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS"
        )
            |it| read_number(&it.thresholds.shutdown_celsius);
        [threshold: "gpu_max"] (
            "DCGM_FI_DEV_GPU_MAX_OP_TEMP",
            "DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS"
        )
            |it| read_number(&it.thresholds.gpu_max_celsius);
        [threshold: "memory_max"] (
            "DCGM_FI_DEV_MEM_MAX_OP_TEMP",
            "DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS"
        )
            |it| read_number(&it.thresholds.memory_max_celsius);
    Gauge Megahertz "gpumon_gpu_max_clock_hertz" "Highest clocks.";
        [clock: "sm"] ("DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ")
            |it| read_number(&it.max_clocks.sm_mhz);
        [clock: "graphics"] () |it| read_number(&it.max_clocks.graphics_mhz);
        [clock: "memory"] ("DCGM_FI_DEV_MAX_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ")
            |it| read_number(&it.max_clocks.memory_mhz);
        [clock: "video"] ("DCGM_FI_DEV_MAX_VIDEO_CLOCK", "DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ")
            |it| read_number(&it.max_clocks.video_mhz);
    Gauge Count "gpumon_gpu_pcie_max_generation" "Highest PCIe generation that both board and slot \
                                                  support.";
        [] ("DCGM_FI_DEV_PCIE_MAX_LINK_GEN") |it| read_number(&it.pcie_max_generation);
    Gauge Count "gpumon_gpu_pcie_max_lanes" "Maximum number of PCIe lanes that both board and slot \
                                             support.";
        [] ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH") |it| read_number(&it.pcie_max_width);
};

fn read_number<T: Number>(reading: &Reading<T>) -> Option<f64> {
    reading.value().map(|value| value.to_f64())
}

fn read_part<T>(reading: &Reading<T>, read: impl Fn(&T) -> f64) -> Option<f64> {
    reading.value().map(read)
}

fn used_memory_fraction(gpu: &GpuSample) -> Option<f64> {
    let memory = &gpu.memory;
    let usable = read_number(&memory.total_bytes)? - read_number(&memory.reserved_bytes)?;
    read_number(&memory.used_bytes)
        .filter(|_| usable > 0.0)
        .map(|used| (used / usable).min(1.0))
}

fn nvlink_traffic(gpu: &GpuSample) -> Option<f64> {
    let nvlink = &gpu.nvlink;
    Some(read_number(&nvlink.rx_bytes_per_second)? + read_number(&nvlink.tx_bytes_per_second)?)
}

fn throttle_reason_mask(gpu: &GpuSample) -> Option<f64> {
    read_part(&gpu.throttle_reasons, |reasons| {
        reasons
            .iter()
            .fold(0, |bits, reason| bits | reason.nvml_bit()) as f64
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

fn spare_rows(details: &GpuDetails, read: fn(&SpareRows) -> u32) -> Option<f64> {
    Some(read(details.remapped_rows.value()?.spare.as_ref()?).into())
}

/// Returns the number of links for which `is_so` returns `true`, or `None` if the GPU has no links.
fn count_links(details: &GpuDetails, is_so: fn(&NvLink) -> bool) -> Option<f64> {
    let links = details.nvlinks.value().filter(|links| !links.is_empty())?;
    Some(links.iter().filter(|link| is_so(link)).count() as f64)
}

/// Returns the sum over all links that have the counter, or `None` if no link has the counter.
fn sum_link_errors(details: &GpuDetails, read: fn(&NvLink) -> &Reading<u64>) -> Option<f64> {
    details
        .nvlinks
        .value()?
        .iter()
        .filter_map(|link| read_number(read(link)))
        .reduce(|one, other| one + other)
}
