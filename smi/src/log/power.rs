//! Items for the power of the GPU, the memory, and the module.

use super::{
    format::format_watts,
    item::{Item, TITLE_AS_TAG, computed_item, group_item},
    performance::format_state,
    samples::samples_item,
    sections::Section,
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
