//! The state of a simulated GPU at one moment, as plain numbers.

use std::sync::Arc;

use crate::model::{MigInstance, Owner, ProcessKind, ThrottleReason};

use super::{MigState, encoder::EncoderSession};

/// The state of a GPU at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuState {
    /// The share of time during which a kernel ran, 0 to 100.
    pub gpu_percent: u32,
    /// The share of time during which device memory was read or written, 0 to 100.
    pub memory_percent: u32,
    /// The utilization of the video encoder, 0 to 100.
    pub encoder_percent: u32,
    /// The utilization of the video decoder, 0 to 100.
    pub decoder_percent: u32,
    /// The utilization of the JPEG decoder, 0 to 100.
    pub jpeg_percent: u32,
    /// The utilization of the optical flow accelerator, 0 to 100.
    pub ofa_percent: u32,
    /// The total memory, which is the sum of used, reserved and free memory.
    pub memory_total_bytes: u64,
    /// The memory that processes have allocated.
    pub memory_used_bytes: u64,
    /// The memory that driver and firmware reserve.
    pub memory_reserved_bytes: u64,
    /// The memory that is not allocated.
    pub memory_free_bytes: u64,
    /// The power draw, averaged over the last second.
    pub power_watts: f64,
    /// The power draw at this moment.
    pub power_instant_watts: f64,
    /// The power limit in effect.
    pub power_limit_watts: f64,
    /// The temperature of the chip.
    pub temperature_celsius: f64,
    /// The temperature of the memory.
    pub memory_temperature_celsius: f64,
    /// The distance of the chip's temperature from the one at which clocks are reduced. It is
    /// negative above that temperature.
    pub margin_celsius: f64,
    /// The speed of all fans, in percent of the maximum. It is meaningless for boards without fans.
    pub fan_percent: u32,
    /// The clock of the multiprocessors and the graphics engine.
    pub sm_mhz: u32,
    /// The clock of the memory.
    pub memory_mhz: u32,
    /// The clock of the video engines.
    pub video_mhz: u32,
    /// The P-state, 0 to 15.
    pub performance_state: u8,
    /// The reasons for reduced clocks.
    pub throttle_reasons: Vec<ThrottleReason>,
    /// The generation of the PCIe link.
    pub pcie_generation: u32,
    /// The number of lanes of the PCIe link.
    pub pcie_width: u32,
    /// The used part of the window through which the host accesses device memory.
    pub bar1_used_bytes: u64,
    /// The activity of the GPU's parts.
    pub counters: Counters,
    /// The MIG devices, in NVML's order. It is empty if MIG is off.
    pub mig: Vec<MigState>,
    /// The processes that use the GPU, in the order of the scenario.
    pub processes: Vec<ProcessState>,
}

/// The hardware counters of a GPU: shares of time from 0 to 100, and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// The share of multiprocessors with a warp.
    pub sm_percent: f64,
    /// The share of possible warps that are resident.
    pub occupancy_percent: f64,
    /// The utilization of the tensor cores at half precision.
    pub tensor_percent: f64,
    /// The utilization of the single-precision units.
    pub fp32_percent: f64,
    /// The utilization of the integer units.
    pub integer_percent: f64,
    /// The utilization of the memory bandwidth.
    pub dram_bandwidth_percent: f64,
    /// The rate at which the GPU sends over PCIe.
    pub pcie_tx_bytes_per_second: f64,
    /// The rate at which the GPU receives over PCIe.
    pub pcie_rx_bytes_per_second: f64,
    /// The rate at which the GPU sends over all `NVLinks`.
    pub nvlink_tx_bytes_per_second: f64,
    /// The rate at which the GPU receives over all `NVLinks`.
    pub nvlink_rx_bytes_per_second: f64,
}

impl GpuState {
    /// The size of the window through which the host accesses the memory of an H200.
    pub const BAR1_BYTES: u64 = 262_144 << 20;

    /// Returns a MIG device of the GPU.
    pub fn mig_device(&self, instance: MigInstance) -> Option<&MigState> {
        self.mig.iter().find(|device| device.instance == instance)
    }

    /// Returns the speed of each fan in revolutions per minute.
    pub fn fan_rpm(&self) -> u32 {
        self.fan_percent * 34
    }
}

impl Counters {
    /// Returns the counters while all kernels wait for another GPU. They were measured during an
    /// NCCL collective on an H200: some multiprocessors are occupied, but no data moves.
    pub(super) fn of_waiting() -> Self {
        Self {
            sm_percent: 18.18,
            occupancy_percent: 4.83,
            ..Self::default()
        }
    }

    /// Returns the counters of a program with this utilization. The program mostly computes matrix
    /// products, with input over PCIe and gradients over NVLink.
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
    pub pid: u32,
    /// The kind of work on the GPU.
    pub kind: ProcessKind,
    /// The memory of the process, or `None` if the driver does not know it.
    pub memory_bytes: Option<u64>,
    /// The share of time during which its kernels ran, 0 to 100.
    pub sm_percent: u32,
    /// The share of time during which it read or wrote device memory, 0 to 100.
    pub memory_percent: u32,
    /// The utilization of the video encoder, 0 to 100.
    pub encoder_percent: u32,
    /// The utilization of the video decoder, 0 to 100.
    pub decoder_percent: u32,
    /// The video streams that the process is encoding.
    pub encoder_sessions: Arc<[EncoderSession]>,
    /// The program's name, if the scenario has one.
    pub name: Option<Arc<str>>,
    /// The user's login name, if the scenario has one.
    pub user: Option<Arc<str>>,
    /// The command line, if the scenario has one.
    pub command: Option<Arc<str>>,
    /// The usage of host memory, if the scenario has one.
    pub host_memory_bytes: Option<u64>,
    /// Whether a debugger is attached.
    pub traced: bool,
    /// The start time in seconds of the timeline. It is negative if the process is older.
    pub started_s: f64,
    /// Whether the process uses the Multi-Process Service (MPS).
    pub mps: bool,
    /// The MIG device on which the process runs.
    pub mig: Option<MigInstance>,
    pub owner: Owner,
}
