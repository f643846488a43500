//! A simulated GPU's constant data.

use super::{Architecture, LinkState, Scenario, noise::Noise, scenario::GpuSettings};
use crate::vendor::format_uuid;

/// The total memory of an H200, as reported by its driver.
const H200_BYTES: u64 = 143_771 << 20;
/// The power limit of an H200.
pub(super) const H200_WATTS: f64 = 700.0;
/// The lowest power limit that a board supports, as a share of its default limit.
const MIN_LIMIT_SHARE: f64 = 200.0 / 700.0;

/// A simulated GPU's constant data.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each field is an independent property of a board"
)]
pub struct GpuIdentity {
    /// The GPU's NVML index.
    pub index: u32,
    /// The GPU's UUID, for example `GPU-8a1f0c3e-...`. It depends only on the seed and the index.
    pub uuid: String,
    /// The name, for example `NVIDIA H200`.
    pub name: String,
    /// The PCI domain: 15 for a GPU that shares the machine's memory, otherwise 0.
    pub pci_domain: u32,
    /// The PCI bus number. The device number is always 0.
    pub pci_bus: u32,
    /// The PCI bus ID, for example `00000000:10:00.0`.
    pub pci_bus_id: String,
    pub serial: String,
    pub part_number: String,
    pub vbios_version: String,
    /// The chip's generation.
    pub architecture: Architecture,
    /// Whether the board is a `GeForce`, which has fans, but no ECC, MIG or `NVLinks`.
    pub geforce: bool,
    /// Whether the memory has ECC, which corrects and counts errors.
    pub ecc: bool,
    /// The number of CUDA cores.
    pub cores: u32,
    /// The memory bus width in bits.
    pub memory_bus_bits: u32,
    pub numa_node: u32,
    /// The total memory in bytes.
    pub memory_total_bytes: u64,
    /// Whether the GPU shares the machine's memory. Such a GPU is part of the processor package and
    /// has no power limit, memory clock, or fan of its own.
    pub unified_memory: bool,
    /// The current power limit, which is also the default and the maximum limit.
    pub power_limit_watts: f64,
    /// The minimum power limit that can be set.
    pub lowest_limit_watts: f64,
    /// The number of fans.
    pub fans: u32,
    /// The `NVLinks`, by number.
    pub nvlinks: Vec<LinkState>,
    /// Whether the hardware has activity counters (GPM).
    pub counts_activity: bool,
    /// Whether the driver keeps the GPU initialized while no program uses it (persistence mode).
    pub persistence: bool,
    /// Whether the driver keeps accounts of processes.
    pub accounting: bool,
}

impl GpuIdentity {
    /// The highest PCIe generation that both board and slot support.
    pub const PCIE_GENERATION: u32 = 5;
    /// The maximum number of PCIe lanes that both the board and the slot have.
    pub const PCIE_WIDTH: u32 = 16;
    /// The temperature at which the chip shuts down.
    pub const SHUTDOWN_CELSIUS: u32 = 95;
    /// The temperature at which the hardware reduces the clocks.
    pub const SLOWDOWN_CELSIUS: u32 = 89;
    /// The chip temperature above which the driver reduces the clocks.
    pub const GPU_MAX_CELSIUS: u32 = 87;
    /// The memory temperature above which the driver reduces the clocks.
    pub const MEMORY_MAX_CELSIUS: u32 = 95;

    /// Returns `true` if the GPU can be divided into MIG devices.
    pub fn has_mig(&self) -> bool {
        self.architecture.has_mig() && !self.geforce && !self.unified_memory
    }

    /// Returns `true` if the GPU reports its distance to the temperature limit.
    pub fn reports_temperature_margin(&self) -> bool {
        self.architecture >= Architecture::Ada && !self.geforce && !self.unified_memory
    }

    /// Returns one `NVLink`'s traffic in KiB. `bytes` is the traffic over all links, which is
    /// divided evenly among the active links.
    pub fn link_traffic_kib(&self, bytes: f64, link: u32) -> u64 {
        let total = (bytes / 1024.0) as u64;
        let up = || self.nvlinks.iter().filter(|own| own.active);
        let (count, place) = (up().count() as u64, up().position(|own| own.link == link));
        place.map_or(0, |place| {
            total / count + u64::from((place as u64) < total % count)
        })
    }

    pub(super) fn new(scenario: &Scenario, index: u32) -> Self {
        let noise = Noise::new(scenario.seed, index);
        let own = scenario.settings_or_default(index);
        let name = own.name.clone();
        let name = name.unwrap_or_else(|| "NVIDIA H200".to_owned());
        let geforce = name.contains("GeForce");
        let unified_memory = own.unified_memory;
        let architecture = own.architecture.unwrap_or(Architecture::Hopper);
        // With a limit of 0, there would be no power to distribute.
        let limit_watts = own
            .power_limit_watts
            .map_or(H200_WATTS, |watts| watts.0.max(1.0));
        // PCI domain 0 has room for 64 boards, starting at bus 0x10.
        let (pci_domain, pci_bus) = if unified_memory {
            (0xF, 1 + index)
        } else {
            (0, 0x10 + index)
        };
        Self {
            index,
            uuid: format!("GPU-{}", make_uuid(noise.derive_stream("uuid"))),
            name,
            pci_domain,
            pci_bus,
            pci_bus_id: format!("{pci_domain:08X}:{pci_bus:02X}:00.0"),
            serial: format!(
                "165{:010}",
                noise.derive_stream("serial").random_bits(0) % 10_000_000_000
            ),
            part_number: "692-2G520-0282-000".to_owned(),
            vbios_version: "96.00.A5.00.1A".to_owned(),
            architecture,
            geforce,
            ecc: own.ecc.unwrap_or(!geforce && !unified_memory),
            cores: 16_896,
            memory_bus_bits: 6_144,
            // The machine has two sockets with four GPUs each.
            numa_node: index / 4 % 2,
            memory_total_bytes: own.memory.map_or(H200_BYTES, |memory| memory.0),
            unified_memory,
            power_limit_watts: limit_watts,
            lowest_limit_watts: limit_watts * MIN_LIMIT_SHARE,
            fans: own
                .fans
                .map_or(if geforce { 2 } else { 0 }, |fans| fans.0 as u32),
            nvlinks: make_nvlinks(scenario, &own, geforce),
            counts_activity: own
                .gpm
                .unwrap_or(architecture.supports_gpm() && !geforce && !unified_memory),
            persistence: own.persistence.unwrap_or(true),
            accounting: own.accounting,
        }
    }
}

fn make_nvlinks(scenario: &Scenario, own: &GpuSettings, geforce: bool) -> Vec<LinkState> {
    let usual = if geforce { 0 } else { scenario.usual_nvlinks };
    let count = own.nvlinks.map_or(usual, |links| links.0 as u32);
    let is_down = |link| own.nvlinks_down.iter().any(|down| *down.get_ref() == link);
    (0..count)
        .map(|link| LinkState::new(link, !is_down(link)))
        .collect()
}

/// Returns 128 random bits in the format of the driver's UUIDs.
pub(super) fn make_uuid(noise: Noise) -> String {
    format_uuid(noise.random_bits(0), noise.random_bits(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_of_links_adds_up_to_total() {
        let toml = "[[gpu]]\nindex = 0\nnvlinks = 18\nnvlinks_down = [3]";
        let gpu = GpuIdentity::new(&Scenario::from_toml(toml, "test").unwrap(), 0);
        let shares: Vec<u64> = (0..18)
            .map(|link| gpu.link_traffic_kib(1024.0 * 1_000_003.0, link))
            .collect();
        assert_eq!(shares.iter().sum::<u64>(), 1_000_003);
        assert_eq!(shares[3], 0);
        assert!(shares[0] > shares[17] && shares[17] > 0);
    }
}
