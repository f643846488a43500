//! Power smoothing and workload power profiles, which data centers use to avoid sudden load changes
//! of many GPUs.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Cursor,
    format::{ABSENT, enabled, yes_no},
    item::{Item, SAME, each, group, real_field, scoped_field, unless, value},
    sections::Section,
};
use crate::release::Release;

pub(super) static ITEMS: &[Item] = &[
    unless("Power Smoothing", SAME, |at| at.field(ENABLED, SCOPE).err())
        .of(Section::POWER_SMOOTHING)
        .holds(SMOOTHING),
    group("Workload Power Profiles", "power_profiles")
        .of(Section::POWER_PROFILES)
        .holds(&[
            value("Requested Profiles", "", names).about(&[REQUESTED]),
            unless("", "power_profile_requested_profiles", none)
                .about(&[REQUESTED])
                .holds(&[each(
                    set,
                    &[value("", "power_profile_requested_profile", |at| {
                        name(at.nth(1))
                    })],
                )]),
            value("Enforced Profiles", "", names).about(&[ENFORCED]),
            unless("", "power_profile_enforced_profiles", none)
                .about(&[ENFORCED])
                .holds(&[each(
                    set,
                    &[value("", "power_profile_enforced_profile", |at| {
                        name(at.nth(1))
                    })],
                )]),
        ]),
    // The name of the element is guessed.
    real_field("EDPp Multiplier", SAME, (274, 0), |percent| {
        format!("{percent:.2}%")
    })
    .since(Release(590, 0)),
];

/// Defines the settings of a profile, given by the prefix of their elements, the suffix of the last
/// element, the first field, and the first field of delayed smoothing.
macro_rules! profile {
    ($tag:literal, $offset:literal, $first:literal, $delayed:literal) => {
        &[
            smoothing(
                "% TMP Floor",
                concat!($tag, "percent_tmp_floor"),
                $first,
                percent,
            ),
            smoothing(
                "Ramp Up Rate",
                concat!($tag, "ramp_up_rate"),
                $first + 1,
                rate,
            ),
            smoothing(
                "Ramp Down Rate",
                concat!($tag, "ramp_down_rate"),
                $first + 2,
                rate,
            ),
            smoothing(
                "Ramp Down Hysteresis",
                concat!($tag, "ramp_down_hysteresis"),
                $first + 3,
                milliseconds,
            ),
            smoothing(
                "Secondary Power Floor",
                concat!($tag, "secondary_power_floor"),
                $delayed,
                watts,
            ),
            smoothing(
                "Primary Floor Activation Window Multiplier",
                concat!($tag, "primary_floor_activation_window_multiplier"),
                $delayed + 1,
                count,
            ),
            smoothing(
                "Primary Floor Target Window Multiplier",
                concat!($tag, "primary_floor_target_window_multiplier"),
                $delayed + 2,
                count,
            ),
            smoothing(
                "Primary Floor Activation Offset",
                concat!($tag, $offset),
                $delayed + 3,
                watts,
            ),
        ]
    };
}

static SMOOTHING: &[Item] = &[
    flag("Enabled", "power_smoothing_enabled", 251, enabled),
    flag(
        "Delayed Power Smoothing Supported",
        "power_smoothing_delayed_power_smoothing_supported",
        280,
        yes_no,
    ),
    smoothing("Privilege Level", "power_smoothing_priv_level", 252, count),
    flag(
        "Immediate Ramp Down",
        "power_smoothing_imm_ramp_down",
        253,
        enabled,
    ),
    smoothing("Current TMP", "power_smoothing_curr_tmp", 254, watts),
    smoothing(
        "Current TMP Floor",
        "power_smoothing_curr_tmp_floor",
        255,
        watts,
    ),
    smoothing(
        "Max % TMP Floor",
        "power_smoothing_max_percent_tmp_floor",
        256,
        percent,
    ),
    smoothing(
        "Min % TMP Floor",
        "power_smoothing_min_percent_tmp_floor",
        257,
        percent,
    ),
    smoothing(
        "HW Circuitry % Lifetime Remaining",
        "power_smoothing_hw_circuitry_percent_lifetime_remaining",
        258,
        percent,
    ),
    smoothing(
        "Current Primary Power Floor",
        "power_smoothing_curr_primary_power_floor",
        275,
        watts,
    ),
    smoothing(
        "Current Secondary Power Floor",
        "power_smoothing_curr_secondary_power_floor",
        276,
        watts,
    ),
    smoothing(
        "Min Primary Floor Activation Offset",
        "power_smoothing_min_primary_floor_activation_offset",
        277,
        watts,
    ),
    smoothing(
        "Min Primary Floor Activation Point",
        "power_smoothing_min_primary_floor_activation_point",
        278,
        watts,
    ),
    smoothing(
        "Window Multiplier",
        "power_smoothing_window_multiplier",
        279,
        milliseconds,
    ),
    smoothing(
        "Number of Preset Profiles",
        "power_smoothing_num_preset_profiles",
        259,
        count,
    ),
    // The misspelling in the last element is that of NVIDIA's DTD.
    group("Current Profile", "power_smoothing_current_profile").holds(profile!(
        "power_smoothing_curr_profile_",
        "primary_floor_activatin_offset",
        260,
        281
    )),
    smoothing(
        "Active Preset Profile",
        "power_smoothing_active_profile",
        264,
        count,
    ),
    group("Admin Overrides", "power_smoothing_admin_overrides").holds(profile!(
        "power_smoothing_admin_override_",
        "primary_floor_activation_offset",
        265,
        285
    )),
];

/// The ID of the NVML field `NVML_FI_PWR_SMOOTHING_ENABLED`.
const ENABLED: u32 = 251;
/// The field scope that selects the active profile. Lower scopes are the five preset profiles.
const SCOPE: u32 = 5;
/// The index of the mask of requested profiles in [`Q::WorkloadPowerProfiles`].
const REQUESTED: i128 = 1;
/// The index of the mask of enforced profiles.
const ENFORCED: i128 = 2;

const fn flag(title: &'static str, tag: &'static str, id: u32, format: fn(i128) -> String) -> Item {
    scoped_field(title, tag, (id, SCOPE), format)
}

const fn smoothing(
    title: &'static str,
    tag: &'static str,
    id: u32,
    format: fn(f64) -> String,
) -> Item {
    real_field(title, tag, (id, SCOPE), format)
}

/// Returns the text; `N/A` if the administrator has set no value
/// (`NVML_POWER_SMOOTHING_ADMIN_OVERRIDE_NOT_SET`).
fn if_set(quantity: f64, text: String) -> String {
    if quantity >= f64::from(u32::MAX) {
        ABSENT.to_owned()
    } else {
        text
    }
}

fn count(number: f64) -> String {
    if_set(number, number.to_string())
}

fn percent(percent: f64) -> String {
    if_set(percent, format!("{percent:.2} %"))
}

fn watts(watts: f64) -> String {
    if_set(watts, format!("{watts:.2} W"))
}

fn rate(milliwatts_a_second: f64) -> String {
    if_set(milliwatts_a_second, format!("{milliwatts_a_second} mW/s"))
}

fn milliseconds(milliseconds: f64) -> String {
    if_set(milliseconds, format!("{milliseconds} ms"))
}

/// Returns the profiles in the mask that `about` selects, which are the indices of its bits.
fn set(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    let first = at.nth(0) as usize * 8;
    let words = (first..first + 8).map(|place| at.number(Q::WorkloadPowerProfiles, place));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let bits = (0..256).filter(|bit| words[bit / 32] >> (bit % 32) & 1 == 1);
    Ok(bits.map(|bit| vec![bit as i128]).collect())
}

/// Returns the text to show if no profile is set; `None` if any is set.
fn none(at: &Cursor<'_>) -> Option<String> {
    match set(at) {
        Ok(profiles) if profiles.is_empty() => Some(ABSENT.to_owned()),
        Ok(_) => None,
        Err(word) => Some(word),
    }
}

fn names(at: &Cursor<'_>) -> String {
    none(at).unwrap_or_else(|| {
        let profiles = set(at).unwrap_or_default();
        profiles
            .iter()
            .map(|profile| name(profile[0]))
            .collect::<Vec<_>>()
            .join(", ")
    })
}

/// Returns the name of an `nvmlPowerProfileType_t`, or its number if it is newer than this list.
fn name(profile: i128) -> String {
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
