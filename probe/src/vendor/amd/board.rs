//! A card's constant properties.

use super::kfd::KfdNode;
use crate::{
    bounded,
    model::{Absence, Board, Gpu, MaxClocks, PowerLimits, Reading, Thresholds, Vendor},
    vendor::drm::{Attributes, Card, Hwmon, PciePort, add_vendor_name, generation_from_speed},
};

/// The lists of product names that AMD's drivers install. They are sorted by PCI device ID and
/// revision.
const NAME_LISTS: [&str; 2] = [
    "/usr/share/libdrm/amdgpu.ids",
    "/opt/amdgpu/share/libdrm/amdgpu.ids",
];

/// The maximum size of a product name list, in bytes.
const MAX_LIST_BYTES: usize = 1 << 20;

/// Returns a card's permanent identifier: its unique ID in `ROCm`'s format, or its PCI slot if it
/// has no unique ID.
fn make_uuid(card: &Card) -> String {
    match card.device.read_text("unique_id") {
        Ok(id) if id.bytes().any(|digit| digit != b'0') => format!("GPU-{}", id.to_lowercase()),
        _ => card.slot_id(),
    }
}

/// Identifies a card using only files that do not wake it. All other fields are absent, with
/// `reason` as the reason.
pub(super) fn identify_card(card: &Card, index: u32, reason: &Absence) -> Gpu {
    Gpu {
        vendor: Vendor::Amd,
        vendor_index: Some(index),
        uuid: Some(make_uuid(card)),
        name: find_name(card),
        pci_bus_id: Reading::Now(card.bus_id.clone()),
        ..Gpu::new_unidentified(index, reason)
    }
}

/// Returns the card's product name, including the vendor name.
fn find_name(card: &Card) -> Reading<String> {
    let vendor = Vendor::Amd;
    let known = card
        .device
        .read_text("product_name")
        .ok()
        .or_else(|| find_amd_name(card));
    known
        .map(|name| add_vendor_name(vendor, name))
        .or_else(|| card.find_name(vendor))
        .ok_or(Absence::Unknown)
        .into()
}

/// Finds the card's product name in lists with lines such as `744C, C8, AMD Radeon RX 7900 XTX`.
fn find_amd_name(card: &Card) -> Option<String> {
    let (device, revision) = (card.pci_id?.1, card.device.read_hex("revision").ok()?);
    let (device, revision) = (format!("{device:04X}"), format!("{revision:02X}"));
    NAME_LISTS.iter().find_map(|list| {
        let text = bounded::read_text(list, MAX_LIST_BYTES).ok()?;
        let mut lines = text.lines().map(|line| line.split(',').map(str::trim));
        lines.find_map(|mut parts| {
            let is_own = parts.next()? == device && parts.next()? == revision;
            is_own.then(|| parts.next().map(str::to_owned))?
        })
    })
}

/// Reads the card's board information, which never changes.
pub(super) fn read_board(
    card: &Card,
    port: &PciePort,
    hwmon: &Hwmon,
    node: Option<&KfdNode>,
) -> Board {
    let text = |name: &str| Reading::from(card.device.read_text(name).and_then(reject_blank));
    let unsupported = || Absence::NotSupported;
    let link = port.read_max_link();
    let slot = PcieLevels::read(&card.device);
    Board {
        serial: text("serial_number"),
        part_number: text("product_number"),
        vbios_version: text("vbios_version"),
        architecture: node
            .and_then(KfdNode::compiler_target)
            .ok_or_else(unsupported)
            .into(),
        memory_bus_bits: node
            .and_then(KfdNode::memory_bus_bits)
            .ok_or_else(unsupported)
            .into(),
        numa_node: card.numa_node().into(),
        pcie_max_generation: slot
            .and_then(|slot| generation_from_speed(slot.gigatransfers))
            .map_or(link.generation, Ok)
            .into(),
        pcie_max_width: slot
            .map(|slot| {
                link.width
                    .clone()
                    .map_or(slot.lanes, |own| own.min(slot.lanes))
            })
            .map_or(link.width, Ok)
            .into(),
        max_clocks: MaxClocks {
            graphics_mhz: read_highest_clock(&card.device, "pp_dpm_sclk").into(),
            sm_mhz: read_highest_clock(&card.device, "pp_dpm_sclk").into(),
            memory_mhz: read_highest_clock(&card.device, "pp_dpm_mclk").into(),
            video_mhz: read_highest_clock(&card.device, "pp_dpm_vclk").into(),
        },
        power_limits: read_power_limits(hwmon),
        thresholds: read_thresholds(hwmon),
        ..Board::new_absent(&Absence::NotSupported)
    }
}

/// Rejects empty strings and strings of zeros, which boards without a serial number report.
fn reject_blank(text: String) -> Result<String, Absence> {
    if text.bytes().all(|letter| letter == b'0') {
        Err(Absence::NotSupported)
    } else {
        Ok(text)
    }
}

/// Rejects 0, which some products report for a sensor or a limit that they do not have.
pub(super) fn reject_zero(value: f64) -> Result<f64, Absence> {
    if value > 0.0 {
        Ok(value)
    } else {
        Err(Absence::NotSupported)
    }
}

fn read_power_limits(hwmon: &Hwmon) -> PowerLimits {
    let read = |file| hwmon.read_millionths(file).and_then(reject_zero);
    PowerLimits {
        default_watts: read("power1_cap_default").into(),
        min_watts: hwmon.read_millionths("power1_cap_min").into(),
        max_watts: read("power1_cap_max").into(),
    }
}

fn read_thresholds(hwmon: &Hwmon) -> Thresholds {
    let first = |labels: [&str; 2], limit: &str| {
        hwmon
            .read_celsius(labels[0], limit)
            .or_else(|_| hwmon.read_celsius(labels[1], limit))
    };
    Thresholds {
        shutdown_celsius: first(["junction", "edge"], "emergency").into(),
        slowdown_celsius: first(["junction", "edge"], "crit").into(),
        memory_max_celsius: hwmon.read_celsius("mem", "crit").into(),
        gpu_max_celsius: hwmon.read_celsius("edge", "crit").into(),
    }
}

/// Returns the highest clock in a file with lines such as `1: 2660Mhz *`. The order of the lines
/// differs between products.
fn read_highest_clock(device: &Attributes, file: &str) -> Result<u32, Absence> {
    let list = device.read_text(file)?;
    let clocks = list.lines().filter_map(|line| {
        let (_, clock) = line.split_once(": ")?;
        clock.split_once("Mhz")?.0.trim().parse().ok()
    });
    clocks.max().ok_or(Absence::NotSupported)
}

/// The speed per lane, in GT/s, and the number of lanes of a PCIe link at its fastest level.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PcieLevels {
    gigatransfers: f64,
    lanes: u32,
}

impl PcieLevels {
    /// Reads the fastest of the link levels that the driver lists, in lines such as `1: 16.0GT/s,
    /// x16 1143Mhz *`. Returns `None` if the driver lists no levels.
    fn read(device: &Attributes) -> Option<Self> {
        let list = device.read_text("pp_dpm_pcie").ok()?;
        let levels = list.lines().filter_map(|line| {
            let (speed, rest) = line.split_once(": ")?.1.split_once("GT/s, x")?;
            let lanes = rest.split_whitespace().next()?.parse().ok()?;
            Some(Self {
                gigatransfers: speed.trim().parse().ok()?,
                lanes,
            })
        });
        levels.max_by(|one, other| one.gigatransfers.total_cmp(&other.gigatransfers))
    }
}

/// Returns a GPU package's partition profile, for example `CPX/NPS1`.
pub(super) fn read_profile(device: &Attributes) -> Reading<String> {
    let compute = device.read_text("current_compute_partition");
    let memory = device.read_text("current_memory_partition");
    match (compute, memory) {
        (Ok(compute), Ok(memory)) => Reading::Now(format!("{compute}/{memory}")),
        (Ok(compute), Err(_)) => Reading::Now(compute),
        (Err(reason), _) => Reading::Absent(reason),
    }
}

/// Returns `true` if a GPU package is divided into partitions.
pub(super) fn is_partitioned(device: &Attributes) -> bool {
    let compute = device.read_text("current_compute_partition");
    compute.is_ok_and(|compute| ["DPX", "TPX", "QPX", "CPX"].contains(&compute.as_str()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn highest_clock_is_found_in_unsorted_list() {
        let folder = tempfile::tempdir().unwrap();
        let device = Attributes::new(folder.path());
        for (content, highest) in [
            (
                "S: 19Mhz *\n0: 500Mhz\n1: 3000Mhz \n2: 1200Mhz \n",
                Ok(3000),
            ),
            ("0: 300Mhz \n1: 1340Mhz *\n\0", Ok(1340)),
            ("\n", Err(Absence::NotSupported)),
            ("0: fast\n", Err(Absence::NotSupported)),
        ] {
            fs::write(folder.path().join("pp_dpm_sclk"), content).unwrap();
            assert_eq!(
                read_highest_clock(&device, "pp_dpm_sclk"),
                highest,
                "{content}"
            );
        }
    }

    #[test]
    fn best_pcie_level_has_highest_speed() {
        let folder = tempfile::tempdir().unwrap();
        let levels = "0: 2.5GT/s, x16 250Mhz \n1: 16.0GT/s, x8 1143Mhz *\n";
        fs::write(folder.path().join("pp_dpm_pcie"), levels).unwrap();
        let level = PcieLevels::read(&Attributes::new(folder.path())).unwrap();
        assert_eq!(
            level,
            PcieLevels {
                gigatransfers: 16.0,
                lanes: 8
            }
        );
    }
}
