//! The low-power state of NVLinks, and its threshold.

use super::links::Links;

/// The field ID `NVML_FI_DEV_NVLINK_GET_POWER_STATE` (0 is full power, 1 is low power). The
/// constant below is `NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD`, whose unit the GPU reports.
const POWER_STATE_FIELD: u32 = 167;
const THRESHOLD_FIELD: u32 = 168;

/// The field ID `NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX`. The constants below are the IDs for
/// `_MIN` and `_UNITS`.
const MAX_THRESHOLD_FIELD: u32 = 200;
const MIN_THRESHOLD_FIELD: u32 = 223;
const THRESHOLD_UNIT_FIELD: u32 = 224;

/// `NVML_NVLINK_LOW_POWER_THRESHOLD_MIN` and `_MAX`, the threshold limits for GPUs that do not
/// report any.
const DEFAULT_RANGE: (i128, i128) = (1, 0x1FFF);

/// Returns each link's power state, and the idle time after which a link enters low power. Returns
/// `None` if the GPU has no low-power state.
pub(super) fn format_low_power(links: &Links<'_>) -> Option<String> {
    let chosen = links.selected_links()?;
    links.read_field(POWER_STATE_FIELD, *chosen.first()?)?;
    let least = links
        .read_field(MIN_THRESHOLD_FIELD, 0)
        .unwrap_or(DEFAULT_RANGE.0);
    let most = links
        .read_field(MAX_THRESHOLD_FIELD, 0)
        .unwrap_or(DEFAULT_RANGE.1);
    // There are two units, `NVML_NVLINK_LOW_POWER_THRESHOLD_UNIT_100US` and `..._50US`.
    let unit_us = match links.read_field(THRESHOLD_UNIT_FIELD, 0) {
        Some(1) => 50,
        _ => 100,
    };
    let states = chosen
        .iter()
        .filter(|link| links.is_active(**link))
        .map(|link| {
            let state = if links.read_field(POWER_STATE_FIELD, *link)? == 0 {
                "High Speed State"
            } else {
                "Low Power State"
            };
            let threshold_us = links.read_field(THRESHOLD_FIELD, *link)? * unit_us;
            Some(format!(
                "\t Link {link}: Low Power Mode: {state}\n\t Link {link}: Low Power Threshold: \
                 {threshold_us} us\n\n"
            ))
        })
        .collect::<Option<String>>()?;
    Some(format!(
        "\t Low Power Threshold are in units of {unit_us} us\n\
         \t Range of Low Power Threshold values are {least} to {most}\n\n{states}"
    ))
}
