//! The low-power state of NVLinks.

use super::links::Links;

/// The field IDs `NVML_FI_DEV_NVLINK_GET_POWER_STATE` (0 is fast, 1 is low power) and
/// `NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD`, which counts in the unit that the GPU reports.
const STATE: u32 = 167;
const THRESHOLD: u32 = 168;

/// The field IDs `NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX`, `_MIN` and `_UNITS`.
const MOST: u32 = 200;
const LEAST: u32 = 223;
const UNITS: u32 = 224;

/// `NVML_NVLINK_LOW_POWER_THRESHOLD_MIN` and `_MAX`, the limits for a GPU that does not report its
/// own.
const DEFAULT_RANGE: (i128, i128) = (1, 0x1FFF);

/// Returns the power state of each link and the idle time after which a link enters low power.
/// `None` if the GPU has no low-power state.
pub(super) fn low_power(links: &Links<'_>) -> Option<String> {
    let chosen = links.chosen()?;
    links.field(STATE, *chosen.first()?)?;
    let least = links.field(LEAST, 0).unwrap_or(DEFAULT_RANGE.0);
    let most = links.field(MOST, 0).unwrap_or(DEFAULT_RANGE.1);
    // The two known units are `NVML_NVLINK_LOW_POWER_THRESHOLD_UNIT_100US` and `..._50US`.
    let unit_us = match links.field(UNITS, 0) {
        Some(1) => 50,
        _ => 100,
    };
    let states = chosen
        .iter()
        .filter(|link| links.active(**link))
        .map(|link| {
            let state = if links.field(STATE, *link)? == 0 { "High Speed State" } else { "Low Power State" };
            let threshold_us = links.field(THRESHOLD, *link)? * unit_us;
            Some(format!(
                "\t Link {link}: Low Power Mode: {state}\n\t Link {link}: Low Power Threshold: {threshold_us} us\n\n"
            ))
        })
        .collect::<Option<String>>()?;
    Some(format!(
        "\t Low Power Threshold are in units of {unit_us} us\n\
         \t Range of Low Power Threshold values are {least} to {most}\n\n{states}"
    ))
}
