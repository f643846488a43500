//! What never changes about a simulated GPU.

use super::{Architecture, LinkState, Scenario, noise::Noise, scenario::GpuSettings};

/// All memory of an H200, as its driver reports it.
const H200_BYTES: u64 = 143_771 << 20;
/// Its power limit.
pub(super) const H200_WATTS: f64 = 700.0;
/// How low the limit of a board can be set, as a share of its default.
const LOWEST_LIMIT: f64 = 200.0 / 700.0;

/// What never changes about a GPU.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that a board has or has not"
)]
pub struct GpuIdentity {
    /// NVML's index.
    pub index: u32,
    /// As `GPU-8a1f0c3e-...`; the same for the same seed and index.
    pub uuid: String,
    /// As `NVIDIA H200`.
    pub name: String,
    /// The PCI domain, which is 0 for boards and 15 for a GPU that shares the machine's memory.
    pub pci_domain: u32,
    /// The PCI bus; the device on it is 0.
    pub pci_bus: u32,
    /// As `00000000:10:00.0`.
    pub pci_bus_id: String,
    /// The board's serial number.
    pub serial: String,
    /// The board's part number.
    pub part_number: String,
    /// The version of its firmware.
    pub vbios_version: String,
    /// The generation of its chip.
    pub architecture: Architecture,
    /// Whether it is made for players rather than for data centers: with fans, without ECC, MIG and
    /// `NVLinks`.
    pub geforce: bool,
    /// Whether its memory corrects errors, and counts them.
    pub ecc: bool,
    /// CUDA cores.
    pub cores: u32,
    /// Width of the bus to device memory.
    pub memory_bus_bits: u32,
    /// The nearest NUMA node.
    pub numa_node: u32,
    /// All its memory.
    pub memory_total_bytes: u64,
    /// Whether that is the machine's memory. Such a GPU is part of the processor's package: it has
    /// no power limit, memory clock and fan of its own either.
    pub unified_memory: bool,
    /// The power limit in force, which is its default and its highest.
    pub power_limit_watts: f64,
    /// The lowest power limit.
    pub lowest_limit_watts: f64,
    /// Fans.
    pub fans: u32,
    /// Each `NVLink`, by its number.
    pub nvlinks: Vec<LinkState>,
    /// Whether the hardware counts activity (GPM).
    pub counts_activity: bool,
    /// Whether the driver keeps it initialized without clients.
    pub persistence: bool,
    /// Whether the driver accounts for its processes.
    pub accounting: bool,
}

impl GpuIdentity {
    /// The highest generation of PCIe that board and slot can do.
    pub const PCIE_GENERATION: u32 = 5;
    /// The most lanes that board and slot have.
    pub const PCIE_WIDTH: u32 = 16;
    /// The chip switches itself off.
    pub const SHUTDOWN_CELSIUS: u32 = 95;
    /// The hardware lowers the clocks.
    pub const SLOWDOWN_CELSIUS: u32 = 89;
    /// The software lowers the clocks for the chip's sake.
    pub const GPU_MAX_CELSIUS: u32 = 87;
    /// The software lowers the clocks for the memory's sake.
    pub const MEMORY_MAX_CELSIUS: u32 = 95;

    /// Whether it can be divided into MIG devices.
    pub fn has_mig(&self) -> bool {
        self.architecture.has_mig() && !self.geforce && !self.unified_memory
    }

    /// Whether it tells its temperature by the distance to its limit.
    pub fn has_margin(&self) -> bool {
        self.architecture >= Architecture::Ada && !self.geforce && !self.unified_memory
    }

    /// What has gone through one `NVLink`, in KiB, where so many bytes have gone through all of
    /// them. What the links carry adds up; one that is down carries nothing.
    pub fn link_kib(&self, bytes: f64, link: u32) -> u64 {
        let total = (bytes / 1024.0) as u64;
        let up = || self.nvlinks.iter().filter(|own| own.active);
        let (count, place) = (up().count() as u64, up().position(|own| own.link == link));
        place.map_or(0, |place| {
            total / count + u64::from((place as u64) < total % count)
        })
    }

    pub(super) fn new(scenario: &Scenario, index: u32) -> Self {
        let noise = Noise::new(scenario.seed, index);
        let own = scenario.settings(index);
        let name = own
            .and_then(|own| own.name.clone())
            .unwrap_or_else(|| "NVIDIA H200".to_owned());
        let geforce = name.contains("GeForce");
        let unified_memory = own.is_some_and(|own| own.unified_memory);
        let architecture = own
            .and_then(|own| own.architecture)
            .unwrap_or(Architecture::Hopper);
        // A limit of 0 would leave no power to share out.
        let limit_watts = own
            .and_then(|own| own.power_limit_watts)
            .map_or(H200_WATTS, |watts| watts.0.max(1.0));
        // Domain 0 has room for 64 boards from bus 10 on.
        let (pci_domain, pci_bus) = if unified_memory {
            (0xF, 1 + index)
        } else {
            (0, 0x10 + index)
        };
        Self {
            index,
            uuid: format!("GPU-{}", uuid(noise.stream("uuid"))),
            name,
            pci_domain,
            pci_bus,
            pci_bus_id: format!("{pci_domain:08X}:{pci_bus:02X}:00.0"),
            serial: format!("165{:010}", noise.stream("serial").bits(0) % 10_000_000_000),
            part_number: "692-2G520-0282-000".to_owned(),
            vbios_version: "96.00.A5.00.1A".to_owned(),
            architecture,
            geforce,
            ecc: own
                .and_then(|own| own.ecc)
                .unwrap_or(!geforce && !unified_memory),
            cores: 16_896,
            memory_bus_bits: 6_144,
            // Two sockets with four GPUs each.
            numa_node: index / 4 % 2,
            memory_total_bytes: own
                .and_then(|own| own.memory)
                .map_or(H200_BYTES, |memory| memory.0),
            unified_memory,
            power_limit_watts: limit_watts,
            lowest_limit_watts: limit_watts * LOWEST_LIMIT,
            fans: own
                .and_then(|own| own.fans)
                .map_or(if geforce { 2 } else { 0 }, |fans| fans.0 as u32),
            nvlinks: nvlinks(scenario, own, geforce),
            counts_activity: own
                .and_then(|own| own.gpm)
                .unwrap_or(architecture.counts_activity() && !geforce && !unified_memory),
            persistence: own.and_then(|own| own.persistence).unwrap_or(true),
            accounting: own.is_some_and(|own| own.accounting),
        }
    }
}

fn nvlinks(scenario: &Scenario, own: Option<&GpuSettings>, geforce: bool) -> Vec<LinkState> {
    let usual = if geforce { 0 } else { scenario.usual_nvlinks };
    let count = own
        .and_then(|own| own.nvlinks)
        .map_or(usual, |links| links.0 as u32);
    let is_down =
        |link| own.is_some_and(|own| own.nvlinks_down.iter().any(|down| *down.get_ref() == link));
    (0..count)
        .map(|link| LinkState::new(link, !is_down(link)))
        .collect()
}

/// 128 random bits as the driver writes them.
pub(super) fn uuid(noise: Noise) -> String {
    let digits = format!("{:016x}{:016x}", noise.bits(0), noise.bits(1));
    format!(
        "{}-{}-{}-{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_links_carry_adds_up() {
        let toml = "[[gpu]]\nindex = 0\nnvlinks = 18\nnvlinks_down = [3]";
        let gpu = GpuIdentity::new(&Scenario::from_toml(toml, "test").unwrap(), 0);
        let shares: Vec<u64> = (0..18)
            .map(|link| gpu.link_kib(1024.0 * 1_000_003.0, link))
            .collect();
        assert_eq!(shares.iter().sum::<u64>(), 1_000_003);
        assert_eq!(shares[3], 0);
        assert!(shares[0] > shares[17] && shares[17] > 0);
    }
}
