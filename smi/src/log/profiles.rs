//! Power smoothing and workload power profiles: what data centres set so that many GPUs do not step together.

use gpumon_probe::vendor::nvml::query::Query;

use super::{
    at::At,
    format::{ABSENT, count, enabled, milliseconds, watts, yes_no},
    item::{Item, each, group, unless, value},
    sections::Sections,
};

/// Both.
pub(super) static ITEMS: &[Item] = &[
    unless("Power Smoothing", "power_smoothing", |at| at.field(ENABLED, SCOPE).err(), SMOOTHING)
        .of(Sections::POWER_SMOOTHING),
    group(
        "Workload Power Profiles",
        "power_profiles",
        &[
            value("Requested Profiles", "", names).about(&[REQUESTED]),
            unless(
                "",
                "power_profile_requested_profiles",
                none,
                &[each(set, &[value("", "power_profile_requested_profile", |at| name(at.nth(1)))])],
            )
            .about(&[REQUESTED]),
            value("Enforced Profiles", "", names).about(&[ENFORCED]),
            unless(
                "",
                "power_profile_enforced_profiles",
                none,
                &[each(set, &[value("", "power_profile_enforced_profile", |at| name(at.nth(1)))])],
            )
            .about(&[ENFORCED]),
        ],
    )
    .of(Sections::POWER_PROFILES),
];

/// `about` is the field of each.
static SMOOTHING: &[Item] = &[
    value("Enabled", "power_smoothing_enabled", |at| field(at, enabled)).about(&[251]),
    value("Delayed Power Smoothing Supported", "power_smoothing_delayed_power_smoothing_supported", |at| {
        field(at, yes_no)
    })
    .about(&[280]),
    value("Privilege Level", "power_smoothing_priv_level", |at| field(at, count)).about(&[252]),
    value("Immediate Ramp Down", "power_smoothing_imm_ramp_down", |at| field(at, enabled)).about(&[253]),
    value("Current TMP", "power_smoothing_curr_tmp", |at| field(at, watts)).about(&[254]),
    value("Current TMP Floor", "power_smoothing_curr_tmp_floor", |at| field(at, watts)).about(&[255]),
    value("Max % TMP Floor", "power_smoothing_max_percent_tmp_floor", |at| field(at, hundredths)).about(&[256]),
    value("Min % TMP Floor", "power_smoothing_min_percent_tmp_floor", |at| field(at, hundredths)).about(&[257]),
    value("HW Circuitry % Lifetime Remaining", "power_smoothing_hw_circuitry_percent_lifetime_remaining", |at| {
        field(at, hundredths)
    })
    .about(&[258]),
    value("Current Primary Power Floor", "power_smoothing_curr_primary_power_floor", |at| field(at, watts))
        .about(&[275]),
    value("Current Secondary Power Floor", "power_smoothing_curr_secondary_power_floor", |at| field(at, watts))
        .about(&[276]),
    value("Min Primary Floor Activation Offset", "power_smoothing_min_primary_floor_activation_offset", |at| {
        field(at, watts)
    })
    .about(&[277]),
    value("Min Primary Floor Activation Point", "power_smoothing_min_primary_floor_activation_point", |at| {
        field(at, watts)
    })
    .about(&[278]),
    value("Window Multiplier", "power_smoothing_window_multiplier", |at| field(at, milliseconds)).about(&[279]),
    value("Number of Preset Profiles", "power_smoothing_num_preset_profiles", |at| field(at, count)).about(&[259]),
    group(
        "Current Profile",
        "power_smoothing_current_profile",
        &[
            value("% TMP Floor", "power_smoothing_curr_profile_percent_tmp_floor", |at| field(at, hundredths))
                .about(&[260]),
            value("Ramp Up Rate", "power_smoothing_curr_profile_ramp_up_rate", |at| field(at, rate)).about(&[261]),
            value("Ramp Down Rate", "power_smoothing_curr_profile_ramp_down_rate", |at| field(at, rate)).about(&[262]),
            value("Ramp Down Hysteresis", "power_smoothing_curr_profile_ramp_down_hysteresis", |at| {
                field(at, milliseconds)
            })
            .about(&[263]),
            value("Secondary Power Floor", "power_smoothing_curr_profile_secondary_power_floor", |at| field(at, watts))
                .about(&[281]),
            value(
                "Primary Floor Activation Window Multiplier",
                "power_smoothing_curr_profile_primary_floor_activation_window_multiplier",
                |at| field(at, count),
            )
            .about(&[282]),
            value(
                "Primary Floor Target Window Multiplier",
                "power_smoothing_curr_profile_primary_floor_target_window_multiplier",
                |at| field(at, count),
            )
            .about(&[283]),
            // The element lacks a letter in the vendor's DTD too.
            value(
                "Primary Floor Activation Offset",
                "power_smoothing_curr_profile_primary_floor_activatin_offset",
                |at| field(at, watts),
            )
            .about(&[284]),
        ],
    ),
    value("Active Preset Profile", "power_smoothing_active_profile", |at| field(at, count)).about(&[264]),
    group(
        "Admin Overrides",
        "power_smoothing_admin_overrides",
        &[
            value("% TMP Floor", "power_smoothing_admin_override_percent_tmp_floor", |at| field(at, hundredths))
                .about(&[265]),
            value("Ramp Up Rate", "power_smoothing_admin_override_ramp_up_rate", |at| field(at, rate)).about(&[266]),
            value("Ramp Down Rate", "power_smoothing_admin_override_ramp_down_rate", |at| field(at, rate))
                .about(&[267]),
            value("Ramp Down Hysteresis", "power_smoothing_admin_override_ramp_down_hysteresis", |at| {
                field(at, milliseconds)
            })
            .about(&[268]),
            value("Secondary Power Floor", "power_smoothing_admin_override_secondary_power_floor", |at| {
                field(at, watts)
            })
            .about(&[285]),
            value(
                "Primary Floor Activation Window Multiplier",
                "power_smoothing_admin_override_primary_floor_activation_window_multiplier",
                |at| field(at, count),
            )
            .about(&[286]),
            value(
                "Primary Floor Target Window Multiplier",
                "power_smoothing_admin_override_primary_floor_target_window_multiplier",
                |at| field(at, count),
            )
            .about(&[287]),
            value(
                "Primary Floor Activation Offset",
                "power_smoothing_admin_override_primary_floor_activation_offset",
                |at| field(at, watts),
            )
            .about(&[288]),
        ],
    ),
];

/// `NVML_FI_PWR_SMOOTHING_ENABLED`.
const ENABLED: u32 = 251;
/// The profile that is active, among the five that can be preset.
const SCOPE: u32 = 5;
/// The mask of the profiles that were asked for, in [`Query::WorkloadPowerProfiles`].
const REQUESTED: i128 = 1;
/// The mask of those that hold.
const ENFORCED: i128 = 2;

fn field(at: &At<'_>, format: fn(i128) -> String) -> String {
    at.format_field(at.argument(0), SCOPE, format)
}

/// Hundredths of a percent.
fn hundredths(number: i128) -> String {
    format!("{:.2} %", number as f64 / 100.0)
}

/// Milliwatts a second.
fn rate(number: i128) -> String {
    format!("{number} mW/s")
}

/// The profiles of the mask in `about`: the places of its bits.
fn set(at: &At<'_>) -> Result<Vec<Vec<i128>>, String> {
    let first = at.nth(0) as usize * 8;
    let words = (first..first + 8).map(|place| at.number(Query::WorkloadPowerProfiles, place));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let bits = (0..256).filter(|bit| words[bit / 32] >> (bit % 32) & 1 == 1);
    Ok(bits.map(|bit| vec![bit as i128]).collect())
}

/// What stands there where no profile is set.
fn none(at: &At<'_>) -> Option<String> {
    match set(at) {
        Ok(profiles) if profiles.is_empty() => Some(ABSENT.to_owned()),
        Ok(_) => None,
        Err(word) => Some(word),
    }
}

/// All names in one line.
fn names(at: &At<'_>) -> String {
    none(at).unwrap_or_else(|| {
        let profiles = set(at).unwrap_or_default();
        profiles.iter().map(|profile| name(profile[0])).collect::<Vec<_>>().join(", ")
    })
}

/// The name of an `nvmlPowerProfileType_t`; its number where it is newer than these.
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
