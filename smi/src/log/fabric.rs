//! The NVLink fabric, and further capabilities of the GPU.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    cursor::Cursor,
    format::{ABSENT, count, format_or_reason, named, word},
    item::{Item, SAME, group, number, value},
};
use crate::release::BRANCH_590;

/// The state, the membership and the health of the fabric.
pub(super) static FABRIC: &[Item] = &[group("Fabric", SAME).holds(&[
    number("State", SAME, Q::FabricInfo, 0, |state| {
        named(state, &[ABSENT, "Not Started", "In Progress", "Completed"])
    }),
    value("Status", SAME, |at| format_or_reason(joined(at, 1), status)),
    value("CliqueId", "cliqueId", |at| {
        format_or_reason(joined(at, 2), count)
    }),
    value("ClusterUUID", "clusterUuid", |at| {
        let halves = joined(at, 5).and_then(|high| Ok((high, joined(at, 6)?)));
        format_or_reason(halves, |(high, low)| uuid(high as u64, low as u64))
    }),
    group("Health", SAME).holds(&[
        value("Summary", SAME, |at| {
            let words = [ABSENT, "Healthy", "Unhealthy", "Limited Capacity"];
            format_or_reason(joined(at, 4), |summary| named(summary, &words))
        }),
        value("Bandwidth", SAME, |at| {
            health(at, 0, 0x3, &[ABSENT, "Degraded", "Full"])
        }),
        condition("Route Recovery in progress", SAME, &[2]),
        condition("Route Unhealthy", SAME, &[4]),
        condition("Access Timeout Recovery", SAME, &[6]),
        value("Incorrect Configuration", SAME, |at| {
            health(at, 8, 0xF, CONFIGURATIONS)
        }),
        condition("Partition Assigned", SAME, &[12]).except(BRANCH_590),
    ]),
])];

/// Further capabilities: extended GPU memory (EGM).
pub(super) static CAPABILITIES: &[Item] =
    &[
        group("Capabilities", SAME).holds(&[number("EGM", SAME, Q::Capabilities, 0, |mask| {
            if mask & 1 == 0 { "disabled" } else { "enabled" }.to_owned()
        })]),
    ];

/// The value of NVML's `NVML_GPU_FABRIC_STATE_COMPLETED`.
const COMPLETED: i128 = 3;
/// The texts for `NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*`.
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

/// Returns a number that is valid only if the GPU has joined the fabric.
fn joined(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    match at.number(Q::FabricInfo, 0)? {
        COMPLETED => at.number(Q::FabricInfo, place),
        _ => Err(ABSENT.to_owned()),
    }
}

/// Returns the result of joining, an `nvmlReturn_t`, as text.
fn status(code: i128) -> String {
    match u32::try_from(code) {
        Ok(0) => "Success".to_owned(),
        Ok(code) => word(Code(code)),
        Err(_) => ABSENT.to_owned(),
    }
}

/// Defines a line for two bits of the health mask. `bit` is the lower of the two bits, and the
/// value 0 means unknown.
const fn condition(title: &'static str, tag: &'static str, bit: &'static [i128]) -> Item {
    value(title, tag, |at| {
        health(at, at.argument(0), 0x3, &[ABSENT, "True", "False"])
    })
    .about(bit)
}

fn health(at: &Cursor<'_>, shift: u32, width: i128, names: &[&str]) -> String {
    format_or_reason(joined(at, 3), |mask| named(mask >> shift & width, names))
}

/// Formats a UUID from two halves in big-endian order.
fn uuid(high: u64, low: u64) -> String {
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
    fn a_uuid_has_its_bytes_in_order() {
        assert_eq!(
            uuid(0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }
}
