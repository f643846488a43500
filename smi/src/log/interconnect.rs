//! Items for the GPU's PCI bus ID and PCIe link, the NVLink fabric, and extended GPU memory.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    item::{Item, TITLE_AS_TAG, computed_item, field_item, group_item, number_item, text_item},
    value::{
        ABSENT, Cursor, OutputFormat, format_code, format_count, format_kilobytes_per_second,
        format_named_number, format_or_reason,
    },
};
use crate::{formats::format_uuid, release::BRANCH_590};

pub(super) static PCI_ITEMS: &[Item] = &[group_item(
    "PCI",
    TITLE_AS_TAG,
    &[
        hexadecimal_item("Bus", "pci_bus", &[1, 2]),
        hexadecimal_item("Device", "pci_device", &[2, 2]),
        hexadecimal_item("Domain", "pci_domain", &[0, 4]),
        hexadecimal_item("Base Classcode", "pci_base_class", &[5, 1]),
        hexadecimal_item("Sub Classcode", "pci_sub_class", &[6, 1]),
        hexadecimal_item("Device Id", "pci_device_id", &[3, 8]),
        text_item("Bus Id", "pci_bus_id", Q::BusId),
        hexadecimal_item("Sub System Id", "pci_sub_system_id", &[4, 8]),
        group_item(
            "GPU Link Info",
            "pci_gpu_link_info",
            &[
                group_item(
                    "PCIe Generation",
                    "pcie_gen",
                    &[
                        number_item("Max", "max_link_gen", Q::MaxPcieGeneration, 0, format_count),
                        number_item(
                            "Current",
                            "current_link_gen",
                            Q::PcieGeneration,
                            0,
                            format_count,
                        ),
                        number_item(
                            "Device Current",
                            "device_current_link_gen",
                            Q::PcieGeneration,
                            0,
                            format_count,
                        ),
                        number_item(
                            "Device Max",
                            "max_device_link_gen",
                            Q::GpuMaxPcieGeneration,
                            0,
                            format_count,
                        ),
                        number_item(
                            "Host Max",
                            "max_host_link_gen",
                            Q::HostMaxPcieGeneration,
                            0,
                            format_count,
                        ),
                    ],
                ),
                group_item(
                    "Link Width",
                    "link_widths",
                    &[
                        number_item("Max", "max_link_width", Q::MaxPcieWidth, 0, format_lanes),
                        number_item(
                            "Current",
                            "current_link_width",
                            Q::PcieWidth,
                            0,
                            format_lanes,
                        ),
                    ],
                ),
            ],
        ),
        group_item(
            "Bridge Chip",
            "pci_bridge_chip",
            &[
                number_item("Type", "bridge_chip_type", Q::BridgeChips, 0, |chip| {
                    format_named_number(chip, &["PLX", "BRO4"])
                }),
                number_item("Firmware", "bridge_chip_fw", Q::BridgeChips, 1, |version| {
                    format!("0x{version:X}")
                }),
            ],
        ),
        number_item(
            "Replays Since Reset",
            "replay_counter",
            Q::PcieReplays,
            0,
            format_count,
        ),
        field_item(
            "Replay Number Rollovers",
            "replay_rollover_counter",
            REPLAY_ROLLOVERS,
            format_count,
        ),
        number_item(
            "Tx Throughput",
            "tx_util",
            Q::PcieThroughput(0),
            0,
            format_kilobytes_per_second,
        ),
        number_item(
            "Rx Throughput",
            "rx_util",
            Q::PcieThroughput(1),
            0,
            format_kilobytes_per_second,
        ),
        field_item(
            "Atomic Caps Outbound",
            TITLE_AS_TAG,
            ATOMICS_OUTBOUND,
            format_atomics,
        ),
        field_item(
            "Atomic Caps Inbound",
            TITLE_AS_TAG,
            ATOMICS_INBOUND,
            format_atomics,
        ),
    ],
)
.with_slow_queries(&[Q::PcieThroughput(0), Q::PcieThroughput(1)])];

/// The field ID `NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER`.
const REPLAY_ROLLOVERS: u32 = 95;
/// The field ID `NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK`.
const ATOMICS_OUTBOUND: u32 = 228;
/// The field ID `NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK`.
const ATOMICS_INBOUND: u32 = 229;

/// Defines a line with a hexadecimal number from the PCI information. `number` contains its
/// position and its number of digits. The prefix `0x` appears only in text output.
const fn hexadecimal_item(title: &'static str, tag: &'static str, number: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        let prefix = if at.form == OutputFormat::Text {
            "0x"
        } else {
            ""
        };
        let (place, digits) = (at.number_at(0) as usize, at.number_at(1) as usize);
        format_or_reason(at.read_number(Q::PciInfo, place), |number| {
            format!("{prefix}{number:0digits$X}")
        })
    })
    .with_position_numbers(number)
}

fn format_lanes(number: i128) -> String {
    format!("{number}x")
}

/// Returns the names of the bits that are set in `mask`, each followed by a space.
fn format_atomics(mask: i128) -> String {
    let names = [
        "FETCHADD_32",
        "FETCHADD_64",
        "SWAP_32",
        "SWAP_64",
        "CAS_32",
        "CAS_64",
        "CAS_128",
    ];
    let bits = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| mask >> bit & 1 == 1);
    let text: String = bits.flat_map(|(_, name)| [name, " "]).collect();
    if text.is_empty() {
        ABSENT.to_owned()
    } else {
        text
    }
}

// The NVLink fabric, and extended GPU memory (EGM).

/// The items for the GPU's state and health in the fabric, and for the clique and the cluster that
/// the GPU belongs to.
pub(super) static FABRIC_ITEMS: &[Item] = &[group_item(
    "Fabric",
    TITLE_AS_TAG,
    &[
        number_item("State", TITLE_AS_TAG, Q::FabricInfo, 0, |state| {
            format_named_number(state, &[ABSENT, "Not Started", "In Progress", "Completed"])
        }),
        computed_item("Status", TITLE_AS_TAG, |at| {
            format_or_reason(read_joined_number(at, 1), format_join_status)
        }),
        computed_item("CliqueId", "cliqueId", |at| {
            format_or_reason(read_joined_number(at, 2), format_count)
        }),
        computed_item("ClusterUUID", "clusterUuid", |at| {
            let halves =
                read_joined_number(at, 5).and_then(|high| Ok((high, read_joined_number(at, 6)?)));
            format_or_reason(halves, |(high, low)| format_uuid(high, low))
        }),
        group_item(
            "Health",
            TITLE_AS_TAG,
            &[
                computed_item("Summary", TITLE_AS_TAG, |at| {
                    let words = [ABSENT, "Healthy", "Unhealthy", "Limited Capacity"];
                    format_or_reason(read_joined_number(at, 4), |summary| {
                        format_named_number(summary, &words)
                    })
                }),
                computed_item("Bandwidth", TITLE_AS_TAG, |at| {
                    format_fabric_health(at, 0, 0x3, &[ABSENT, "Degraded", "Full"])
                }),
                fabric_condition_item("Route Recovery in progress", TITLE_AS_TAG, &[2]),
                fabric_condition_item("Route Unhealthy", TITLE_AS_TAG, &[4]),
                fabric_condition_item("Access Timeout Recovery", TITLE_AS_TAG, &[6]),
                computed_item("Incorrect Configuration", TITLE_AS_TAG, |at| {
                    format_fabric_health(at, 8, 0xF, FABRIC_CONFIGURATIONS)
                }),
                fabric_condition_item("Partition Assigned", TITLE_AS_TAG, &[12])
                    .hide_in_releases(BRANCH_590),
            ],
        ),
    ],
)];

/// The item for extended GPU memory (EGM).
pub(super) static CAPABILITY_ITEMS: &[Item] = &[group_item(
    "Capabilities",
    TITLE_AS_TAG,
    &[number_item(
        "EGM",
        TITLE_AS_TAG,
        Q::Capabilities,
        0,
        |mask| if mask & 1 == 0 { "disabled" } else { "enabled" }.to_owned(),
    )],
)];

/// The value of `NVML_GPU_FABRIC_STATE_COMPLETED`.
const FABRIC_COMPLETED: i128 = 3;
/// The texts for the `NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*` values, in order.
const FABRIC_CONFIGURATIONS: &[&str] = &[
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
        FABRIC_COMPLETED => at.read_number(Q::FabricInfo, place),
        _ => Err(ABSENT.to_owned()),
    }
}

/// Returns the `nvmlReturn_t` of the attempt to join the fabric, as text.
fn format_join_status(code: i128) -> String {
    match u32::try_from(code) {
        Ok(0) => "Success".to_owned(),
        Ok(code) => format_code(Code(code)),
        Err(_) => ABSENT.to_owned(),
    }
}

/// Defines an item for a two-bit value in the health mask, where 0 means unknown. `bit` is the
/// position of the lower bit.
const fn fabric_condition_item(
    title: &'static str,
    tag: &'static str,
    bit: &'static [i128],
) -> Item {
    computed_item(title, tag, |at| {
        format_fabric_health(at, at.argument_at(0), 0x3, &[ABSENT, "True", "False"])
    })
    .with_position_numbers(bit)
}

fn format_fabric_health(at: &Cursor<'_>, shift: u32, width: i128, names: &[&str]) -> String {
    format_or_reason(read_joined_number(at, 3), |mask| {
        format_named_number(mask >> shift & width, names)
    })
}
