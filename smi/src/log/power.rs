//! Power of the GPU, its memory and the module that it sits on.

use super::{
    format::watts,
    item::{Item, SAME, group, value},
    performance::state,
    samples::samples,
    sections::Section,
};
use crate::release::Release;

/// For each scope the readings that it has, and the GPU's samples. `about` is the
/// `nvmlPowerScopeType_t`.
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
    // With the space behind it.
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

/// The release that tells the limit of a GPU and its base power apart.
const DIVIDED: Release = Release(610, 0);

static READINGS: &[Item] = &[
    STATE, AVERAGE, INSTANT, CURRENT, REQUESTED, DEFAULT, LEAST, MOST,
];

static DIVIDED_READINGS: &[Item] = &[
    STATE,
    AVERAGE,
    INSTANT,
    group("GPU Ceiling Power Limit", SAME).holds(&[CURRENT, REQUESTED, DEFAULT]),
    // The elements are named as those of the limit are, which is a guess.
    group("GPU Base Power", SAME).holds(&[
        power_reading("Current Base Power", SAME, &[190, GPU_BASE]),
        power_reading("Requested Base Power", SAME, &[192, GPU_BASE]),
        power_reading("Default Base Power", SAME, &[189, GPU_BASE]),
    ]),
    LEAST,
    MOST,
];

/// The XML repeats the performance state here.
const STATE: Item = value("", "power_state", state);
const AVERAGE: Item = power_reading("Average Power Draw", SAME, &[185]);
const INSTANT: Item = power_reading("Instantaneous Power Draw", "instant_power_draw", &[186]);
const CURRENT: Item = power_reading("Current Power Limit", SAME, &[190]);
const REQUESTED: Item = power_reading("Requested Power Limit", SAME, &[192]);
const DEFAULT: Item = power_reading("Default Power Limit", SAME, &[189]);
const LEAST: Item = power_reading("Min Power Limit", SAME, &[187]);
const MOST: Item = power_reading("Max Power Limit", SAME, &[188]);

/// One of `NVML_FI_DEV_POWER_AVERAGE` and its neighbors; of the scope behind it, or else of the
/// group's.
const fn power_reading(title: &'static str, tag: &'static str, field: &'static [i128]) -> Item {
    value(title, tag, |at| {
        let scope = at.argument(if at.has_number(2) { 2 } else { 0 });
        at.format_field(at.argument(1), scope, watts)
    })
    .about(field)
}
