//! The `NVLinks` of a simulated H200, which lead to the four `NVSwitches` of its machine.

/// The number of `NVLinks` of an H200.
pub(super) const MAX_NVLINKS: u32 = 18;
/// The rate of an `NVLink` 4.0 in each direction, in MB/s, as reported by the driver.
pub const NVLINK_MB_PER_SECOND: u32 = 26_562;
/// The number of `NVSwitches` in a machine.
const SWITCH_COUNT: u32 = 4;

/// An `NVLink` of a simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// The link's number within the GPU.
    pub link: u32,
    pub active: bool,
    /// The PCI bus number of the switch at the link's other end. The PCI domain is 0.
    pub remote_bus: u32,
    /// The PCI bus ID of the switch, for example `00000000:04:00.0`.
    pub remote_bus_id: String,
    /// The number of packets that have been retransmitted since the driver was loaded.
    pub replays: u64,
    /// The number of times that the link has been retrained.
    pub recoveries: u64,
    /// The number of packets with a wrong checksum, and the number of data units (flits) with a
    /// wrong checksum.
    pub crc_errors: [u64; 2],
}

impl LinkState {
    /// Creates a link. An inactive link has had errors in the past.
    pub(super) fn new(link: u32, active: bool) -> Self {
        let remote_bus = 4 + link % SWITCH_COUNT;
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
