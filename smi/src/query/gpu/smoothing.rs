//! Fields for power smoothing, which limits sudden changes of a rack's power draw.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{as_enabled, as_number, as_yes_no, milliwatts, two_places};
use super::super::field::{Section, field, with_title};
use crate::release::{BRANCH_595, Release};

/// The scope that selects the profile in use for `NVML_FI_PWR_SMOOTHING_PROFILE_*`. The scopes 0 to
/// 4 select the presets.
const IN_USE: u32 = 5;

/// The value of `NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`.
const NOT_SET: i128 = u32::MAX as i128;

/// Defines a field by the ID and the scope of the NVML field.
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

/// Defines a field of power smoothing that is a delay.
macro_rules! delayed {
    ($($field:tt)*) => { smoothing!($($field)*).except(BRANCH_595) };
}

pub(super) const SECTIONS: &[Section] = &[with_title(
    "power_smoothing",
    "Power smoothing keeps what a rack draws from jumping: the GPU draws at least a \
     floor, and changes within limits.",
    &[
        since_610!(
            "tmp_floor [W]",
            255,
            0,
            two_places,
            "The TMP floor that holds, in watts.",
        ),
        since_610!(
            "tmp_ceil [W]",
            254,
            0,
            two_places,
            "The TMP ceiling that holds, in watts.",
        ),
        since_610!(
            "hw_lifetime_remaining_percent [%]",
            258,
            0,
            two_places,
            "Percent of its life that the circuit for power smoothing has left.",
        ),
        since_610!(
            "enabled",
            251,
            0,
            as_yes_no::<0>,
            "Whether power is smoothed (Yes/No).",
        ),
        delayed!(
            "delayed_power_smoothing_supported",
            280,
            0,
            as_yes_no::<0>,
            "Whether the GPU can smooth with a delay (Yes/No).",
        ),
        since_610!(
            "soc_power_smoothing_enabled",
            300,
            0,
            as_enabled::<0>,
            "Whether power is smoothed by the state of charge of the rack's energy storage \
             (Enabled/Disabled).",
        ),
        since_610!(
            "priv_level",
            252,
            0,
            as_number::<0>,
            "The level of privilege that the host has for power smoothing.",
        ),
        since_610!(
            "imm_ramp_down",
            253,
            0,
            as_enabled::<0>,
            "Whether power may fall at once (Enabled/Disabled).",
        ),
        since_610!(
            "max_percent_tmp_floor [%]",
            256,
            0,
            two_places,
            "The highest TMP floor that can be set, in percent.",
        ),
        since_610!(
            "min_percent_tmp_floor [%]",
            257,
            0,
            two_places,
            "The lowest TMP floor that can be set, in percent.",
        ),
        delayed!(
            "primary_power_floor [W]",
            275,
            0,
            two_places,
            "The primary floor of power smoothing, in watts.",
        ),
        delayed!(
            "secondary_power_floor [W]",
            276,
            0,
            two_places,
            "The secondary floor of power smoothing, in watts.",
        ),
        delayed!(
            "min_primary_floor_activation_offset [W]",
            277,
            0,
            two_places,
            "The lowest offset at which the primary floor can be made to come into force, in \
             watts.",
        ),
        delayed!(
            "min_primary_floor_activation_point [W]",
            278,
            0,
            two_places,
            "The lowest power at which the primary floor can come into force, in watts.",
        ),
        delayed!(
            "window_multiplier [ms]",
            279,
            0,
            as_number::<0>,
            "What the multipliers of windows are counted in, in ms.",
        ),
        since_610!(
            "num_preset_profiles",
            259,
            0,
            as_number::<0>,
            "How many preset profiles there are.",
        ),
        since_610!(
            "curr_profile.percent_tmp_floor [%]",
            260,
            IN_USE,
            two_places,
            "The TMP floor of the profile in use, in percent.",
        ),
        since_610!(
            "curr_profile.ramp_up_rate [W/s]",
            261,
            IN_USE,
            milliwatts::<0>,
            "How fast power may rise in the profile in use, in watts per second.",
        ),
        since_610!(
            "curr_profile.ramp_down_rate [W/s]",
            262,
            IN_USE,
            milliwatts::<0>,
            "How fast power may fall in the profile in use, in watts per second.",
        ),
        since_610!(
            "curr_profile.ramp_down_hysteresis [ms]",
            263,
            IN_USE,
            as_number::<0>,
            "For how long load must be low before power falls, in the profile in use, in ms.",
        ),
        delayed!(
            "curr_profile.secondary_power_floor [W]",
            281,
            IN_USE,
            two_places,
            "The secondary floor of the profile in use, in watts.",
        ),
        delayed!(
            "curr_profile.primary_floor_act_window_multiplier",
            282,
            IN_USE,
            as_number::<0>,
            "The length of the window that brings the primary floor into force, in the \
             profile in use.",
        ),
        delayed!(
            "curr_profile.primary_floor_tar_window_multiplier",
            283,
            IN_USE,
            as_number::<0>,
            "The length of the window that sets the primary floor, in the profile in use.",
        ),
        delayed!(
            "curr_profile.primary_floor_act_offset [W]",
            284,
            IN_USE,
            two_places,
            "The offset at which the primary floor comes into force, in the profile in use, \
             in watts.",
        ),
        since_610!(
            "active_profile",
            264,
            0,
            as_number::<0>,
            "The number of the preset profile in use.",
        ),
        since_610!(
            "admin_override.percent_tmp_floor [%]",
            265,
            0,
            |own| two_places(&if_set(own)),
            "The TMP floor that an administrator has set instead of the profile's, in \
             percent.",
        ),
        since_610!(
            "admin_override.ramp_up_rate [W/s]",
            266,
            0,
            |own| milliwatts::<0>(&if_set(own)),
            "How fast power may rise, where an administrator has set it instead of the \
             profile, in watts per second.",
        ),
        since_610!(
            "admin_override.ramp_down_rate [W/s]",
            267,
            0,
            |own| milliwatts::<0>(&if_set(own)),
            "How fast power may fall, where an administrator has set it instead of the \
             profile, in watts per second.",
        ),
        since_610!(
            "admin_override.ramp_down_hysteresis [ms]",
            268,
            0,
            |own| as_number::<0>(&if_set(own)),
            "For how long load must be low before power falls, where an administrator has \
             set it instead of the profile, in ms.",
        ),
        delayed!(
            "admin_override.secondary_power_floor [W]",
            285,
            0,
            |own| two_places(&if_set(own)),
            "The secondary floor that an administrator has set instead of the profile's, in \
             watts.",
        ),
        delayed!(
            "admin_override.primary_floor_act_window_multiplier",
            286,
            0,
            |own| as_number::<0>(&if_set(own)),
            "The length that an administrator has set instead of the profile's, of the \
             window that brings the primary floor into force.",
        ),
        delayed!(
            "admin_override.primary_floor_tar_window_multiplier",
            287,
            0,
            |own| as_number::<0>(&if_set(own)),
            "The length that an administrator has set instead of the profile's, of the \
             window that sets the primary floor.",
        ),
        delayed!(
            "admin_override.primary_floor_act_offset [W]",
            288,
            0,
            |own| two_places(&if_set(own)),
            "The offset that an administrator has set instead of the profile's, at which the \
             primary floor comes into force, in watts.",
        ),
    ],
)
.since(Release(610, 0))];

/// Returns an administrator's override, or an error code if none is set.
fn if_set(answer: &Answer) -> Answer {
    match answer {
        Ok(value) if value.at(0) == Some(NOT_SET) => Err(Code::NOT_SUPPORTED),
        answer => answer.clone(),
    }
}
