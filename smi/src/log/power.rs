//! Power of the GPU, its memory and the module that it sits on.

use super::{
    cursor::Cursor,
    format::watts,
    item::{Item, group, value},
    performance::state,
    samples::samples,
    sections::Section,
};

/// Three groups of the same readings, and the GPU's samples.
pub(super) static ITEMS: &[Item] = &[
    group("GPU Power Readings", "gpu_power_readings").about(&[0]).of(Section::POWER).holds(READINGS),
    samples("Power Samples", &[0]).only_of(Section::POWER),
    // With the space behind it.
    group("GPU Memory Power Readings ", "gpu_memory_power_readings").about(&[2]).of(Section::POWER).holds(DRAWS),
    group("Module Power Readings", "module_power_readings").about(&[1]).of(Section::POWER).holds(READINGS),
];

/// `about` is the `nvmlPowerScopeType_t`. The XML repeats the performance state here.
static READINGS: &[Item] = &[
    value("", "power_state", state),
    value("Average Power Draw", "average_power_draw", |at| field(at, 185)),
    value("Instantaneous Power Draw", "instant_power_draw", |at| field(at, 186)),
    value("Current Power Limit", "current_power_limit", |at| field(at, 190)),
    value("Requested Power Limit", "requested_power_limit", |at| field(at, 192)),
    value("Default Power Limit", "default_power_limit", |at| field(at, 189)),
    value("Min Power Limit", "min_power_limit", |at| field(at, 187)),
    value("Max Power Limit", "max_power_limit", |at| field(at, 188)),
];

static DRAWS: &[Item] = &[
    value("Average Power Draw", "average_power_draw", |at| field(at, 185)),
    value("Instantaneous Power Draw", "instant_power_draw", |at| field(at, 186)),
];

/// One of `NVML_FI_DEV_POWER_AVERAGE` and its neighbours, of the scope in `about`.
fn field(at: &Cursor<'_>, id: u32) -> String {
    at.format_field(id, at.argument(0), watts)
}
