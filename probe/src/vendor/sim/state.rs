//! The state of a simulated GPU and of its MIG devices at a certain time, as plain numbers.

use std::sync::Arc;

use super::{
    GpuIdentity,
    identity::make_uuid,
    noise::Noise,
    scenario::{EncoderSession, GpuSettings, MigProfile, MigSettings, value_or_zero},
};
use crate::cpu_use::ProcessUse;
use crate::model::{
    MigInstance, Owner, ProcessKind, RecoveryAction, RemappedRows, RetiredPages, SpareRows,
    ThrottleReason,
};

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
    /// The reasons for reduced clocks.
    pub throttle_reasons: Vec<ThrottleReason>,
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
    /// The share of time in which a kernel ran.
    pub graphics_percent: f64,
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

    /// Returns the CPU use of the processes.
    pub(super) fn cpu_use(&self) -> Vec<ProcessUse> {
        let processes = self.processes.iter();
        processes
            .map(|process| ProcessUse {
                pid: process.pid,
                cores: process.cpu_percent / 100.0,
                workers: process.workers,
                worker_cores: process.workers.into(),
                blocked: process.blocked,
                read_bytes_per_second: None,
            })
            .collect()
    }

    /// Returns the speed of each fan in revolutions per minute.
    pub fn fan_rpm(&self) -> u32 {
        self.fan_percent * 34
    }
}

impl Counters {
    /// Returns the counters for kernels that only wait for another GPU. The values were measured
    /// during an NCCL collective on an H200: some multiprocessors are occupied, but no data moves.
    pub(super) fn from_waiting_kernels(gpu_percent: f64) -> Self {
        Self {
            graphics_percent: gpu_percent,
            sm_percent: 18.18,
            occupancy_percent: 4.83,
            ..Self::default()
        }
    }

    /// Returns the counters for a program with the given utilization. The program mostly calculates
    /// matrix products, with input over PCIe and gradients over NVLink.
    pub(super) fn from_utilization(gpu_percent: f64, memory_percent: f64) -> Self {
        Self {
            graphics_percent: gpu_percent,
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
    /// The process's CPU use; 100 is one core.
    pub cpu_percent: f64,
    /// The number of child processes, such as data loader workers, which use a core each.
    pub workers: u32,
    /// Whether the process waits for a disk.
    pub blocked: bool,
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

/// The state of a MIG device at a certain time. A MIG device is a part of a GPU that programs use
/// like a separate GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct MigState {
    /// The MIG device's NVML index within the GPU.
    pub index: u32,
    /// The UUID, which starts with `MIG-`.
    pub uuid: String,
    /// The name, for example `NVIDIA H200 MIG 1g.18gb`.
    pub name: String,
    /// The GPU instance and compute instance that form the device.
    pub instance: MigInstance,
    /// The number of slices in the GPU instance. A slice is a seventh of the GPU.
    pub slices: u32,
    /// The number of slices in the compute instance.
    pub compute_slices: u32,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The number of copy engines.
    pub copy_engines: u32,
    /// The number of video decoders. The number of JPEG decoders is the same.
    pub decoders: u32,
    /// The memory of the GPU instance in bytes. Its compute instances share this memory.
    pub memory_total_bytes: u64,
    /// The memory that processes in the GPU instance have allocated, in bytes.
    pub memory_used_bytes: u64,
    /// The activity of the device's hardware units. 100 means that all of the device's units are
    /// active.
    pub counters: Counters,
}

impl MigState {
    /// The number of slices in a GPU, and thus the maximum number of MIG devices.
    pub const MAX_SLICES: u32 = MigSettings::MAX_SLICES;

    /// Returns the device's share of the GPU's memory, in eighths.
    pub fn memory_eighths(&self) -> u32 {
        match self.slices {
            3 => 4,
            7 => 8,
            slices => slices,
        }
    }

    pub(super) fn new(
        gpu: &GpuIdentity,
        seed: u64,
        index: u32,
        own: &MigSettings,
        processes: &[ProcessState],
    ) -> Self {
        let instance = own.instance();
        let MigProfile {
            text,
            slices,
            compute_slices,
            gigabytes,
            ..
        } = &own.profile;
        let purpose = format!(
            "mig {}/{}",
            instance.gpu_instance, instance.compute_instance
        );
        let inside = processes
            .iter()
            .filter(|process| process.mig == Some(instance));
        let is_sharing = |process: &&ProcessState| {
            process
                .mig
                .is_some_and(|other| other.gpu_instance == instance.gpu_instance)
        };
        let memory_total_bytes = (u64::from(*gigabytes) * 1_000_000_000) & !0xF_FFFF;
        let used: u64 = processes
            .iter()
            .filter(is_sharing)
            .filter_map(|process| process.memory_bytes)
            .sum();
        let busy = inside
            .map(|process| process.sm_percent)
            .sum::<u32>()
            .min(100);
        let multiprocessors = match slices {
            3 => 60,
            7 => 132,
            slices => slices * 16,
        };
        Self {
            index,
            uuid: format!(
                "MIG-{}",
                make_uuid(Noise::new(seed, gpu.index).derive_stream(&purpose))
            ),
            name: format!("{} MIG {text}", gpu.name),
            instance,
            slices: *slices,
            compute_slices: *compute_slices,
            multiprocessors: if compute_slices == slices {
                multiprocessors
            } else {
                multiprocessors / slices * compute_slices
            },
            copy_engines: if *slices == 7 { 8 } else { *slices },
            decoders: *slices,
            memory_total_bytes,
            memory_used_bytes: used.min(memory_total_bytes),
            counters: Counters::from_utilization(busy.into(), f64::from(busy) * 0.4),
        }
    }
}

/// The number of memory banks in an H200.
const H200_BANKS: u32 = 3_072;

/// A GPU's errors and repairs up to a certain time.
#[derive(Debug, Clone, PartialEq)]
pub struct Wear {
    /// The memory errors since the driver was loaded.
    pub ecc_volatile: EccErrors,
    /// The memory errors since the board was made.
    pub ecc_aggregate: EccErrors,
    /// The memory rows that have been replaced, or `None` for boards that retire pages.
    pub remapped_rows: Option<RemappedRows>,
    /// The memory pages that have been retired, or `None` for boards that remap rows.
    pub retired_pages: Option<RetiredPages>,
    /// The recovery action that the driver recommends.
    pub recovery_action: RecoveryAction,
    /// The number of PCIe packets that were retransmitted.
    pub pcie_replays: u64,
}

/// Numbers of memory errors, by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EccErrors {
    /// The number of errors that the hardware corrected.
    pub corrected: u64,
    /// The number of errors that could not be corrected.
    pub uncorrected: u64,
}

impl EccErrors {
    /// Returns the errors in caches and registers. All other errors are in device memory.
    #[must_use]
    pub fn sram(self) -> Self {
        Self {
            corrected: self.corrected / 5,
            uncorrected: self.uncorrected / 5,
        }
    }

    /// Returns the errors in device memory.
    #[must_use]
    pub fn device_memory(self) -> Self {
        let sram = self.sram();
        Self {
            corrected: self.corrected - sram.corrected,
            uncorrected: self.uncorrected - sram.uncorrected,
        }
    }
}

impl Wear {
    /// Calculates the errors and repairs. Counters are multiplied by `left`, which is 1 unless a
    /// fault makes counters run backwards.
    pub(super) fn new(identity: &GpuIdentity, own: &GpuSettings, seconds: f64, left: f64) -> Self {
        let counts = |curve| (value_or_zero(curve, seconds) * left) as u64;
        let ecc_volatile = EccErrors {
            corrected: counts(own.ecc_corrected.as_ref()),
            uncorrected: counts(own.ecc_uncorrected.as_ref()),
        };
        let remapped_rows = make_remapped_rows(identity, own);
        // Each row was replaced because of an error. These errors happened before the driver was
        // loaded.
        let before = remapped_rows.map_or(EccErrors::default(), |rows| EccErrors {
            corrected: rows.correctable.into(),
            uncorrected: rows.uncorrectable.into(),
        });
        Self {
            ecc_volatile,
            ecc_aggregate: EccErrors {
                corrected: ecc_volatile.corrected + before.corrected,
                uncorrected: ecc_volatile.uncorrected + before.uncorrected,
            },
            remapped_rows,
            retired_pages: make_retired_pages(identity, own),
            recovery_action: own
                .recovery_action
                .as_ref()
                .map_or(RecoveryAction::None, |steps| *steps.value_at(seconds)),
            pcie_replays: counts(own.pcie_replays.as_ref()),
        }
    }
}

fn make_remapped_rows(identity: &GpuIdentity, own: &GpuSettings) -> Option<RemappedRows> {
    (identity.ecc && identity.architecture.remaps_rows()).then(|| {
        let rows = own.remapped_rows.unwrap_or_default();
        let used = (rows.correctable + rows.uncorrectable).min(H200_BANKS);
        let none = u32::from(rows.failed).min(used);
        let spare = SpareRows {
            max: H200_BANKS - used,
            high: used - none,
            partial: 0,
            low: 0,
            none,
        };
        RemappedRows {
            correctable: rows.correctable,
            uncorrectable: rows.uncorrectable,
            pending: rows.pending,
            failed: rows.failed,
            spare: Some(spare),
        }
    })
}

fn make_retired_pages(identity: &GpuIdentity, own: &GpuSettings) -> Option<RetiredPages> {
    let pages = own.retired_pages;
    (pages.is_some() || identity.ecc && !identity.architecture.remaps_rows()).then(|| {
        let pages = pages.unwrap_or_default();
        RetiredPages {
            single_bit: pages.single_bit,
            double_bit: pages.double_bit,
            pending: pages.pending,
        }
    })
}
