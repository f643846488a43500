//! Plain numbers: what a simulated GPU does at one moment.

use std::sync::Arc;

use crate::model::{MigInstance, Owner, ProcessKind, ThrottleReason};

use super::{MigState, encoder::EncoderSession};

/// A GPU at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuState {
    /// Share of time in which a kernel ran, 0 to 100.
    pub gpu_percent: u32,
    /// Share of time in which device memory was read or written, 0 to 100.
    pub memory_percent: u32,
    /// Video encoder, 0 to 100.
    pub encoder_percent: u32,
    /// Video decoder, 0 to 100.
    pub decoder_percent: u32,
    /// JPEG decoder, 0 to 100.
    pub jpeg_percent: u32,
    /// Optical flow accelerator, 0 to 100.
    pub ofa_percent: u32,
    /// All memory; the sum of the three below.
    pub memory_total_bytes: u64,
    /// Allocated by processes.
    pub memory_used_bytes: u64,
    /// Kept by driver and firmware.
    pub memory_reserved_bytes: u64,
    /// Not allocated.
    pub memory_free_bytes: u64,
    /// Draw, averaged over the last second.
    pub power_watts: f64,
    /// Draw at this very moment.
    pub power_instant_watts: f64,
    /// The limit in force.
    pub power_limit_watts: f64,
    /// The chip.
    pub temperature_celsius: f64,
    /// The memory.
    pub memory_temperature_celsius: f64,
    /// How much warmer the chip may get before its clocks are lowered; below 0 where it is too
    /// warm.
    pub margin_celsius: f64,
    /// How fast the fans turn, in percent of their full speed; all alike. It says nothing where
    /// there is none.
    pub fan_percent: u32,
    /// Clock of the streaming multiprocessors and of the graphics engine.
    pub sm_mhz: u32,
    /// Clock of the memory.
    pub memory_mhz: u32,
    /// Clock of the video engines.
    pub video_mhz: u32,
    /// P-state, 0 to 15.
    pub performance_state: u8,
    /// What holds the clocks down.
    pub throttle_reasons: Vec<ThrottleReason>,
    /// Generation of the PCI Express link.
    pub pcie_generation: u32,
    /// Lanes of the PCI Express link.
    pub pcie_width: u32,
    /// Used of the window through which the host reaches device memory.
    pub bar1_used_bytes: u64,
    /// What its parts do.
    pub counters: Counters,
    /// Its MIG devices, in NVML's order; empty where MIG is off.
    pub mig: Vec<MigState>,
    /// The processes that hold it, in the order of the scenario.
    pub processes: Vec<ProcessState>,
}

/// What the hardware of a GPU counts: shares of time, 0 to 100, and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// Multiprocessors with a warp.
    pub sm_percent: f64,
    /// Resident warps of those possible.
    pub occupancy_percent: f64,
    /// Tensor cores, on half precision.
    pub tensor_percent: f64,
    /// Single-precision units.
    pub fp32_percent: f64,
    /// Integer units.
    pub integer_percent: f64,
    /// Bandwidth of device memory.
    pub dram_bandwidth_percent: f64,
    /// PCIe, from the GPU.
    pub pcie_tx_bytes_per_second: f64,
    /// PCIe, to the GPU.
    pub pcie_rx_bytes_per_second: f64,
    /// All `NVLinks`, from the GPU.
    pub nvlink_tx_bytes_per_second: f64,
    /// All `NVLinks`, to the GPU.
    pub nvlink_rx_bytes_per_second: f64,
}

impl GpuState {
    /// The window through which the host reaches an H200's memory.
    pub const BAR1_BYTES: u64 = 262_144 << 20;

    /// A MIG device of it.
    pub fn mig_device(&self, instance: MigInstance) -> Option<&MigState> {
        self.mig.iter().find(|device| device.instance == instance)
    }

    /// Turns per minute of each fan.
    pub fn fan_rpm(&self) -> u32 {
        self.fan_percent * 34
    }
}

impl Counters {
    /// What kernels make of it that wait for another GPU, as measured of a collective of NCCL's on
    /// an H200: they hold some multiprocessors, and nothing moves.
    pub(super) fn of_waiting() -> Self {
        Self {
            sm_percent: 18.18,
            occupancy_percent: 4.83,
            ..Self::default()
        }
    }

    /// What a program that keeps the GPU busy for these shares of time makes of it: mostly matrix
    /// products, fed through PCIe, with gradients that go round through NVLink.
    pub(super) fn of(gpu_percent: f64, memory_percent: f64) -> Self {
        Self {
            sm_percent: gpu_percent * 0.96,
            occupancy_percent: gpu_percent * 0.22,
            tensor_percent: gpu_percent * 0.58,
            fp32_percent: gpu_percent * 0.11,
            integer_percent: gpu_percent * 0.07,
            dram_bandwidth_percent: memory_percent,
            pcie_tx_bytes_per_second: gpu_percent * 1.5e6,
            pcie_rx_bytes_per_second: gpu_percent * 2.4e7,
            nvlink_tx_bytes_per_second: gpu_percent * 4.1e8,
            nvlink_rx_bytes_per_second: gpu_percent * 4.0e8,
        }
    }
}

/// A process on a simulated GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessState {
    /// Its PID.
    pub pid: u32,
    /// What it does there.
    pub kind: ProcessKind,
    /// What it holds; `None` where the driver cannot tell.
    pub memory_bytes: Option<u64>,
    /// Share of time in which its kernels ran, 0 to 100.
    pub sm_percent: u32,
    /// Share of time in which it read or wrote device memory, 0 to 100.
    pub memory_percent: u32,
    /// Video encoder, 0 to 100.
    pub encoder_percent: u32,
    /// Video decoder, 0 to 100.
    pub decoder_percent: u32,
    /// The video streams that the process encodes.
    pub encoder_sessions: Arc<[EncoderSession]>,
    /// The program's name, where the scenario has one.
    pub name: Option<Arc<str>>,
    /// Its user's login name, where the scenario has one.
    pub user: Option<Arc<str>>,
    /// Its command line, where the scenario has one.
    pub command: Option<Arc<str>>,
    /// What it holds of the host's memory, where the scenario says so.
    pub host_memory_bytes: Option<u64>,
    /// Whether a debugger is attached.
    pub traced: bool,
    /// When it started, in seconds of the timeline; below 0 where it is older.
    pub started_s: f64,
    /// Whether it computes through the Multi-Process Service.
    pub mps: bool,
    /// The part of the GPU that it runs in.
    pub mig: Option<MigInstance>,
    /// What it belongs to.
    pub owner: Owner,
}
