//! Items for the GPU's PCI bus ID and PCIe link.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::OutputFormat,
    format::{ABSENT, format_count, format_kilobytes_per_second, format_name, format_or_reason},
    item::{Item, TITLE_AS_TAG, computed_item, field_item, group_item, number_item, text_item},
};

pub(super) static ITEMS: &[Item] = &[group_item("PCI", TITLE_AS_TAG)
    .with_slow_queries(&[Q::PcieThroughput(0), Q::PcieThroughput(1)])
    .with_items(&[
        hexadecimal_item("Bus", "pci_bus", &[1, 2]),
        hexadecimal_item("Device", "pci_device", &[2, 2]),
        hexadecimal_item("Domain", "pci_domain", &[0, 4]),
        hexadecimal_item("Base Classcode", "pci_base_class", &[5, 1]),
        hexadecimal_item("Sub Classcode", "pci_sub_class", &[6, 1]),
        hexadecimal_item("Device Id", "pci_device_id", &[3, 8]),
        text_item("Bus Id", "pci_bus_id", Q::BusId),
        hexadecimal_item("Sub System Id", "pci_sub_system_id", &[4, 8]),
        group_item("GPU Link Info", "pci_gpu_link_info").with_items(&[
            group_item("PCIe Generation", "pcie_gen").with_items(&[
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
            ]),
            group_item("Link Width", "link_widths").with_items(&[
                number_item("Max", "max_link_width", Q::MaxPcieWidth, 0, format_lanes),
                number_item(
                    "Current",
                    "current_link_width",
                    Q::PcieWidth,
                    0,
                    format_lanes,
                ),
            ]),
        ]),
        group_item("Bridge Chip", "pci_bridge_chip").with_items(&[
            number_item("Type", "bridge_chip_type", Q::BridgeChips, 0, |chip| {
                format_name(chip, &["PLX", "BRO4"])
            }),
            number_item("Firmware", "bridge_chip_fw", Q::BridgeChips, 1, |version| {
                format!("0x{version:X}")
            }),
        ]),
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
    ])];

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
    .with_numbers(number)
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
