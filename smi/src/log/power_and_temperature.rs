//! Items for the power of the GPU, the memory, and the module, and for temperatures.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    item::{
        Item, Section, TITLE_AS_TAG, computed_item, field_item, group_item, number_item,
        samples_item,
    },
    performance::format_performance_state,
    value::{Cursor, format_celsius, format_watts},
};
use crate::release::Release;

/// The items for the power readings of the GPU, the memory, and the module, and for the GPU's power
/// samples. `about` contains the scope of the readings, an `nvmlPowerScopeType_t`.
pub(super) static POWER_ITEMS: &[Item] = &[
    group_item("GPU Power Readings", TITLE_AS_TAG, POWER_READINGS)
        .with_position_numbers(&[GPU_SCOPE])
        .show_in_section(Section::POWER)
        .show_before_release(POWER_READINGS_DIVIDED),
    group_item("GPU Power Readings", TITLE_AS_TAG, DIVIDED_POWER_READINGS)
        .with_position_numbers(&[GPU_SCOPE])
        .show_in_section(Section::POWER)
        .show_since_release(POWER_READINGS_DIVIDED),
    samples_item("Power Samples", &[0]).show_only_in_section(Section::POWER),
    // The trailing space is also in nvidia-smi's output.
    group_item(
        "GPU Memory Power Readings ",
        TITLE_AS_TAG,
        &[AVERAGE_POWER, INSTANT_POWER],
    )
    .with_position_numbers(&[MEMORY_SCOPE])
    .show_in_section(Section::POWER),
    group_item("Module Power Readings", TITLE_AS_TAG, POWER_READINGS)
        .with_position_numbers(&[MODULE_SCOPE])
        .show_in_section(Section::POWER),
];

const GPU_SCOPE: i128 = 0;
const MODULE_SCOPE: i128 = 1;
const MEMORY_SCOPE: i128 = 2;
const BASE_SCOPE: i128 = 3;

/// The first release that shows a GPU's power limit separately from its base power.
const POWER_READINGS_DIVIDED: Release = Release(610, 0);

static POWER_READINGS: &[Item] = &[
    PERFORMANCE_STATE,
    AVERAGE_POWER,
    INSTANT_POWER,
    CURRENT_LIMIT,
    REQUESTED_LIMIT,
    DEFAULT_LIMIT,
    MIN_LIMIT,
    MAX_LIMIT,
];

static DIVIDED_POWER_READINGS: &[Item] = &[
    PERFORMANCE_STATE,
    AVERAGE_POWER,
    INSTANT_POWER,
    group_item(
        "GPU Ceiling Power Limit",
        TITLE_AS_TAG,
        &[CURRENT_LIMIT, REQUESTED_LIMIT, DEFAULT_LIMIT],
    ),
    // The XML element names are guesses, based on those for the limit.
    group_item(
        "GPU Base Power",
        TITLE_AS_TAG,
        &[
            power_item("Current Base Power", TITLE_AS_TAG, &[190, BASE_SCOPE]),
            power_item("Requested Base Power", TITLE_AS_TAG, &[192, BASE_SCOPE]),
            power_item("Default Base Power", TITLE_AS_TAG, &[189, BASE_SCOPE]),
        ],
    ),
    MIN_LIMIT,
    MAX_LIMIT,
];

/// The item for the performance state. XML output repeats it among the power readings.
const PERFORMANCE_STATE: Item = computed_item("", "power_state", format_performance_state);
const AVERAGE_POWER: Item = power_item("Average Power Draw", TITLE_AS_TAG, &[185]);
const INSTANT_POWER: Item = power_item("Instantaneous Power Draw", "instant_power_draw", &[186]);
const CURRENT_LIMIT: Item = power_item("Current Power Limit", TITLE_AS_TAG, &[190]);
const REQUESTED_LIMIT: Item = power_item("Requested Power Limit", TITLE_AS_TAG, &[192]);
const DEFAULT_LIMIT: Item = power_item("Default Power Limit", TITLE_AS_TAG, &[189]);
const MIN_LIMIT: Item = power_item("Min Power Limit", TITLE_AS_TAG, &[187]);
const MAX_LIMIT: Item = power_item("Max Power Limit", TITLE_AS_TAG, &[188]);

/// Defines a line for one of the power fields, starting with `NVML_FI_DEV_POWER_AVERAGE`. The scope
/// is the second number in `field` if there is one, otherwise the group's scope.
const fn power_item(title: &'static str, tag: &'static str, field: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        let scope = at.argument_at(if at.has_number(2) { 2 } else { 0 });
        at.read_formatted(Q::Field(at.argument_at(1), scope), 0, format_watts)
    })
    .with_position_numbers(field)
}

// Temperatures and their limits. Newer boards report their limits as margins in degrees, and older
// boards as temperatures.

/// The items for temperatures, their limits, and the range of target temperatures.
pub(super) static TEMPERATURE_ITEMS: &[Item] = &[
    group_item(
        "Temperature",
        TITLE_AS_TAG,
        &[
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
            .show_before_release(TEMPERATURES_RELABELED),
            number_item(
                "GPU Current T.Limit Temp",
                "gpu_temp_tlimit",
                Q::MarginTemperature,
                0,
                format_celsius,
            )
            .show_since_release(TEMPERATURES_RELABELED),
            degree_limit_item("GPU Shutdown Temp", "gpu_temp_max_threshold", &[0]),
            margin_limit_item(
                "GPU Shutdown T.Limit Temp",
                "gpu_temp_max_tlimit_threshold",
                SHUTDOWN_MARGIN,
            ),
            degree_limit_item("GPU Slowdown Temp", "gpu_temp_slow_threshold", &[1]),
            margin_limit_item(
                "GPU Slowdown T.Limit Temp",
                "gpu_temp_slow_tlimit_threshold",
                SLOWDOWN_MARGIN,
            ),
            degree_limit_item("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", &[3]),
            margin_limit_item(
                "GPU Max Operating T.Limit Temp",
                "gpu_temp_max_gpu_tlimit_threshold",
                GPU_MAX_MARGIN,
            ),
            computed_item(
                "GPU Target Temperature",
                TITLE_AS_TAG,
                format_target_temperature,
            )
            .show_before_release(TEMPERATURES_RELABELED),
            computed_item(
                "GPU Target Temperature Specification",
                "gpu_target_temperature",
                format_target_temperature,
            )
            .show_since_release(TEMPERATURES_RELABELED),
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
                MEMORY_MAX_MARGIN,
            ),
        ],
    )
    .show_in_section(Section::TEMPERATURE),
    group_item(
        "Supported GPU_TARGET_TEMP",
        TITLE_AS_TAG,
        &[
            temperature_limit_item("Min", "gpu_target_temp_min", &[4]),
            temperature_limit_item("Max", "gpu_target_temp_max", &[6]),
        ],
    )
    .show_only_in_section(Section::SUPPORTED_GPU_TARGET_TEMP),
];

/// The release that renamed the titles. The XML elements are assumed to have kept their names.
const TEMPERATURES_RELABELED: Release = Release(610, 0);

/// The field ID `NVML_FI_DEV_MEMORY_TEMP`.
const MEMORY_TEMPERATURE: u32 = 82;
/// The field ID `NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT`.
const SHUTDOWN_MARGIN: u32 = 193;
/// The field ID `NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT`.
const SLOWDOWN_MARGIN: u32 = 194;
/// The field ID `NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT`.
const MEMORY_MAX_MARGIN: u32 = 195;
/// The field ID `NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT`.
const GPU_MAX_MARGIN: u32 = 196;

/// Defines a line for the limit with the given `nvmlTemperatureThresholds_t`.
const fn temperature_limit_item(
    title: &'static str,
    tag: &'static str,
    kind: &'static [i128],
) -> Item {
    computed_item(title, tag, |at| format_threshold(at, at.argument_at(0)))
        .with_position_numbers(kind)
}

/// Defines a line for a limit, shown only for boards that report limits as temperatures.
const fn degree_limit_item(title: &'static str, tag: &'static str, kind: &'static [i128]) -> Item {
    temperature_limit_item(title, tag, kind).show_when(|at| !uses_margins(at))
}

/// Defines a line for a limit, shown only for boards that report limits as margins.
const fn margin_limit_item(title: &'static str, tag: &'static str, id: u32) -> Item {
    field_item(title, tag, id, format_celsius).show_when(uses_margins)
}

/// Returns `true` if the board reports its limits as margins.
fn uses_margins(at: &Cursor<'_>) -> bool {
    at.read_number(Q::Field(SHUTDOWN_MARGIN, 0), 0).is_ok()
}

fn format_threshold(at: &Cursor<'_>, kind: u32) -> String {
    at.read_formatted(Q::TemperatureThreshold(kind), 0, format_celsius)
}

/// Returns the board's target temperature. The acoustic target takes precedence over the target set
/// by the user.
fn format_target_temperature(at: &Cursor<'_>) -> String {
    at.read_number(Q::TemperatureThreshold(5), 0)
        .map_or_else(|_| format_threshold(at, 7), format_celsius)
}
