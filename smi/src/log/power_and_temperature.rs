//! Items for the power of the GPU, the memory, and the module.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    item::{
        Item, Section, TITLE_AS_TAG, computed_item, field_item, group_item, number_item,
        samples_item,
    },
    performance::format_state,
    value::{Cursor, format_celsius, format_watts},
};
use crate::release::Release;

/// The items for each scope's power readings, and for the GPU's power samples. `about` contains the
/// `nvmlPowerScopeType_t`.
pub(super) static POWER_ITEMS: &[Item] = &[
    group_item("GPU Power Readings", TITLE_AS_TAG)
        .with_numbers(&[GPU])
        .show_in_section(Section::POWER)
        .with_items(READINGS)
        .show_before_release(READINGS_DIVIDED),
    group_item("GPU Power Readings", TITLE_AS_TAG)
        .with_numbers(&[GPU])
        .show_in_section(Section::POWER)
        .with_items(DIVIDED_READINGS)
        .show_since_release(READINGS_DIVIDED),
    samples_item("Power Samples", &[0]).show_only_in_section(Section::POWER),
    // The trailing space is also in nvidia-smi's output.
    group_item("GPU Memory Power Readings ", TITLE_AS_TAG)
        .with_numbers(&[MEMORY])
        .show_in_section(Section::POWER)
        .with_items(&[AVERAGE, INSTANT]),
    group_item("Module Power Readings", TITLE_AS_TAG)
        .with_numbers(&[MODULE])
        .show_in_section(Section::POWER)
        .with_items(READINGS),
];

const GPU: i128 = 0;
const MODULE: i128 = 1;
const MEMORY: i128 = 2;
const GPU_BASE: i128 = 3;

/// The first release that shows a GPU's power limit separately from its base power.
const READINGS_DIVIDED: Release = Release(610, 0);

static READINGS: &[Item] = &[
    STATE, AVERAGE, INSTANT, CURRENT, REQUESTED, DEFAULT, MIN_LIMIT, MAX_LIMIT,
];

static DIVIDED_READINGS: &[Item] = &[
    STATE,
    AVERAGE,
    INSTANT,
    group_item("GPU Ceiling Power Limit", TITLE_AS_TAG).with_items(&[CURRENT, REQUESTED, DEFAULT]),
    // The XML element names are guesses, based on those for the limit.
    group_item("GPU Base Power", TITLE_AS_TAG).with_items(&[
        power_item("Current Base Power", TITLE_AS_TAG, &[190, GPU_BASE]),
        power_item("Requested Base Power", TITLE_AS_TAG, &[192, GPU_BASE]),
        power_item("Default Base Power", TITLE_AS_TAG, &[189, GPU_BASE]),
    ]),
    MIN_LIMIT,
    MAX_LIMIT,
];

/// The item for the performance state, which XML output repeats here.
const STATE: Item = computed_item("", "power_state", format_state);
const AVERAGE: Item = power_item("Average Power Draw", TITLE_AS_TAG, &[185]);
const INSTANT: Item = power_item("Instantaneous Power Draw", "instant_power_draw", &[186]);
const CURRENT: Item = power_item("Current Power Limit", TITLE_AS_TAG, &[190]);
const REQUESTED: Item = power_item("Requested Power Limit", TITLE_AS_TAG, &[192]);
const DEFAULT: Item = power_item("Default Power Limit", TITLE_AS_TAG, &[189]);
const MIN_LIMIT: Item = power_item("Min Power Limit", TITLE_AS_TAG, &[187]);
const MAX_LIMIT: Item = power_item("Max Power Limit", TITLE_AS_TAG, &[188]);

/// Defines a line for one of the power fields, starting with `NVML_FI_DEV_POWER_AVERAGE`. The scope
/// is the second number in `field` if there is one, otherwise the group's scope.
const fn power_item(title: &'static str, tag: &'static str, field: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        let scope = at.argument_at(if at.has_number(2) { 2 } else { 0 });
        at.read_formatted_field(at.argument_at(1), scope, format_watts)
    })
    .with_numbers(field)
}

// Items for temperatures and temperature limits. Newer boards report their limits as margins in
// degrees, and older boards as temperatures.

/// The items for temperatures, their limits, and the range of target temperatures.
pub(super) static TEMPERATURE_ITEMS: &[Item] = &[
    group_item("Temperature", TITLE_AS_TAG)
        .show_in_section(Section::TEMPERATURE)
        .with_items(&[
            number_item(
                "GPU Current Temp",
                "gpu_temp",
                Q::Temperature,
                0,
                format_celsius,
            ),
            number_item(
                "GPU T.Limit Temp",
                "gpu_temp_tlimit",
                Q::MarginTemperature,
                0,
                format_celsius,
            )
            .show_before_release(RELABELED),
            number_item(
                "GPU Current T.Limit Temp",
                "gpu_temp_tlimit",
                Q::MarginTemperature,
                0,
                format_celsius,
            )
            .show_since_release(RELABELED),
            degree_limit_item("GPU Shutdown Temp", "gpu_temp_max_threshold", &[0]),
            margin_limit_item(
                "GPU Shutdown T.Limit Temp",
                "gpu_temp_max_tlimit_threshold",
                SHUTDOWN,
            ),
            degree_limit_item("GPU Slowdown Temp", "gpu_temp_slow_threshold", &[1]),
            margin_limit_item(
                "GPU Slowdown T.Limit Temp",
                "gpu_temp_slow_tlimit_threshold",
                SLOWDOWN,
            ),
            degree_limit_item("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", &[3]),
            margin_limit_item(
                "GPU Max Operating T.Limit Temp",
                "gpu_temp_max_gpu_tlimit_threshold",
                GPU_MAX,
            ),
            computed_item("GPU Target Temperature", TITLE_AS_TAG, format_target)
                .show_before_release(RELABELED),
            computed_item(
                "GPU Target Temperature Specification",
                "gpu_target_temperature",
                format_target,
            )
            .show_since_release(RELABELED),
            field_item(
                "Memory Current Temp",
                "memory_temp",
                MEMORY_TEMPERATURE,
                format_celsius,
            ),
            degree_limit_item(
                "Memory Max Operating Temp",
                "gpu_temp_max_mem_threshold",
                &[2],
            ),
            margin_limit_item(
                "Memory Max Operating T.Limit Temp",
                "gpu_temp_max_mem_tlimit_threshold",
                MEMORY_MAX,
            ),
        ]),
    group_item("Supported GPU_TARGET_TEMP", TITLE_AS_TAG)
        .show_only_in_section(Section::SUPPORTED_GPU_TARGET_TEMP)
        .with_items(&[
            limit_item("Min", "gpu_target_temp_min", &[4]),
            limit_item("Max", "gpu_target_temp_max", &[6]),
        ]),
];

/// The release that renamed the titles. The XML elements are assumed to have kept their names.
const RELABELED: Release = Release(610, 0);

/// The field ID `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY_TEMPERATURE: u32 = 82;
/// The field ID `NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT`.
const SHUTDOWN: u32 = 193;
/// The field ID `NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT`.
const SLOWDOWN: u32 = 194;
/// The field ID `NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT`.
const MEMORY_MAX: u32 = 195;
/// The field ID `NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT`.
const GPU_MAX: u32 = 196;

/// Defines a line for the limit with the given `nvmlTemperatureThresholds_t`.
const fn limit_item(title: &'static str, tag: &'static str, kind: &'static [i128]) -> Item {
    computed_item(title, tag, |at| format_threshold(at, at.argument_at(0))).with_numbers(kind)
}

/// Defines a line for a limit, shown only for boards that report limits as temperatures.
const fn degree_limit_item(title: &'static str, tag: &'static str, kind: &'static [i128]) -> Item {
    limit_item(title, tag, kind).show_when(|at| !uses_margins(at))
}

/// Defines a line for a limit, shown only for boards that report limits as margins.
const fn margin_limit_item(title: &'static str, tag: &'static str, id: u32) -> Item {
    field_item(title, tag, id, format_celsius).show_when(uses_margins)
}

/// Returns `true` if the board reports its limits as margins.
fn uses_margins(at: &Cursor<'_>) -> bool {
    at.read_field(SHUTDOWN, 0).is_ok()
}

fn format_threshold(at: &Cursor<'_>, kind: u32) -> String {
    at.read_formatted(Q::TemperatureThreshold(kind), 0, format_celsius)
}

/// Returns the board's target temperature. The acoustic target takes precedence over the target set
/// by the user.
fn format_target(at: &Cursor<'_>) -> String {
    at.read_number(Q::TemperatureThreshold(5), 0)
        .map_or_else(|_| format_threshold(at, 7), format_celsius)
}
