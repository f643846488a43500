//! Temperatures and their limits. Newer boards give limits as degrees that are left, older ones as degrees.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Cursor,
    format::celsius,
    item::{Item, field, group, number, value},
    sections::Section,
};
use crate::release::Release;

/// Readings and limits, and the range of what can be aimed at.
pub(super) static ITEMS: &[Item] = &[
    group("Temperature", "temperature")
        .of(Section::TEMPERATURE)
        .holds(&[
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
            value("GPU Shutdown Temp", "gpu_temp_max_threshold", |at| {
                threshold(at, 0)
            })
            .when(|at| !by_margin(at)),
            field(
                "GPU Shutdown T.Limit Temp",
                "gpu_temp_max_tlimit_threshold",
                SHUTDOWN,
                celsius,
            )
            .when(by_margin),
            value("GPU Slowdown Temp", "gpu_temp_slow_threshold", |at| {
                threshold(at, 1)
            })
            .when(|at| !by_margin(at)),
            field(
                "GPU Slowdown T.Limit Temp",
                "gpu_temp_slow_tlimit_threshold",
                SLOWDOWN,
                celsius,
            )
            .when(by_margin),
            value(
                "GPU Max Operating Temp",
                "gpu_temp_max_gpu_threshold",
                |at| threshold(at, 3),
            )
            .when(|at| !by_margin(at)),
            field(
                "GPU Max Operating T.Limit Temp",
                "gpu_temp_max_gpu_tlimit_threshold",
                GPU_MAX,
                celsius,
            )
            .when(by_margin),
            value("GPU Target Temperature", "gpu_target_temperature", target).until(RELABELED),
            value(
                "GPU Target Temperature Specification",
                "gpu_target_temperature",
                target,
            )
            .since(RELABELED),
            field("Memory Current Temp", "memory_temp", MEMORY, celsius),
            value(
                "Memory Max Operating Temp",
                "gpu_temp_max_mem_threshold",
                |at| threshold(at, 2),
            )
            .when(|at| !by_margin(at)),
            field(
                "Memory Max Operating T.Limit Temp",
                "gpu_temp_max_mem_tlimit_threshold",
                MEMORY_MAX,
                celsius,
            )
            .when(by_margin),
        ]),
    group("Supported GPU_TARGET_TEMP", "supported_gpu_target_temp")
        .only_of(Section::SUPPORTED_GPU_TARGET_TEMP)
        .holds(&[
            value("Min", "gpu_target_temp_min", |at| threshold(at, 4)),
            value("Max", "gpu_target_temp_max", |at| threshold(at, 6)),
        ]),
];

/// The release that calls readings otherwise. That their elements kept their names is a guess.
const RELABELED: Release = Release(610, 0);

/// `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY: u32 = 82;
/// `NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT`.
const SHUTDOWN: u32 = 193;
/// `NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT`.
const SLOWDOWN: u32 = 194;
/// `NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT`.
const MEMORY_MAX: u32 = 195;
/// `NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT`.
const GPU_MAX: u32 = 196;

/// Whether the board gives its limits as degrees that are left.
fn by_margin(at: &Cursor<'_>) -> bool {
    at.field(SHUTDOWN, 0).is_ok()
}

/// The limit of this `nvmlTemperatureThresholds_t`.
fn threshold(at: &Cursor<'_>, kind: u32) -> String {
    at.format(Q::TemperatureThreshold(kind), 0, celsius)
}

/// What the board aims at, by its noise or else by what was asked for.
fn target(at: &Cursor<'_>) -> String {
    at.number(Q::TemperatureThreshold(5), 0)
        .map_or_else(|_| threshold(at, 7), celsius)
}
