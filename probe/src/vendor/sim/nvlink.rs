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
        let (replays, recoveries, crc_errors) = if active {
            (0, 0, [0, 0])
        } else {
            (12, 3, [40, 7])
        };
        let remote_bus_id = format!("00000000:{remote_bus:02X}:00.0");
        Self {
            link,
            active,
            remote_bus,
            remote_bus_id,
            replays,
            recoveries,
            crc_errors,
        }
    }
}
