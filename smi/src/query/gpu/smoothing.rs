//! Power smoothing, which keeps what a rack draws from jumping.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Absent, Cell, at, hundredths, number, yes};
use super::super::field::{Section, field, untitled};
use super::super::row::Row;

/// The scope by which `NVML_FI_PWR_SMOOTHING_PROFILE_*` are about the profile in use; 0 to 4 are the presets.
const PROFILE_IN_USE: u32 = 5;

/// `NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`.
const NOT_SET: i128 = u32::MAX as i128;

pub(super) const SECTIONS: &[Section<()>] = &[untitled(&[
    field("power_smoothing.delayed_power_smoothing_supported", |row| yes(row.ask(Q::Field(280, 0)), 0))
        .about("Whether the GPU can smooth with a delay (Yes/No)."),
    field("power_smoothing.primary_power_floor [W]", watts::<275>)
        .about("The primary floor of power smoothing, in watts."),
    field("power_smoothing.secondary_power_floor [W]", watts::<276>)
        .about("The secondary floor of power smoothing, in watts."),
    field("power_smoothing.min_primary_floor_activation_offset [W]", watts::<277>)
        .about("The lowest offset at which the primary floor can be made to come into force, in watts."),
    field("power_smoothing.min_primary_floor_activation_point [W]", watts::<278>)
        .about("The lowest power at which the primary floor can come into force, in watts."),
    field("power_smoothing.window_multiplier [ms]", |row| number(row.ask(Q::Field(279, 0)), 0))
        .about("What the multipliers of windows are counted in, in ms."),
    field("power_smoothing.curr_profile.secondary_power_floor [W]", watts_of_profile::<281>)
        .about("The secondary floor of the profile in use, in watts."),
    field("power_smoothing.curr_profile.primary_floor_act_window_multiplier", of_profile::<282>)
        .about("The length of the window that brings the primary floor into force, in the profile in use."),
    field("power_smoothing.curr_profile.primary_floor_tar_window_multiplier", of_profile::<283>)
        .about("The length of the window that sets the primary floor, in the profile in use."),
    field("power_smoothing.curr_profile.primary_floor_act_offset [W]", watts_of_profile::<284>)
        .about("The offset at which the primary floor comes into force, in the profile in use, in watts."),
    field("power_smoothing.admin_override.secondary_power_floor [W]", watts::<285>)
        .about("The secondary floor that an administrator has set instead of the profile's, in watts."),
    field("power_smoothing.admin_override.primary_floor_act_window_multiplier", set::<286>).about(
        "The length that an administrator has set instead of the profile's, of the window that brings the primary \
         floor into force.",
    ),
    field("power_smoothing.admin_override.primary_floor_tar_window_multiplier", set::<287>).about(
        "The length that an administrator has set instead of the profile's, of the window that sets the primary floor.",
    ),
    field("power_smoothing.admin_override.primary_floor_act_offset [W]", watts::<288>).about(
        "The offset that an administrator has set instead of the profile's, at which the primary floor comes into \
         force, in watts.",
    ),
])];

fn watts<const FIELD: u32>(row: &Row<'_, ()>) -> Cell {
    hundredths(row.ask(Q::Field(FIELD, 0)))
}

fn watts_of_profile<const FIELD: u32>(row: &Row<'_, ()>) -> Cell {
    hundredths(row.ask(Q::Field(FIELD, PROFILE_IN_USE)))
}

fn of_profile<const FIELD: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::Field(FIELD, PROFILE_IN_USE)), 0)
}

/// What an administrator has set, if anything.
fn set<const FIELD: u32>(row: &Row<'_, ()>) -> Cell {
    match at(row.ask(Q::Field(FIELD, 0)), 0)? {
        NOT_SET => Err(Absent::not_available()),
        value => Ok(value.to_string()),
    }
}
