//! Power smoothing, which keeps what a rack draws from jumping.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Cell, enabled, milliwatts, number, two_places, yes};
use super::super::field::{Field, Section, field, titled};
use super::super::row::Row;
use crate::release::{BRANCH_595, Release};

/// The scope by which `NVML_FI_PWR_SMOOTHING_PROFILE_*` are about the profile in use; 0 to 4 are the presets.
const PROFILE_IN_USE: u32 = 5;

/// `NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`.
const NOT_SET: i128 = u32::MAX as i128;

pub(super) const SECTIONS: &[Section<()>] = &[titled(
    "power_smoothing",
    "Power smoothing keeps what a rack draws from jumping: the GPU draws at least a floor, and changes within limits.",
    &[
        since_610("power_smoothing.tmp_floor [W]", |row| two_places(own::<255>(row)))
            .about("The TMP floor that holds, in watts."),
        since_610("power_smoothing.tmp_ceil [W]", |row| two_places(own::<254>(row)))
            .about("The TMP ceiling that holds, in watts."),
        since_610("power_smoothing.hw_lifetime_remaining_percent [%]", |row| two_places(own::<258>(row)))
            .about("Percent of its life that the circuit for power smoothing has left."),
        since_610("power_smoothing.enabled", |row| yes(own::<251>(row), 0))
            .about("Whether power is smoothed (Yes/No)."),
        delayed("power_smoothing.delayed_power_smoothing_supported", |row| yes(own::<280>(row), 0))
            .about("Whether the GPU can smooth with a delay (Yes/No)."),
        since_610("power_smoothing.soc_power_smoothing_enabled", |row| enabled(own::<300>(row), 0))
            .about("Whether power is smoothed by the state of charge of the rack's energy storage (Enabled/Disabled)."),
        since_610("power_smoothing.priv_level", |row| number(own::<252>(row), 0))
            .about("The level of privilege that the host has for power smoothing."),
        since_610("power_smoothing.imm_ramp_down", |row| enabled(own::<253>(row), 0))
            .about("Whether power may fall at once (Enabled/Disabled)."),
        since_610("power_smoothing.max_percent_tmp_floor [%]", |row| two_places(own::<256>(row)))
            .about("The highest TMP floor that can be set, in percent."),
        since_610("power_smoothing.min_percent_tmp_floor [%]", |row| two_places(own::<257>(row)))
            .about("The lowest TMP floor that can be set, in percent."),
        delayed("power_smoothing.primary_power_floor [W]", |row| two_places(own::<275>(row)))
            .about("The primary floor of power smoothing, in watts."),
        delayed("power_smoothing.secondary_power_floor [W]", |row| two_places(own::<276>(row)))
            .about("The secondary floor of power smoothing, in watts."),
        delayed("power_smoothing.min_primary_floor_activation_offset [W]", |row| two_places(own::<277>(row)))
            .about("The lowest offset at which the primary floor can be made to come into force, in watts."),
        delayed("power_smoothing.min_primary_floor_activation_point [W]", |row| two_places(own::<278>(row)))
            .about("The lowest power at which the primary floor can come into force, in watts."),
        delayed("power_smoothing.window_multiplier [ms]", |row| number(own::<279>(row), 0))
            .about("What the multipliers of windows are counted in, in ms."),
        since_610("power_smoothing.num_preset_profiles", |row| number(own::<259>(row), 0))
            .about("How many preset profiles there are."),
        since_610("power_smoothing.curr_profile.percent_tmp_floor [%]", |row| two_places(of_profile::<260>(row)))
            .about("The TMP floor of the profile in use, in percent."),
        since_610("power_smoothing.curr_profile.ramp_up_rate [W/s]", |row| milliwatts(of_profile::<261>(row), 0))
            .about("How fast power may rise in the profile in use, in watts per second."),
        since_610("power_smoothing.curr_profile.ramp_down_rate [W/s]", |row| milliwatts(of_profile::<262>(row), 0))
            .about("How fast power may fall in the profile in use, in watts per second."),
        since_610("power_smoothing.curr_profile.ramp_down_hysteresis [ms]", |row| number(of_profile::<263>(row), 0))
            .about("For how long load must be low before power falls, in the profile in use, in ms."),
        delayed("power_smoothing.curr_profile.secondary_power_floor [W]", |row| two_places(of_profile::<281>(row)))
            .about("The secondary floor of the profile in use, in watts."),
        delayed("power_smoothing.curr_profile.primary_floor_act_window_multiplier", |row| {
            number(of_profile::<282>(row), 0)
        })
        .about("The length of the window that brings the primary floor into force, in the profile in use."),
        delayed("power_smoothing.curr_profile.primary_floor_tar_window_multiplier", |row| {
            number(of_profile::<283>(row), 0)
        })
        .about("The length of the window that sets the primary floor, in the profile in use."),
        delayed("power_smoothing.curr_profile.primary_floor_act_offset [W]", |row| two_places(of_profile::<284>(row)))
            .about("The offset at which the primary floor comes into force, in the profile in use, in watts."),
        since_610("power_smoothing.active_profile", |row| number(own::<264>(row), 0))
            .about("The number of the preset profile in use."),
        since_610("power_smoothing.admin_override.percent_tmp_floor [%]", |row| two_places(set::<265>(row)))
            .about("The TMP floor that an administrator has set instead of the profile's, in percent."),
        since_610("power_smoothing.admin_override.ramp_up_rate [W/s]", |row| milliwatts(set::<266>(row), 0)).about(
            "How fast power may rise, where an administrator has set it instead of the profile, in watts per second.",
        ),
        since_610("power_smoothing.admin_override.ramp_down_rate [W/s]", |row| milliwatts(set::<267>(row), 0)).about(
            "How fast power may fall, where an administrator has set it instead of the profile, in watts per second.",
        ),
        since_610("power_smoothing.admin_override.ramp_down_hysteresis [ms]", |row| number(set::<268>(row), 0)).about(
            "For how long load must be low before power falls, where an administrator has set it instead of the \
             profile, in ms.",
        ),
        delayed("power_smoothing.admin_override.secondary_power_floor [W]", |row| two_places(set::<285>(row)))
            .about("The secondary floor that an administrator has set instead of the profile's, in watts."),
        delayed("power_smoothing.admin_override.primary_floor_act_window_multiplier", |row| {
            number(set::<286>(row), 0)
        })
        .about(
            "The length that an administrator has set instead of the profile's, of the window that brings the primary \
             floor into force.",
        ),
        delayed("power_smoothing.admin_override.primary_floor_tar_window_multiplier", |row| {
            number(set::<287>(row), 0)
        })
        .about(
            "The length that an administrator has set instead of the profile's, of the window that sets the primary \
             floor.",
        ),
        delayed("power_smoothing.admin_override.primary_floor_act_offset [W]", |row| two_places(set::<288>(row))).about(
            "The offset that an administrator has set instead of the profile's, at which the primary floor comes into \
             force, in watts.",
        ),
    ],
)
.since(Release(610, 0))];

const fn since_610(spec: &'static str, cell: fn(&Row<'_, ()>) -> Cell) -> Field<()> {
    field(spec, cell).since(Release(610, 0))
}

/// A field of smoothing with a delay.
const fn delayed(spec: &'static str, cell: fn(&Row<'_, ()>) -> Cell) -> Field<()> {
    field(spec, cell).except(BRANCH_595)
}

fn own<const FIELD: u32>(row: &Row<'_, ()>) -> Answer {
    row.ask(Q::Field(FIELD, 0))
}

fn of_profile<const FIELD: u32>(row: &Row<'_, ()>) -> Answer {
    row.ask(Q::Field(FIELD, PROFILE_IN_USE))
}

/// What an administrator has set, if anything.
fn set<const FIELD: u32>(row: &Row<'_, ()>) -> Answer {
    own::<FIELD>(row).and_then(|value| {
        if value.at(0) == Some(NOT_SET) {
            Err(Code::NOT_SUPPORTED)
        } else {
            Ok(value)
        }
    })
}
