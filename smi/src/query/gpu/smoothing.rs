//! Fields for power smoothing, which limits sudden changes in a rack's power draw.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use crate::{
    query::{
        cell::{format_decimal, format_enabled, format_number, format_watts, format_yes_no},
        table::{Section, field, with_title},
    },
    release::{BRANCH_595, Release},
};

/// The scope of `NVML_FI_PWR_SMOOTHING_PROFILE_*` that selects the profile in use. Scopes 0 to 4
/// select the preset profiles.
const IN_USE: u32 = 5;

/// The value of `NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`.
const NOT_SET: i128 = u32::MAX as i128;

/// Defines a power smoothing field. `$field` and `$scope` are the ID and scope of the NVML field.
macro_rules! smoothing {
    ($name:literal, $field:literal, $scope:expr, $format:expr, $about:literal $(,)?) => {
        field(
            concat!("power_smoothing.", $name),
            Q::Field($field, $scope),
            $format,
            $about,
        )
    };
}

macro_rules! since_610 {
    ($($field:tt)*) => { smoothing!($($field)*).since(Release(610, 0)) };
}

/// Defines a power smoothing field whose value is a delay.
macro_rules! delayed {
    ($($field:tt)*) => { smoothing!($($field)*).except(BRANCH_595) };
}

pub(super) const SMOOTHING_SECTIONS: &[Section] = &[with_title(
    "power_smoothing",
    "Power smoothing limits sudden changes in a rack's power draw: the power of the GPU stays \
     above a floor, and rises and falls at limited rates.",
    &[
        since_610!(
            "tmp_floor [W]",
            255,
            0,
            format_decimal,
            "The power floor in effect (TMP floor), in watts.",
        ),
        since_610!(
            "tmp_ceil [W]",
            254,
            0,
            format_decimal,
            "The power ceiling in effect (TMP ceiling), in watts.",
        ),
        since_610!(
            "hw_lifetime_remaining_percent [%]",
            258,
            0,
            format_decimal,
            "The remaining lifetime of the power smoothing circuit, in percent.",
        ),
        since_610!(
            "enabled",
            251,
            0,
            format_yes_no::<0>,
            "Whether power smoothing is enabled (Yes/No).",
        ),
        delayed!(
            "delayed_power_smoothing_supported",
            280,
            0,
            format_yes_no::<0>,
            "Whether the GPU supports delayed power smoothing (Yes/No).",
        ),
        since_610!(
            "soc_power_smoothing_enabled",
            300,
            0,
            format_enabled::<0>,
            "Whether power smoothing depends on the state of charge of the rack's energy storage \
             (Enabled/Disabled).",
        ),
        since_610!(
            "priv_level",
            252,
            0,
            format_number::<0>,
            "The privilege level of the host for power smoothing.",
        ),
        since_610!(
            "imm_ramp_down",
            253,
            0,
            format_enabled::<0>,
            "Whether power may drop immediately (Enabled/Disabled).",
        ),
        since_610!(
            "max_percent_tmp_floor [%]",
            256,
            0,
            format_decimal,
            "The highest power floor (TMP floor) that can be set, in percent.",
        ),
        since_610!(
            "min_percent_tmp_floor [%]",
            257,
            0,
            format_decimal,
            "The lowest power floor (TMP floor) that can be set, in percent.",
        ),
        delayed!(
            "primary_power_floor [W]",
            275,
            0,
            format_decimal,
            "The primary floor of power smoothing, in watts.",
        ),
        delayed!(
            "secondary_power_floor [W]",
            276,
            0,
            format_decimal,
            "The secondary floor of power smoothing, in watts.",
        ),
        delayed!(
            "min_primary_floor_activation_offset [W]",
            277,
            0,
            format_decimal,
            "The lowest offset that can be set for the activation of the primary floor, in watts.",
        ),
        delayed!(
            "min_primary_floor_activation_point [W]",
            278,
            0,
            format_decimal,
            "The lowest power at which the primary floor can be activated, in watts.",
        ),
        delayed!(
            "window_multiplier [ms]",
            279,
            0,
            format_number::<0>,
            "The unit of the window multipliers, in milliseconds.",
        ),
        since_610!(
            "num_preset_profiles",
            259,
            0,
            format_number::<0>,
            "The number of preset profiles.",
        ),
        since_610!(
            "curr_profile.percent_tmp_floor [%]",
            260,
            IN_USE,
            format_decimal,
            "The power floor (TMP floor) of the current profile, in percent.",
        ),
        since_610!(
            "curr_profile.ramp_up_rate [W/s]",
            261,
            IN_USE,
            format_watts::<0>,
            "The rate at which power may rise in the current profile, in watts per second.",
        ),
        since_610!(
            "curr_profile.ramp_down_rate [W/s]",
            262,
            IN_USE,
            format_watts::<0>,
            "The rate at which power may fall in the current profile, in watts per second.",
        ),
        since_610!(
            "curr_profile.ramp_down_hysteresis [ms]",
            263,
            IN_USE,
            format_number::<0>,
            "The time for which the load must be low before power falls in the current profile, \
             in milliseconds.",
        ),
        delayed!(
            "curr_profile.secondary_power_floor [W]",
            281,
            IN_USE,
            format_decimal,
            "The secondary floor of the current profile, in watts.",
        ),
        delayed!(
            "curr_profile.primary_floor_act_window_multiplier",
            282,
            IN_USE,
            format_number::<0>,
            "The length of the window that activates the primary floor in the current profile, in \
             units of power_smoothing.window_multiplier.",
        ),
        delayed!(
            "curr_profile.primary_floor_tar_window_multiplier",
            283,
            IN_USE,
            format_number::<0>,
            "The length of the window that determines the primary floor in the current profile, \
             in units of power_smoothing.window_multiplier.",
        ),
        delayed!(
            "curr_profile.primary_floor_act_offset [W]",
            284,
            IN_USE,
            format_decimal,
            "The offset at which the primary floor is activated in the current profile, in watts.",
        ),
        since_610!(
            "active_profile",
            264,
            0,
            format_number::<0>,
            "The number of the current preset profile.",
        ),
        since_610!(
            "admin_override.percent_tmp_floor [%]",
            265,
            0,
            |own| format_decimal(&require_override(own)),
            "The administrator's override of the power floor (TMP floor), in percent.",
        ),
        since_610!(
            "admin_override.ramp_up_rate [W/s]",
            266,
            0,
            |own| format_watts::<0>(&require_override(own)),
            "The administrator's override of the rate at which power may rise, in watts per \
             second.",
        ),
        since_610!(
            "admin_override.ramp_down_rate [W/s]",
            267,
            0,
            |own| format_watts::<0>(&require_override(own)),
            "The administrator's override of the rate at which power may fall, in watts per \
             second.",
        ),
        since_610!(
            "admin_override.ramp_down_hysteresis [ms]",
            268,
            0,
            |own| format_number::<0>(&require_override(own)),
            "The administrator's override of the time for which the load must be low before power \
             falls, in milliseconds.",
        ),
        delayed!(
            "admin_override.secondary_power_floor [W]",
            285,
            0,
            |own| format_decimal(&require_override(own)),
            "The administrator's override of the secondary floor, in watts.",
        ),
        delayed!(
            "admin_override.primary_floor_act_window_multiplier",
            286,
            0,
            |own| format_number::<0>(&require_override(own)),
            "The administrator's override of the length of the window that activates the primary \
             floor, in units of power_smoothing.window_multiplier.",
        ),
        delayed!(
            "admin_override.primary_floor_tar_window_multiplier",
            287,
            0,
            |own| format_number::<0>(&require_override(own)),
            "The administrator's override of the length of the window that determines the primary \
             floor, in units of power_smoothing.window_multiplier.",
        ),
        delayed!(
            "admin_override.primary_floor_act_offset [W]",
            288,
            0,
            |own| format_decimal(&require_override(own)),
            "The administrator's override of the offset at which the primary floor is activated, \
             in watts.",
        ),
    ],
)
.since(Release(610, 0))];

/// Returns the answer if an administrator has set an override, otherwise an error code.
fn require_override(answer: &Answer) -> Answer {
    match answer {
        Ok(value) if value.number_at(0) == Some(NOT_SET) => Err(Code::NOT_SUPPORTED),
        answer => answer.clone(),
    }
}
