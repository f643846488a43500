//! Answers to NVML queries. Most come from the simulation. Queries that only nvidia-smi sends have
//! fixed answers.

use std::sync::Arc;

use gpumon_probe::{
    model::{MigInstance, RemappedRows},
    vendor::{
        nvml::query::{Answer, Code, Query as Q, SystemQuery as S, Value},
        sim::{
            Architecture, GpuIdentity, GpuState, MAX_SM_MHZ, MEMORY_MHZ, Machine, MigState,
            SimulatedGpu, Totals, answer_query,
        },
    },
};
use nvml_wrapper_sys::bindings as sys;

use crate::{
    call::Gpu,
    code,
    exports::{encoder_stats, system_process_name},
    session::Session,
};

/// The driver version with which the H200's values were measured.
const DRIVER_VERSION: &str = "580.159.04";
const NVML_VERSION: &str = "13.580.159.04";
/// The CUDA version 13.0 as 1000 times the major plus 10 times the minor version.
pub(crate) const CUDA_VERSION: i32 = 13_000;
/// The PCI ID of an H200 (device and vendor). The next constant is that of its subsystem.
pub(crate) const PCI_DEVICE_ID: u32 = 0x2335_10DE;
pub(crate) const PCI_SUBSYSTEM_ID: u32 = 0x18BF_10DE;
/// The PCI class of display controllers. The next two constants are its subclasses without and with
/// display output.
const DISPLAY_CONTROLLER: u32 = 0x03;
const THREE_D_SUBCLASS: u32 = 0x02;
const VGA_SUBCLASS: u32 = 0x00;
/// The clocks of an H200's memory.
const MEMORY_CLOCKS: [u32; 2] = [MEMORY_MHZ, 2_201];
/// The lowest clock of an H200's multiprocessors, and the step between clocks.
const LOWEST_SM_MHZ: u32 = 345;
const SM_STEP_MHZ: usize = 15;
/// The mask of all nine reasons in `nvmlClocksEventReasons`.
const ALL_REASONS: u32 = 0x1FF;

impl SimulatedGpu for Gpu {
    fn machine(&self) -> &Machine {
        Self::machine(self)
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn instance(&self) -> Option<MigInstance> {
        self.instance
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }

    fn state(&self) -> Arc<GpuState> {
        Self::state(self)
    }

    fn totals(&self) -> Totals {
        Self::totals(self)
    }
}

/// Answers a query about a GPU or a MIG device.
pub(crate) fn answer_gpu_or_mig(gpu: &Gpu, query: Q) -> Answer {
    answer_query(gpu, query)
        .or_else(|| match gpu.instance {
            None => answer_gpu(gpu, query),
            Some(instance) => answer_mig_device(gpu.state().mig_device(instance)?, query),
        })
        .unwrap_or(Err(Code::NOT_SUPPORTED))
}

/// Returns the first number of an answer.
pub(crate) fn first_number(gpu: &Gpu, query: Q) -> Result<i128, code::Code> {
    let answer = answer_gpu_or_mig(gpu, query).map_err(|Code(code)| code::Code(code))?;
    answer.number_at(0).ok_or(code::Code::NOT_SUPPORTED)
}

fn answer_gpu(gpu: &Gpu, query: Q) -> Option<Answer> {
    let identity = gpu.identity();
    let module = || {
        let has_one = identity.architecture >= Architecture::Hopper && !identity.geforce;
        answer_if_supported(has_one, || numbers_answer(&[gpu.index + 1]))
    };
    Some(match query {
        Q::PciInfo => numbers_answer(&[
            identity.pci_domain,
            identity.pci_bus,
            0,
            PCI_DEVICE_ID,
            PCI_SUBSYSTEM_ID,
            DISPLAY_CONTROLLER,
            if identity.geforce {
                VGA_SUBCLASS
            } else {
                THREE_D_SUBCLASS
            },
        ]),
        Q::Brand => numbers_answer(&[match identity {
            identity if identity.geforce => sys::nvmlBrandType_enum_NVML_BRAND_GEFORCE,
            identity if identity.name.starts_with("Tesla") => {
                sys::nvmlBrandType_enum_NVML_BRAND_TESLA
            }
            _ => sys::nvmlBrandType_enum_NVML_BRAND_NVIDIA,
        }]),
        // No board has more than one GPU, no GPU is shared with virtual machines, and there is no
        // Grace CPU.
        Q::MultiGpuBoard | Q::AddressingMode | Q::Capabilities => numbers_answer(&[0]),
        Q::BoardId => numbers_answer(&[identity.pci_bus << 8]),
        Q::ModuleId => module(),
        Q::Pdi => Ok(Value::from_number(device_identifier(identity))),
        // This is a single machine, so there are no slot numbers of a rack.
        Q::PlatformInfo => module().map(|module| {
            let module = module.number_at(0).unwrap_or(0);
            Value::Numbers(vec![0, 0, 0, 0, 0, 0, 1, 0, module])
        }),
        Q::InforomImageVersion if identity.geforce => text_answer("G001.0000.03.03"),
        Q::InforomImageVersion => text_answer("G520.0282.02.02"),
        Q::InforomVersion(object) => match object {
            sys::nvmlInforomObject_enum_NVML_INFOROM_OEM => text_answer("2.1"),
            sys::nvmlInforomObject_enum_NVML_INFOROM_ECC if identity.ecc => text_answer("7.16"),
            sys::nvmlInforomObject_enum_NVML_INFOROM_COUNT.. => Err(Code::INVALID_ARGUMENT),
            _ => Err(Code::NOT_SUPPORTED),
        },
        // The black box has not been written since the driver was loaded.
        Q::LastBbxFlush => Err(Code::NOT_READY),
        // The board has run for half a year.
        Q::TimeRun => answer_if_supported(!identity.geforce, || numbers_answer(&[15_811_200])),
        // Chips have this processor from Turing on. Its firmware has the version of the driver.
        Q::GspFirmwareVersion => {
            answer_if_supported(identity.architecture >= Architecture::Turing, || {
                text_answer(DRIVER_VERSION)
            })
        }
        Q::GspFirmwareMode => {
            answer_if_supported(identity.architecture >= Architecture::Turing, || {
                numbers_answer(&[1, 1])
            })
        }
        // For an H200, drivers of the 580 branch report that the display mode is enabled, although
        // the board has no display connector.
        Q::DisplayMode | Q::PowerManagementMode => numbers_answer(&[1]),
        // Boards have power profiles from Blackwell on. None is requested.
        Q::WorkloadPowerProfiles => {
            answer_if_supported(identity.architecture >= Architecture::Blackwell, || {
                numbers_answer(&[0; 24])
            })
        }
        Q::AccountingBufferSize => numbers_answer(&[4_000]),
        Q::VirtualizationMode => numbers_answer(&[
            sys::nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH,
        ]),
        Q::EncoderStats => numbers_answer(&encoder_stats(gpu)),
        // The answer for a valid infoROM is only the return code.
        Q::InforomIsValid => numbers_answer(&[]),
        // The first version has no field for the memory reserved by the driver, and counts it as
        // used.
        Q::MemoryInfoV1 => {
            let state = gpu.state();
            let used = state.memory_used_bytes + state.memory_reserved_bytes;
            let free = state.memory_total_bytes.saturating_sub(used);
            list_u64(&[state.memory_total_bytes, free, used])
        }
        // Confidential computing is off, so there is no protected memory.
        Q::ProtectedMemory | Q::FbcStats => numbers_answer(&[0; 3]),
        Q::TemperatureThreshold(4..=7) => Err(Code::NOT_SUPPORTED),
        Q::TemperatureThreshold(_) => Err(Code::INVALID_ARGUMENT),
        Q::SupportedThrottleReasons => numbers_answer(&[ALL_REASONS]),
        Q::DefaultApplicationsClock(kind) => answer_gpu_or_mig(gpu, Q::ApplicationsClock(kind)),
        Q::SupportedMemoryClocks => numbers_answer(&MEMORY_CLOCKS),
        Q::SupportedGraphicsClocks(memory) if MEMORY_CLOCKS.contains(&memory) => {
            let clocks = (LOWEST_SM_MHZ..=MAX_SM_MHZ).rev().step_by(SM_STEP_MHZ);
            numbers_answer(&clocks.collect::<Vec<_>>())
        }
        Q::SupportedGraphicsClocks(_) => Err(Code::NOT_FOUND),
        // Boards since Ampere count these errors separately for each unit of the chip. The
        // simulation counts all errors as errors of the caches.
        Q::SramEccErrors => {
            let counts = identity.ecc && identity.architecture >= Architecture::Ampere;
            answer_if_supported(counts, || {
                let wear = gpu.wear();
                let (lifetime, now) = (wear.ecc_aggregate.sram(), wear.ecc_volatile.sram());
                let mut all = [0; 12];
                (all[1], all[2]) = (lifetime.uncorrected, lifetime.corrected);
                (all[4], all[5]) = (now.uncorrected, now.corrected);
                all[6] = lifetime.uncorrected;
                list_u64(&all)
            })
        }
        Q::RepairStatus => {
            let reports = identity.ecc && identity.architecture >= Architecture::Hopper;
            answer_if_supported(reports, || numbers_answer(&[0, 0]))
        }
        // Memory is beyond repair if no spare row was left to replace it.
        Q::UnrepairableMemory => {
            remapped_rows(gpu).and_then(|rows| numbers_answer(&[rows.failed.into()]))
        }
        Q::RemappedRowsV2 => remapped_rows(gpu).and_then(|rows| {
            let flags = [rows.pending, rows.failed].map(u32::from);
            numbers_answer(&[
                rows.correctable,
                0,
                rows.uncorrectable,
                0,
                flags[0],
                flags[1],
            ])
        }),
        Q::GpuMaxPcieGeneration => numbers_answer(&[GpuIdentity::PCIE_GENERATION]),
        Q::NvLinkCapability(link, capability) => answer_gpu_or_mig(gpu, Q::NvLinkState(link))
            .and_then(|_| match capability {
                sys::nvmlNvLinkCapability_enum_NVML_NVLINK_CAP_COUNT.. => {
                    Err(Code::INVALID_ARGUMENT)
                }
                _ => numbers_answer(&[1]),
            }),
        // Without MIG, the maximum is 0 even for a GPU that supports MIG.
        Q::MaxMigDevices if gpu.state().mig.is_empty() => numbers_answer(&[0]),
        Q::MaxMigDevices => numbers_answer(&[MigState::MAX_SLICES]),
        _ => return None,
    })
}

fn answer_mig_device(own: &MigState, query: Q) -> Option<Answer> {
    Some(match query {
        Q::MemoryInfoV1 => {
            let (total, used) = (own.memory_total_bytes, own.memory_used_bytes);
            list_u64(&[total, total.saturating_sub(used), used])
        }
        // A MIG device has the same number of eighths of BAR1 as of the memory. It does not report
        // how much of BAR1 is used.
        Q::Bar1MemoryInfo => {
            let total = GpuState::BAR1_BYTES / 8 * u64::from(own.memory_eighths());
            list_u64(&[total, total, 0])
        }
        // A MIG device counts uncorrected errors in the caches of its own multiprocessors.
        Q::MemoryErrors(1, 0, 7) => numbers_answer(&[0]),
        _ => return None,
    })
}

/// Answers a query about the machine.
pub(crate) fn answer_system(session: &Session, query: S) -> Answer {
    match query {
        S::DriverVersion => text_answer(DRIVER_VERSION),
        S::NvmlVersion => text_answer(NVML_VERSION),
        S::CudaVersion => Ok(Value::from_number(CUDA_VERSION)),
        S::DeviceCount => numbers_answer(&[session.machine.found.len() as u32]),
        S::ProcessName(pid) => {
            let elapsed_ms = session.machine.timeline.elapsed_ms();
            let world = &session.machine.world;
            let mut processes =
                (0..world.gpu_count()).flat_map(|gpu| world.processes(gpu, elapsed_ms));
            let process = processes.find(|process| process.pid == pid);
            let process = process.ok_or(Code::NOT_FOUND)?;
            // A process without a name in the scenario is a real one, so its name comes from the
            // system.
            let name = process.command.or(process.name);
            name.map_or_else(|| system_process_name(pid), |name| Some(name.to_string()))
                .map(Value::Text)
                .ok_or(Code::NOT_FOUND)
        }
        // All links have their full width, and confidential computing is off.
        S::NvlinkBandwidthMode => numbers_answer(&[0]),
        S::ConfComputeState => numbers_answer(&[0; 3]),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

fn remapped_rows(gpu: &Gpu) -> Result<RemappedRows, Code> {
    gpu.wear().remapped_rows.ok_or(Code::NOT_SUPPORTED)
}

/// Returns a unique number: the last 64 bits of the UUID.
fn device_identifier(identity: &GpuIdentity) -> u64 {
    let digits = identity.uuid.replace('-', "");
    u64::from_str_radix(&digits[digits.len().saturating_sub(16)..], 16).unwrap_or(0)
}

fn answer_if_supported(is_supported: bool, answer: impl FnOnce() -> Answer) -> Answer {
    if is_supported {
        answer()
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "each row is an answer")]
fn text_answer(text: &str) -> Answer {
    Ok(Value::Text(text.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "each row is an answer")]
fn numbers_answer(numbers: &[u32]) -> Answer {
    Ok(Value::Numbers(
        numbers.iter().map(|own| (*own).into()).collect(),
    ))
}

#[expect(clippy::unnecessary_wraps, reason = "each row is an answer")]
fn list_u64(numbers: &[u64]) -> Answer {
    Ok(Value::Numbers(
        numbers.iter().map(|own| (*own).into()).collect(),
    ))
}
