//! The state of a simulated GPU at a certain time, as plain numbers.

use std::sync::Arc;

use crate::model::{MigInstance, Owner, ProcessKind, ThrottleReason};

use super::{MigState, encoder::EncoderSession};

/// The state of a simulated GPU at a certain time.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuState {
    /// The share of time during which a kernel ran, from 0 to 100.
    pub gpu_percent: u32,
    /// The share of time during which device memory was read or written, from 0 to 100.
    pub memory_percent: u32,
    /// The utilization of the video encoder, from 0 to 100.
    pub encoder_percent: u32,
    /// The utilization of the video decoder, from 0 to 100.
    pub decoder_percent: u32,
    /// The utilization of the JPEG decoder, from 0 to 100.
    pub jpeg_percent: u32,
    /// The utilization of the optical flow accelerator, from 0 to 100.
    pub ofa_percent: u32,
    /// The total memory, which is the sum of the used, reserved, and free memory.
    pub memory_total_bytes: u64,
    /// The memory that processes have allocated.
    pub memory_used_bytes: u64,
    /// The memory that the driver and the firmware reserve.
    pub memory_reserved_bytes: u64,
    /// The memory that is not allocated.
    pub memory_free_bytes: u64,
    /// The power draw, averaged over the last second.
    pub power_watts: f64,
    /// The instantaneous power draw.
    pub power_instant_watts: f64,
    /// The power limit that is in effect.
    pub power_limit_watts: f64,
    /// The chip's temperature.
    pub temperature_celsius: f64,
    /// The memory temperature.
    pub memory_temperature_celsius: f64,
    /// The distance between the chip's temperature and the temperature at which clocks are reduced.
    /// It is negative if the chip is hotter.
    pub margin_celsius: f64,
    /// The speed of all fans, in percent of the maximum. On boards without fans, this value is
    /// meaningless.
    pub fan_percent: u32,
    /// The clock of the multiprocessors and the graphics engine.
    pub sm_mhz: u32,
    /// The memory clock.
    pub memory_mhz: u32,
    /// The clock of the video engines.
    pub video_mhz: u32,
    /// The P-state, from 0 to 15.
    pub performance_state: u8,
    /// The reasons for reduced clocks.
    pub throttle_reasons: Vec<ThrottleReason>,
    /// The PCIe link's generation.
    pub pcie_generation: u32,
    /// The PCIe link's number of lanes.
    pub pcie_width: u32,
    /// The part of the BAR1 window that is in use. The host accesses device memory through this
    /// window.
    pub bar1_used_bytes: u64,
    /// The activity of the GPU's hardware units.
    pub counters: Counters,
    /// The MIG devices, in the order of their NVML indices. The list is empty if MIG mode is off.
    pub mig: Vec<MigState>,
    /// The processes that use the GPU, in the order of the scenario.
    pub processes: Vec<ProcessState>,
}

/// A GPU's hardware counters: shares of time from 0 to 100, and rates in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// The share of multiprocessors that have at least one warp.
    pub sm_percent: f64,
    /// The number of resident warps, as a share of the possible number.
    pub occupancy_percent: f64,
    /// The utilization of the tensor cores at half precision.
    pub tensor_percent: f64,
    /// The utilization of the single-precision units.
    pub fp32_percent: f64,
    /// The utilization of the integer units.
    pub integer_percent: f64,
    /// The utilization of the memory bandwidth.
    pub dram_bandwidth_percent: f64,
    /// The rate at which the GPU sends data over PCIe.
    pub pcie_tx_bytes_per_second: f64,
    /// The rate at which the GPU receives data over PCIe.
    pub pcie_rx_bytes_per_second: f64,
    /// The rate at which the GPU sends data over all `NVLinks`.
    pub nvlink_tx_bytes_per_second: f64,
    /// The rate at which the GPU receives data over all `NVLinks`.
    pub nvlink_rx_bytes_per_second: f64,
}

impl GpuState {
    /// The size of an H200's BAR1 window, through which the host accesses the GPU's memory.
    pub const BAR1_BYTES: u64 = 262_144 << 20;

    /// Returns the MIG device with the given instance, if it exists.
    pub fn mig_device(&self, instance: MigInstance) -> Option<&MigState> {
        self.mig.iter().find(|device| device.instance == instance)
    }

    /// Returns the speed of each fan in revolutions per minute.
    pub fn fan_rpm(&self) -> u32 {
        self.fan_percent * 34
    }
}

impl Counters {
    /// Returns the counters for kernels that only wait for another GPU. The values were measured
    /// during an NCCL collective on an H200: some multiprocessors are occupied, but no data moves.
    pub(super) fn from_waiting_kernels() -> Self {
        Self {
            sm_percent: 18.18,
            occupancy_percent: 4.83,
            ..Self::default()
        }
    }

    /// Returns the counters for a program with the given utilization. The program mostly calculates
    /// matrix products, with input over PCIe and gradients over NVLink.
    pub(super) fn from_utilization(gpu_percent: f64, memory_percent: f64) -> Self {
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
    pub pid: u32,
    /// The kind of work that the process does on the GPU.
    pub kind: ProcessKind,
    /// The process's memory in bytes, or `None` if the driver does not know it.
    pub memory_bytes: Option<u64>,
    /// The share of time during which the process's kernels ran, from 0 to 100.
    pub sm_percent: u32,
    /// The share of time during which the process read or wrote device memory, from 0 to 100.
    pub memory_percent: u32,
    /// The process's utilization of the video encoder, from 0 to 100.
    pub encoder_percent: u32,
    /// The process's utilization of the video decoder, from 0 to 100.
    pub decoder_percent: u32,
    /// The video streams that the process is encoding.
    pub encoder_sessions: Arc<[EncoderSession]>,
    /// The program's name, if the scenario sets it.
    pub name: Option<Arc<str>>,
    /// The user's login name, if the scenario sets it.
    pub user: Option<Arc<str>>,
    /// The command line, if the scenario sets it.
    pub command: Option<Arc<str>>,
    /// The process's host memory in bytes, if the scenario sets it.
    pub host_memory_bytes: Option<u64>,
    /// Whether a debugger is attached to the process.
    pub traced: bool,
    /// The start time in seconds on the timeline. It is negative if the process started before the
    /// timeline.
    pub started_s: f64,
    /// Whether the process uses the Multi-Process Service (MPS).
    pub mps: bool,
    /// The MIG device that the process runs on, if any.
    pub mig: Option<MigInstance>,
    pub owner: Owner,
}
