//! Items for the NVLink fabric and other capabilities of the GPU.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    cursor::Cursor,
    format::{ABSENT, format_code, format_count, format_name, format_or_reason},
    item::{Item, TITLE_AS_TAG, computed_item, group_item, number_item},
};
use crate::release::BRANCH_590;

/// The items for the fabric's state and health, and the GPU's membership.
pub(super) static FABRIC: &[Item] = &[group_item("Fabric", TITLE_AS_TAG).with_items(&[
    number_item("State", TITLE_AS_TAG, Q::FabricInfo, 0, |state| {
        format_name(state, &[ABSENT, "Not Started", "In Progress", "Completed"])
    }),
    computed_item("Status", TITLE_AS_TAG, |at| {
        format_or_reason(read_joined_number(at, 1), format_status)
    }),
    computed_item("CliqueId", "cliqueId", |at| {
        format_or_reason(read_joined_number(at, 2), format_count)
    }),
    computed_item("ClusterUUID", "clusterUuid", |at| {
        let halves =
            read_joined_number(at, 5).and_then(|high| Ok((high, read_joined_number(at, 6)?)));
        format_or_reason(halves, |(high, low)| format_uuid(high as u64, low as u64))
    }),
    group_item("Health", TITLE_AS_TAG).with_items(&[
        computed_item("Summary", TITLE_AS_TAG, |at| {
            let words = [ABSENT, "Healthy", "Unhealthy", "Limited Capacity"];
            format_or_reason(read_joined_number(at, 4), |summary| {
                format_name(summary, &words)
            })
        }),
        computed_item("Bandwidth", TITLE_AS_TAG, |at| {
            format_health(at, 0, 0x3, &[ABSENT, "Degraded", "Full"])
        }),
        condition_item("Route Recovery in progress", TITLE_AS_TAG, &[2]),
        condition_item("Route Unhealthy", TITLE_AS_TAG, &[4]),
        condition_item("Access Timeout Recovery", TITLE_AS_TAG, &[6]),
        computed_item("Incorrect Configuration", TITLE_AS_TAG, |at| {
            format_health(at, 8, 0xF, CONFIGURATIONS)
        }),
        condition_item("Partition Assigned", TITLE_AS_TAG, &[12]).hide_in_releases(BRANCH_590),
    ]),
])];

/// The item for extended GPU memory (EGM).
pub(super) static CAPABILITIES: &[Item] =
    &[
        group_item("Capabilities", TITLE_AS_TAG).with_items(&[number_item(
            "EGM",
            TITLE_AS_TAG,
            Q::Capabilities,
            0,
            |mask| if mask & 1 == 0 { "disabled" } else { "enabled" }.to_owned(),
        )]),
    ];

/// The value of `NVML_GPU_FABRIC_STATE_COMPLETED`.
const COMPLETED: i128 = 3;
/// The texts for the `NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*` values, in order.
const CONFIGURATIONS: &[&str] = &[
    ABSENT,
    "None",
    "Incorrect SysGUID",
    "Incorrect Chassis Serial Number",
    "No Partition",
    "Insufficient NVLinks",
    "Incompatible GPU Firmware",
    "Invalid Location",
];

/// Returns a number that is valid only after the GPU has joined the fabric.
fn read_joined_number(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    match at.read_number(Q::FabricInfo, 0)? {
        COMPLETED => at.read_number(Q::FabricInfo, place),
        _ => Err(ABSENT.to_owned()),
    }
}

/// Returns the `nvmlReturn_t` of the attempt to join the fabric, as text.
fn format_status(code: i128) -> String {
    match u32::try_from(code) {
        Ok(0) => "Success".to_owned(),
        Ok(code) => format_code(Code(code)),
        Err(_) => ABSENT.to_owned(),
    }
}

/// Defines an item for a two-bit value in the health mask, where 0 means unknown. `bit` is the
/// position of the lower bit.
const fn condition_item(title: &'static str, tag: &'static str, bit: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        format_health(at, at.argument_at(0), 0x3, &[ABSENT, "True", "False"])
    })
    .with_numbers(bit)
}

fn format_health(at: &Cursor<'_>, shift: u32, width: i128, names: &[&str]) -> String {
    format_or_reason(read_joined_number(at, 3), |mask| {
        format_name(mask >> shift & width, names)
    })
}

/// Formats a UUID that is given as two big-endian halves.
fn format_uuid(high: u64, low: u64) -> String {
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_bytes_keep_their_order() {
        assert_eq!(
            format_uuid(0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }
}
