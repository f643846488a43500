//! `NVLinks`: an H200's go to the four `NVSwitches` of its machine.

/// How many links an H200 has.
pub(super) const MAX_NVLINKS: u32 = 18;
/// What a link of version 4.0 carries each way, in MB/s, as the driver says it.
pub const NVLINK_MB_PER_SECOND: u32 = 26_562;
/// The switches of a machine.
const SWITCHES: u32 = 4;

/// One link of a simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// Its number.
    pub link: u32,
    /// Whether it is up.
    pub active: bool,
    /// The PCI bus of the switch at its other end, in domain 0.
    pub remote_bus: u32,
    /// As `00000000:04:00.0`.
    pub remote_bus_id: String,
    /// Packets that were sent again since the driver was loaded.
    pub replays: u64,
    /// How often it had to be trained anew.
    pub recoveries: u64,
    /// Packets and data that arrived with a wrong checksum.
    pub crc_errors: [u64; 2],
}

impl LinkState {
    /// A link; one that is down has had its errors before.
    pub(super) fn new(link: u32, active: bool) -> Self {
        let remote_bus = 4 + link % SWITCHES;
        let (replays, recoveries, crc_errors) = if active { (0, 0, [0, 0]) } else { (12, 3, [40, 7]) };
        let remote_bus_id = format!("00000000:{remote_bus:02X}:00.0");
        Self { link, active, remote_bus, remote_bus_id, replays, recoveries, crc_errors }
    }
}

/// The share of one link in what all carry, in KiB: what the links carry adds up to `bytes`.
///
/// One that is down carries nothing.
pub(super) fn link_kib(bytes: f64, links: &[LinkState], link: u32) -> u64 {
    let total = (bytes / 1024.0) as u64;
    let up = links.iter().filter(|link| link.active).count() as u64;
    let place = links.iter().filter(|other| other.active).position(|other| other.link == link);
    place.map_or(0, |place| total / up + u64::from((place as u64) < total % up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_links_carry_adds_up() {
        let links: Vec<_> = (0..18).map(|link| LinkState::new(link, link != 3)).collect();
        let shares: Vec<u64> = (0..18).map(|link| link_kib(1024.0 * 1_000_003.0, &links, link)).collect();
        assert_eq!(shares.iter().sum::<u64>(), 1_000_003);
        assert_eq!(shares[3], 0);
        assert!(shares[0] > shares[17] && shares[17] > 0);
    }
}
