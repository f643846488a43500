//! Power of the GPU, its memory and the module that it sits on.

use super::{
    cursor::Cursor,
    format::watts,
    item::{Item, group, scoped_field, value},
    performance::state,
    samples::samples,
    sections::Section,
};
use crate::release::Release;

/// For each scope the readings that it has, and the GPU's samples.
pub(super) static ITEMS: &[Item] = &[
    group("GPU Power Readings", "gpu_power_readings")
        .about(&[0])
        .of(Section::POWER)
        .holds(READINGS)
        .until(DIVIDED),
    group("GPU Power Readings", "gpu_power_readings")
        .about(&[0])
        .of(Section::POWER)
        .holds(DIVIDED_READINGS)
        .since(DIVIDED),
    samples("Power Samples", &[0]).only_of(Section::POWER),
    // With the space behind it.
    group("GPU Memory Power Readings ", "gpu_memory_power_readings")
        .about(&[2])
        .of(Section::POWER)
        .holds(DRAWS),
    group("Module Power Readings", "module_power_readings")
        .about(&[1])
        .of(Section::POWER)
        .holds(READINGS),
];

/// `about` is the `nvmlPowerScopeType_t`. The XML repeats the performance state here.
static READINGS: &[Item] = &[
    value("", "power_state", state),
    value("Average Power Draw", "average_power_draw", |at| {
        field(at, 185)
    }),
    value("Instantaneous Power Draw", "instant_power_draw", |at| {
        field(at, 186)
    }),
    value("Current Power Limit", "current_power_limit", |at| {
        field(at, 190)
    }),
    value("Requested Power Limit", "requested_power_limit", |at| {
        field(at, 192)
    }),
    value("Default Power Limit", "default_power_limit", |at| {
        field(at, 189)
    }),
    value("Min Power Limit", "min_power_limit", |at| field(at, 187)),
    value("Max Power Limit", "max_power_limit", |at| field(at, 188)),
];

/// The release that tells the limit of a GPU and its base power apart.
const DIVIDED: Release = Release(610, 0);

/// As above. The elements of the base power are named as those of the limit are, which is a guess.
static DIVIDED_READINGS: &[Item] = &[
    value("", "power_state", state),
    value("Average Power Draw", "average_power_draw", |at| {
        field(at, 185)
    }),
    value("Instantaneous Power Draw", "instant_power_draw", |at| {
        field(at, 186)
    }),
    group("GPU Ceiling Power Limit", "gpu_ceiling_power_limit").holds(&[
        value("Current Power Limit", "current_power_limit", |at| {
            field(at, 190)
        }),
        value("Requested Power Limit", "requested_power_limit", |at| {
            field(at, 192)
        }),
        value("Default Power Limit", "default_power_limit", |at| {
            field(at, 189)
        }),
    ]),
    group("GPU Base Power", "gpu_base_power").holds(&[
        scoped_field(
            "Current Base Power",
            "current_base_power",
            (190, BASE_POWER),
            watts,
        ),
        scoped_field(
            "Requested Base Power",
            "requested_base_power",
            (192, BASE_POWER),
            watts,
        ),
        scoped_field(
            "Default Base Power",
            "default_base_power",
            (189, BASE_POWER),
            watts,
        ),
    ]),
    value("Min Power Limit", "min_power_limit", |at| field(at, 187)),
    value("Max Power Limit", "max_power_limit", |at| field(at, 188)),
];

/// `NVML_POWER_SCOPE_GPU_BASE`.
const BASE_POWER: u32 = 3;

static DRAWS: &[Item] = &[
    value("Average Power Draw", "average_power_draw", |at| {
        field(at, 185)
    }),
    value("Instantaneous Power Draw", "instant_power_draw", |at| {
        field(at, 186)
    }),
];

/// One of `NVML_FI_DEV_POWER_AVERAGE` and its neighbors, of the scope in `about`.
fn field(at: &Cursor<'_>, id: u32) -> String {
    at.format_field(id, at.argument(0), watts)
}
