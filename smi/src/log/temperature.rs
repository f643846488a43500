//! Temperatures and their limits. Newer boards report limits as margins in degrees, older boards as
//! temperatures.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Cursor,
    format::celsius,
    item::{Item, SAME, field, group, number, value},
    sections::Section,
};
use crate::release::Release;

/// The temperatures, their limits, and the range of target temperatures.
pub(super) static ITEMS: &[Item] = &[
    group("Temperature", SAME).of(Section::TEMPERATURE).holds(&[
        number("GPU Current Temp", "gpu_temp", Q::Temperature, 0, celsius),
        number(
            "GPU T.Limit Temp",
            "gpu_temp_tlimit",
            Q::MarginTemperature,
            0,
            celsius,
        )
        .until(RELABELED),
        number(
            "GPU Current T.Limit Temp",
            "gpu_temp_tlimit",
            Q::MarginTemperature,
            0,
            celsius,
        )
        .since(RELABELED),
        limit_in_degrees("GPU Shutdown Temp", "gpu_temp_max_threshold", &[0]),
        limit_as_margin(
            "GPU Shutdown T.Limit Temp",
            "gpu_temp_max_tlimit_threshold",
            SHUTDOWN,
        ),
        limit_in_degrees("GPU Slowdown Temp", "gpu_temp_slow_threshold", &[1]),
        limit_as_margin(
            "GPU Slowdown T.Limit Temp",
            "gpu_temp_slow_tlimit_threshold",
            SLOWDOWN,
        ),
        limit_in_degrees("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", &[3]),
        limit_as_margin(
            "GPU Max Operating T.Limit Temp",
            "gpu_temp_max_gpu_tlimit_threshold",
            GPU_MAX,
        ),
        value("GPU Target Temperature", SAME, target).until(RELABELED),
        value(
            "GPU Target Temperature Specification",
            "gpu_target_temperature",
            target,
        )
        .since(RELABELED),
        field("Memory Current Temp", "memory_temp", MEMORY, celsius),
        limit_in_degrees(
            "Memory Max Operating Temp",
            "gpu_temp_max_mem_threshold",
            &[2],
        ),
        limit_as_margin(
            "Memory Max Operating T.Limit Temp",
            "gpu_temp_max_mem_tlimit_threshold",
            MEMORY_MAX,
        ),
    ]),
    group("Supported GPU_TARGET_TEMP", SAME)
        .only_of(Section::SUPPORTED_GPU_TARGET_TEMP)
        .holds(&[
            limit("Min", "gpu_target_temp_min", &[4]),
            limit("Max", "gpu_target_temp_max", &[6]),
        ]),
];

/// The release that renamed the titles. That their elements kept their names is a guess.
const RELABELED: Release = Release(610, 0);

/// The ID of the NVML field `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY: u32 = 82;
/// The ID of the NVML field `NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT`.
const SHUTDOWN: u32 = 193;
/// The ID of the NVML field `NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT`.
const SLOWDOWN: u32 = 194;
/// The ID of the NVML field `NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT`.
const MEMORY_MAX: u32 = 195;
/// The ID of the NVML field `NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT`.
const GPU_MAX: u32 = 196;

/// Defines a line with the limit of an `nvmlTemperatureThresholds_t`.
const fn limit(title: &'static str, tag: &'static str, kind: &'static [i128]) -> Item {
    value(title, tag, |at| threshold(at, at.argument(0))).about(kind)
}

/// Defines a line with a limit of boards that report temperatures.
const fn limit_in_degrees(title: &'static str, tag: &'static str, kind: &'static [i128]) -> Item {
    limit(title, tag, kind).when(|at| !by_margin(at))
}

/// Defines a line with a limit of boards that report margins.
const fn limit_as_margin(title: &'static str, tag: &'static str, id: u32) -> Item {
    field(title, tag, id, celsius).when(by_margin)
}

/// Returns `true` if the board reports its limits as margins.
fn by_margin(at: &Cursor<'_>) -> bool {
    at.field(SHUTDOWN, 0).is_ok()
}

fn threshold(at: &Cursor<'_>, kind: u32) -> String {
    at.format(Q::TemperatureThreshold(kind), 0, celsius)
}

/// Returns the board's target temperature: that for acoustics, or else the one that was requested.
fn target(at: &Cursor<'_>) -> String {
    at.number(Q::TemperatureThreshold(5), 0)
        .map_or_else(|_| threshold(at, 7), celsius)
}
