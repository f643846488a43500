//! Items for power smoothing and workload power profiles, with which data centers avoid sudden load
//! changes of many GPUs.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    item::{
        Item, Section, TITLE_AS_TAG, computed_item, group_item, number_item, real_item,
        replaceable_group_item, row_items,
    },
    value::{ABSENT, Cursor, format_enabled, format_yes_no},
};
use crate::release::Release;

pub(super) static POWER_PROFILE_ITEMS: &[Item] = &[
    replaceable_group_item(
        "Power Smoothing",
        TITLE_AS_TAG,
        |at| {
            at.read_number(Q::Field(ENABLED, ACTIVE_PROFILE_SCOPE), 0)
                .err()
        },
        SMOOTHING,
    )
    .show_in_section(Section::POWER_SMOOTHING),
    group_item(
        "Workload Power Profiles",
        "power_profiles",
        &[
            computed_item("Requested Profiles", "", format_profiles)
                .with_position_numbers(&[REQUESTED]),
            replaceable_group_item(
                "",
                "power_profile_requested_profiles",
                format_missing_profiles,
                &[row_items(
                    read_profiles,
                    &[computed_item("", "power_profile_requested_profile", |at| {
                        format_profile(at.number_at(1))
                    })],
                )],
            )
            .with_position_numbers(&[REQUESTED]),
            computed_item("Enforced Profiles", "", format_profiles)
                .with_position_numbers(&[ENFORCED]),
            replaceable_group_item(
                "",
                "power_profile_enforced_profiles",
                format_missing_profiles,
                &[row_items(
                    read_profiles,
                    &[computed_item("", "power_profile_enforced_profile", |at| {
                        format_profile(at.number_at(1))
                    })],
                )],
            )
            .with_position_numbers(&[ENFORCED]),
        ],
    )
    .show_in_section(Section::POWER_PROFILES),
    // The XML element name is a guess.
    real_item(
        "EDPp Multiplier",
        TITLE_AS_TAG,
        Q::Field(274, 0),
        |percent| format!("{percent:.2}%"),
    )
    .show_since_release(Release(590, 0)),
];

/// Defines the items for a profile's settings. The arguments are the prefix of all XML element
/// names, the suffix of the last element's name, the ID of the first field, and the ID of the first
/// field for delayed smoothing.
macro_rules! profile {
    ($tag:literal, $offset:literal, $first:literal, $delayed:literal) => {
        &[
            smoothing_item(
                "% TMP Floor",
                concat!($tag, "percent_tmp_floor"),
                $first,
                format_percent_if_set,
            ),
            smoothing_item(
                "Ramp Up Rate",
                concat!($tag, "ramp_up_rate"),
                $first + 1,
                format_rate_if_set,
            ),
            smoothing_item(
                "Ramp Down Rate",
                concat!($tag, "ramp_down_rate"),
                $first + 2,
                format_rate_if_set,
            ),
            smoothing_item(
                "Ramp Down Hysteresis",
                concat!($tag, "ramp_down_hysteresis"),
                $first + 3,
                format_milliseconds_if_set,
            ),
            smoothing_item(
                "Secondary Power Floor",
                concat!($tag, "secondary_power_floor"),
                $delayed,
                format_watts_if_set,
            ),
            smoothing_item(
                "Primary Floor Activation Window Multiplier",
                concat!($tag, "primary_floor_activation_window_multiplier"),
                $delayed + 1,
                format_count_if_set,
            ),
            smoothing_item(
                "Primary Floor Target Window Multiplier",
                concat!($tag, "primary_floor_target_window_multiplier"),
                $delayed + 2,
                format_count_if_set,
            ),
            smoothing_item(
                "Primary Floor Activation Offset",
                concat!($tag, $offset),
                $delayed + 3,
                format_watts_if_set,
            ),
        ]
    };
}

static SMOOTHING: &[Item] = &[
    flag_item("Enabled", "power_smoothing_enabled", 251, format_enabled),
    flag_item(
        "Delayed Power Smoothing Supported",
        "power_smoothing_delayed_power_smoothing_supported",
        280,
        format_yes_no,
    ),
    smoothing_item(
        "Privilege Level",
        "power_smoothing_priv_level",
        252,
        format_count_if_set,
    ),
    flag_item(
        "Immediate Ramp Down",
        "power_smoothing_imm_ramp_down",
        253,
        format_enabled,
    ),
    smoothing_item(
        "Current TMP",
        "power_smoothing_curr_tmp",
        254,
        format_watts_if_set,
    ),
    smoothing_item(
        "Current TMP Floor",
        "power_smoothing_curr_tmp_floor",
        255,
        format_watts_if_set,
    ),
    smoothing_item(
        "Max % TMP Floor",
        "power_smoothing_max_percent_tmp_floor",
        256,
        format_percent_if_set,
    ),
    smoothing_item(
        "Min % TMP Floor",
        "power_smoothing_min_percent_tmp_floor",
        257,
        format_percent_if_set,
    ),
    smoothing_item(
        "HW Circuitry % Lifetime Remaining",
        "power_smoothing_hw_circuitry_percent_lifetime_remaining",
        258,
        format_percent_if_set,
    ),
    smoothing_item(
        "Current Primary Power Floor",
        "power_smoothing_curr_primary_power_floor",
        275,
        format_watts_if_set,
    ),
    smoothing_item(
        "Current Secondary Power Floor",
        "power_smoothing_curr_secondary_power_floor",
        276,
        format_watts_if_set,
    ),
    smoothing_item(
        "Min Primary Floor Activation Offset",
        "power_smoothing_min_primary_floor_activation_offset",
        277,
        format_watts_if_set,
    ),
    smoothing_item(
        "Min Primary Floor Activation Point",
        "power_smoothing_min_primary_floor_activation_point",
        278,
        format_watts_if_set,
    ),
    smoothing_item(
        "Window Multiplier",
        "power_smoothing_window_multiplier",
        279,
        format_milliseconds_if_set,
    ),
    smoothing_item(
        "Number of Preset Profiles",
        "power_smoothing_num_preset_profiles",
        259,
        format_count_if_set,
    ),
    // The misspelled name of the last element is the one in NVIDIA's DTD.
    group_item(
        "Current Profile",
        "power_smoothing_current_profile",
        profile!(
            "power_smoothing_curr_profile_",
            "primary_floor_activatin_offset",
            260,
            281
        ),
    ),
    smoothing_item(
        "Active Preset Profile",
        "power_smoothing_active_profile",
        264,
        format_count_if_set,
    ),
    group_item(
        "Admin Overrides",
        "power_smoothing_admin_overrides",
        profile!(
            "power_smoothing_admin_override_",
            "primary_floor_activation_offset",
            265,
            285
        ),
    ),
];

/// The field ID `NVML_FI_PWR_SMOOTHING_ENABLED`.
const ENABLED: u32 = 251;
/// The field scope that selects the active profile. Lower scopes select the five preset profiles.
const ACTIVE_PROFILE_SCOPE: u32 = 5;
/// The index of the mask of requested profiles in the answer to [`Q::WorkloadPowerProfiles`].
const REQUESTED: i128 = 1;
/// The index of the mask of enforced profiles in the answer to [`Q::WorkloadPowerProfiles`].
const ENFORCED: i128 = 2;

const fn flag_item(
    title: &'static str,
    tag: &'static str,
    id: u32,
    format: fn(i128) -> String,
) -> Item {
    number_item(title, tag, Q::Field(id, ACTIVE_PROFILE_SCOPE), 0, format)
}

const fn smoothing_item(
    title: &'static str,
    tag: &'static str,
    id: u32,
    format: fn(f64) -> String,
) -> Item {
    real_item(title, tag, Q::Field(id, ACTIVE_PROFILE_SCOPE), format)
}

/// Returns the text, or `N/A` if the administrator has not set a value
/// (`NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`).
fn format_if_set(quantity: f64, text: String) -> String {
    if quantity >= f64::from(u32::MAX) {
        ABSENT.to_owned()
    } else {
        text
    }
}

fn format_count_if_set(number: f64) -> String {
    format_if_set(number, number.to_string())
}

fn format_percent_if_set(percent: f64) -> String {
    format_if_set(percent, format!("{percent:.2} %"))
}

fn format_watts_if_set(watts: f64) -> String {
    format_if_set(watts, format!("{watts:.2} W"))
}

fn format_rate_if_set(milliwatts_a_second: f64) -> String {
    format_if_set(milliwatts_a_second, format!("{milliwatts_a_second} mW/s"))
}

fn format_milliseconds_if_set(milliseconds: f64) -> String {
    format_if_set(milliseconds, format!("{milliseconds} ms"))
}

/// Returns the profiles in the mask that `about` selects. A profile's number is the position of its
/// bit.
fn read_profiles(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    let first = at.number_at(0) as usize * 8;
    let words = (first..first + 8).map(|place| at.read_number(Q::WorkloadPowerProfiles, place));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let bits = (0..256).filter(|bit| words[bit / 32] >> (bit % 32) & 1 == 1);
    Ok(bits.map(|bit| vec![bit as i128]).collect())
}

/// Returns the text to show if no profile is set, or `None` if there are profiles.
fn format_missing_profiles(at: &Cursor<'_>) -> Option<String> {
    match read_profiles(at) {
        Ok(profiles) if profiles.is_empty() => Some(ABSENT.to_owned()),
        Ok(_) => None,
        Err(word) => Some(word),
    }
}

fn format_profiles(at: &Cursor<'_>) -> String {
    format_missing_profiles(at).unwrap_or_else(|| {
        let profiles = read_profiles(at).unwrap_or_default();
        profiles
            .iter()
            .map(|profile| format_profile(profile[0]))
            .collect::<Vec<_>>()
            .join(", ")
    })
}

/// Returns the name of an `nvmlPowerProfileType_t`, or its number if its name is unknown.
fn format_profile(profile: i128) -> String {
    let names = [
        "Max-P",
        "Max-Q",
        "Compute",
        "Memory Bound",
        "Network",
        "Balanced",
        "LLM Inference",
        "LLM Training",
        "RBM",
        "DCPCIE",
        "HMMA Sparse",
        "HMMA Dense",
        "Sync Balanced",
        "HPC",
        "MIG",
    ];
    usize::try_from(profile)
        .ok()
        .and_then(|place| names.get(place))
        .map_or_else(|| profile.to_string(), |name| (*name).to_owned())
}
