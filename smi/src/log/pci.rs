//! The GPU's place on the bus, and its link.

use gpumon_probe::vendor::nvml::query::Query;

use super::{
    at::{At, Form},
    format::{ABSENT, count, format_or_reason, kilobytes_a_second, named},
    item::{Item, group, value},
};

/// The whole of it.
pub(super) static ITEMS: &[Item] = &[group(
    "PCI",
    "pci",
    &[
        value("Bus", "pci_bus", |at| hexadecimal(at, 1, 2)),
        value("Device", "pci_device", |at| hexadecimal(at, 2, 2)),
        value("Domain", "pci_domain", |at| hexadecimal(at, 0, 4)),
        value("Base Classcode", "pci_base_class", |at| hexadecimal(at, 5, 1)),
        value("Sub Classcode", "pci_sub_class", |at| hexadecimal(at, 6, 1)),
        value("Device Id", "pci_device_id", |at| hexadecimal(at, 3, 8)),
        value("Bus Id", "pci_bus_id", |at| at.text(Query::BusId)),
        value("Sub System Id", "pci_sub_system_id", |at| hexadecimal(at, 4, 8)),
        group(
            "GPU Link Info",
            "pci_gpu_link_info",
            &[
                group(
                    "PCIe Generation",
                    "pcie_gen",
                    &[
                        value("Max", "max_link_gen", |at| at.format(Query::MaxPcieGeneration, 0, count)),
                        value("Current", "current_link_gen", |at| at.format(Query::PcieGeneration, 0, count)),
                        value("Device Current", "device_current_link_gen", |at| {
                            at.format(Query::PcieGeneration, 0, count)
                        }),
                        value("Device Max", "max_device_link_gen", |at| {
                            at.format(Query::GpuMaxPcieGeneration, 0, count)
                        }),
                        value("Host Max", "max_host_link_gen", |at| at.format(Query::HostMaxPcieGeneration, 0, count)),
                    ],
                ),
                group(
                    "Link Width",
                    "link_widths",
                    &[
                        value("Max", "max_link_width", |at| at.format(Query::MaxPcieWidth, 0, lanes)),
                        value("Current", "current_link_width", |at| at.format(Query::PcieWidth, 0, lanes)),
                    ],
                ),
            ],
        ),
        group(
            "Bridge Chip",
            "pci_bridge_chip",
            &[
                value("Type", "bridge_chip_type", |at| {
                    at.format(Query::BridgeChips, 0, |chip| named(chip, &["PLX", "BRO4"]))
                }),
                value("Firmware", "bridge_chip_fw", |at| {
                    at.format(Query::BridgeChips, 1, |version| format!("0x{version:X}"))
                }),
            ],
        ),
        value("Replays Since Reset", "replay_counter", |at| at.format(Query::PcieReplays, 0, count)),
        value("Replay Number Rollovers", "replay_rollover_counter", |at| at.format_field(REPLAY_ROLLOVERS, 0, count)),
        value("Tx Throughput", "tx_util", |at| at.format(Query::PcieThroughput(0), 0, kilobytes_a_second)),
        value("Rx Throughput", "rx_util", |at| at.format(Query::PcieThroughput(1), 0, kilobytes_a_second)),
        value("Atomic Caps Outbound", "atomic_caps_outbound", |at| at.format_field(ATOMICS_OUTBOUND, 0, atomics)),
        value("Atomic Caps Inbound", "atomic_caps_inbound", |at| at.format_field(ATOMICS_INBOUND, 0, atomics)),
    ],
)
.ahead(&[Query::PcieThroughput(0), Query::PcieThroughput(1)])];

/// `NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER`.
const REPLAY_ROLLOVERS: u32 = 95;
/// `NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK`.
const ATOMICS_OUTBOUND: u32 = 228;
/// `NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK`.
const ATOMICS_INBOUND: u32 = 229;

/// A number of the PCI information; the text puts `0x` before it, the XML does not.
fn hexadecimal(at: &At<'_>, place: usize, digits: usize) -> String {
    let prefix = if at.form == Form::Text { "0x" } else { "" };
    format_or_reason(at.number(Query::PciInfo, place), |number| format!("{prefix}{number:0digits$X}"))
}

fn lanes(number: i128) -> String {
    format!("{number}x")
}

/// The names of a mask's bits, with a space behind each.
fn atomics(mask: i128) -> String {
    let names = ["FETCHADD_32", "FETCHADD_64", "SWAP_32", "SWAP_64", "CAS_32", "CAS_64", "CAS_128"];
    let bits = names.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
    let text: String = bits.flat_map(|(_, name)| [name, " "]).collect();
    if text.is_empty() { ABSENT.to_owned() } else { text }
}
