//! The simulated hardware: chip generations and their capabilities, clock speeds, and `NVLinks`.

use serde::Deserialize;

/// An NVIDIA chip generation, for example Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// The generation of the Tesla P100.
    Pascal,
    /// The generation of the Tesla V100.
    Volta,
    /// The generation of the T4.
    Turing,
    /// The generation of the A100.
    Ampere,
    /// The generation of the L4.
    Ada,
    /// The generation of the H200.
    Hopper,
    /// The generation of the B200.
    Blackwell,
}

impl Architecture {
    /// Returns the major and minor CUDA compute capability of the generation's data-center board.
    pub fn compute_capability(self) -> [u8; 2] {
        match self {
            Self::Pascal => [6, 0],
            Self::Volta => [7, 0],
            Self::Turing => [7, 5],
            Self::Ampere => [8, 0],
            Self::Ada => [8, 9],
            Self::Hopper => [9, 0],
            Self::Blackwell => [10, 0],
        }
    }

    /// Returns `true` if the hardware has activity counters (GPM).
    pub fn supports_gpm(self) -> bool {
        self >= Self::Hopper
    }

    /// Returns `true` if the memory can replace defective rows. Older generations retire whole
    /// pages instead.
    pub fn remaps_rows(self) -> bool {
        self >= Self::Ampere
    }

    /// Returns `true` if the GPU can be divided into MIG devices.
    pub fn has_mig(self) -> bool {
        self >= Self::Ampere && self != Self::Ada
    }
}

// The clock speeds of a simulated H200.

/// The maximum clock of the multiprocessors, in MHz.
pub const MAX_SM_MHZ: u32 = 1_980;

/// The memory clock, which is constant, in MHz.
pub const MEMORY_MHZ: u32 = 3_201;

/// The maximum clock of the video engines, in MHz.
pub const MAX_VIDEO_MHZ: u32 = 1_545;

/// The multiprocessors' clock when no process uses the GPU, in MHz.
pub(super) const IDLE_SM_MHZ: u32 = 345;

// The `NVLinks` of a simulated H200. They lead to the four `NVSwitches` of its machine.

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
    /// Creates a link. The error counters of an inactive link are not 0, as if errors had occurred
    /// before.
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
