//! The power of the GPU, its memory and its module.

use super::{
    format::watts,
    item::{Item, SAME, group, value},
    performance::state,
    samples::samples,
    sections::Section,
};
use crate::release::Release;

/// The readings of each scope, and the GPU's power samples. `about` has the `nvmlPowerScopeType_t`.
pub(super) static ITEMS: &[Item] = &[
    group("GPU Power Readings", SAME)
        .about(&[GPU])
        .of(Section::POWER)
        .holds(READINGS)
        .until(DIVIDED),
    group("GPU Power Readings", SAME)
        .about(&[GPU])
        .of(Section::POWER)
        .holds(DIVIDED_READINGS)
        .since(DIVIDED),
    samples("Power Samples", &[0]).only_of(Section::POWER),
    // nvidia-smi prints this title with a trailing space.
    group("GPU Memory Power Readings ", SAME)
        .about(&[MEMORY])
        .of(Section::POWER)
        .holds(&[AVERAGE, INSTANT]),
    group("Module Power Readings", SAME)
        .about(&[MODULE])
        .of(Section::POWER)
        .holds(READINGS),
];

const GPU: i128 = 0;
const MODULE: i128 = 1;
const MEMORY: i128 = 2;
const GPU_BASE: i128 = 3;

/// The first release that distinguishes the power limit of a GPU from its base power.
const DIVIDED: Release = Release(610, 0);

static READINGS: &[Item] = &[
    STATE, AVERAGE, INSTANT, CURRENT, REQUESTED, DEFAULT, LEAST, MOST,
];

static DIVIDED_READINGS: &[Item] = &[
    STATE,
    AVERAGE,
    INSTANT,
    group("GPU Ceiling Power Limit", SAME).holds(&[CURRENT, REQUESTED, DEFAULT]),
    // The names of the elements are guessed from those of the limit.
    group("GPU Base Power", SAME).holds(&[
        power_reading("Current Base Power", SAME, &[190, GPU_BASE]),
        power_reading("Requested Base Power", SAME, &[192, GPU_BASE]),
        power_reading("Default Base Power", SAME, &[189, GPU_BASE]),
    ]),
    LEAST,
    MOST,
];

/// The performance state, which the XML repeats here.
const STATE: Item = value("", "power_state", state);
const AVERAGE: Item = power_reading("Average Power Draw", SAME, &[185]);
const INSTANT: Item = power_reading("Instantaneous Power Draw", "instant_power_draw", &[186]);
const CURRENT: Item = power_reading("Current Power Limit", SAME, &[190]);
const REQUESTED: Item = power_reading("Requested Power Limit", SAME, &[192]);
const DEFAULT: Item = power_reading("Default Power Limit", SAME, &[189]);
const LEAST: Item = power_reading("Min Power Limit", SAME, &[187]);
const MOST: Item = power_reading("Max Power Limit", SAME, &[188]);

/// Defines a line with one of the fields from `NVML_FI_DEV_POWER_AVERAGE` on. The scope is the
/// second number of `field`, or else that of the group.
const fn power_reading(title: &'static str, tag: &'static str, field: &'static [i128]) -> Item {
    value(title, tag, |at| {
        let scope = at.argument(if at.has_number(2) { 2 } else { 0 });
        at.format_field(at.argument(1), scope, watts)
    })
    .about(field)
}
