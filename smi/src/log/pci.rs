//! The PCI bus ID and link of the GPU.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Form,
    format::{ABSENT, count, format_or_reason, kilobytes_a_second, named},
    item::{Item, SAME, field, group, number, text, value},
};

pub(super) static ITEMS: &[Item] = &[group("PCI", SAME)
    .ahead(&[Q::PcieThroughput(0), Q::PcieThroughput(1)])
    .holds(&[
        hexadecimal("Bus", "pci_bus", &[1, 2]),
        hexadecimal("Device", "pci_device", &[2, 2]),
        hexadecimal("Domain", "pci_domain", &[0, 4]),
        hexadecimal("Base Classcode", "pci_base_class", &[5, 1]),
        hexadecimal("Sub Classcode", "pci_sub_class", &[6, 1]),
        hexadecimal("Device Id", "pci_device_id", &[3, 8]),
        text("Bus Id", "pci_bus_id", Q::BusId),
        hexadecimal("Sub System Id", "pci_sub_system_id", &[4, 8]),
        group("GPU Link Info", "pci_gpu_link_info").holds(&[
            group("PCIe Generation", "pcie_gen").holds(&[
                number("Max", "max_link_gen", Q::MaxPcieGeneration, 0, count),
                number("Current", "current_link_gen", Q::PcieGeneration, 0, count),
                number(
                    "Device Current",
                    "device_current_link_gen",
                    Q::PcieGeneration,
                    0,
                    count,
                ),
                number(
                    "Device Max",
                    "max_device_link_gen",
                    Q::GpuMaxPcieGeneration,
                    0,
                    count,
                ),
                number(
                    "Host Max",
                    "max_host_link_gen",
                    Q::HostMaxPcieGeneration,
                    0,
                    count,
                ),
            ]),
            group("Link Width", "link_widths").holds(&[
                number("Max", "max_link_width", Q::MaxPcieWidth, 0, lanes),
                number("Current", "current_link_width", Q::PcieWidth, 0, lanes),
            ]),
        ]),
        group("Bridge Chip", "pci_bridge_chip").holds(&[
            number("Type", "bridge_chip_type", Q::BridgeChips, 0, |chip| {
                named(chip, &["PLX", "BRO4"])
            }),
            number("Firmware", "bridge_chip_fw", Q::BridgeChips, 1, |version| {
                format!("0x{version:X}")
            }),
        ]),
        number(
            "Replays Since Reset",
            "replay_counter",
            Q::PcieReplays,
            0,
            count,
        ),
        field(
            "Replay Number Rollovers",
            "replay_rollover_counter",
            REPLAY_ROLLOVERS,
            count,
        ),
        number(
            "Tx Throughput",
            "tx_util",
            Q::PcieThroughput(0),
            0,
            kilobytes_a_second,
        ),
        number(
            "Rx Throughput",
            "rx_util",
            Q::PcieThroughput(1),
            0,
            kilobytes_a_second,
        ),
        field("Atomic Caps Outbound", SAME, ATOMICS_OUTBOUND, atomics),
        field("Atomic Caps Inbound", SAME, ATOMICS_INBOUND, atomics),
    ])];

/// The ID of the NVML field `NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER`.
const REPLAY_ROLLOVERS: u32 = 95;
/// The ID of the NVML field `NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK`.
const ATOMICS_OUTBOUND: u32 = 228;
/// The ID of the NVML field `NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK`.
const ATOMICS_INBOUND: u32 = 229;

/// Defines a line with a number of the PCI information, by its position and its number of digits.
/// Only the text has the prefix `0x`.
const fn hexadecimal(title: &'static str, tag: &'static str, number: &'static [i128]) -> Item {
    value(title, tag, |at| {
        let prefix = if at.form == Form::Text { "0x" } else { "" };
        let (place, digits) = (at.nth(0) as usize, at.nth(1) as usize);
        format_or_reason(at.number(Q::PciInfo, place), |number| {
            format!("{prefix}{number:0digits$X}")
        })
    })
    .about(number)
}

fn lanes(number: i128) -> String {
    format!("{number}x")
}

/// Returns the names of the bits in a mask, each followed by a space.
fn atomics(mask: i128) -> String {
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
