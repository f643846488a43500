//! A simulated GPU's answers to NVML queries.
//!
//! The units and the order of the numbers are documented at each [query](Q).

#![allow(
    clippy::unnecessary_wraps,
    reason = "each row of the tables is an answer"
)]

use std::sync::Arc;

use nvml_wrapper::enums::gpm::GpmMetricId as Metric;
use nvml_wrapper_sys::bindings::{
    self as sys, nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH as SWITCH,
    nvmlNvlinkVersion_enum_NVML_NVLINK_VERSION_4_0 as NVLINK_4_0,
    nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES as POWER_SAMPLES,
};

use super::{
    Architecture, Counters, EccErrors, GpuIdentity, GpuState, LinkState, MAX_SM_MHZ, MAX_VIDEO_MHZ,
    MEMORY_MHZ, Machine, MigState, NVLINK_MB_PER_SECOND, ProcessState, Totals, Wear,
};
use crate::{
    model::{MigInstance, ProcessKind, ThrottleCause, ThrottleReason, TraceMetric},
    vendor::nvml::{
        query::{Answer, Code, Query as Q, Value},
        schedule,
    },
};

/// The maximum number of processes in the driver's accounting.
const MAX_ACCOUNTED: usize = 4_000;

/// The period over which the driver averages the video engines' utilization, in microseconds.
const VIDEO_PERIOD_US: u32 = 166_666;

/// The size of a retired memory page, in bytes.
const PAGE_BYTES: u64 = 4_096;

/// The field scope that refers to all links together.
const ALL_LINKS: u32 = u32::MAX;

/// The unit of NVML's link rates, which is MiB per second.
const MIB: f64 = (1 << 20) as f64;

/// A simulated GPU or MIG device at a certain time.
pub trait SimulatedGpu {
    /// Returns the machine that contains the GPU.
    fn machine(&self) -> &Machine;

    /// Returns the index of the GPU in the machine.
    fn index(&self) -> u32;

    /// Returns the MIG device's instance, or `None` for a whole GPU.
    fn instance(&self) -> Option<MigInstance>;

    /// Returns the simulated time, in milliseconds since the start of the timeline.
    fn elapsed_ms(&self) -> u64;

    /// Returns the GPU's state at the simulated time.
    fn state(&self) -> Arc<GpuState> {
        self.machine().state(self.index(), self.elapsed_ms())
    }

    /// Returns the GPU's counters at the simulated time.
    fn totals(&self) -> Totals {
        self.machine()
            .compute_totals(self.index(), self.elapsed_ms())
    }
}

/// Answers an NVML query about a GPU or a MIG device. Returns `None` if the simulation has no
/// answer.
pub fn answer_query(gpu: &dyn SimulatedGpu, query: Q) -> Option<Answer> {
    let (machine, index) = (gpu.machine(), gpu.index());
    let identity = machine.world.gpu_identity(index);
    match gpu.instance() {
        Some(instance) => {
            let state = gpu.state();
            let own = state.mig_device(instance);
            own.map_or(Some(Err(Code::INVALID_ARGUMENT)), |own| {
                answer_mig_device(own, query)
            })
        }
        None => answer_about_unified_memory(identity, query)
            .or_else(|| answer_board(identity, query))
            .or_else(|| answer_settings(gpu, identity, query))
            .or_else(|| answer_links(gpu, identity, query))
            .or_else(|| {
                answer_wear(
                    identity,
                    &machine.world.compute_wear(index, gpu.elapsed_ms()),
                    query,
                )
            })
            .or_else(|| answer_processes(gpu, query))
            .or_else(|| answer_state(gpu, identity, &gpu.state(), query)),
    }
}

/// Answers a query about a GPU that shares the machine's memory, such as a GB10, if the answer
/// differs from that for other GPUs. For example, the driver reports one PCIe lane, although such a
/// GPU has no PCIe link.
fn answer_about_unified_memory(identity: &GpuIdentity, query: Q) -> Option<Answer> {
    identity.unified_memory.then_some(())?;
    Some(match query {
        Q::PcieGeneration | Q::PcieWidth | Q::MaxPcieGeneration | Q::MaxPcieWidth => {
            number_answer(1)
        }
        Q::MemoryInfo
        | Q::MemoryInfoV1
        | Q::Bar1MemoryInfo
        | Q::MemoryBusWidth
        | Q::Clock(2)
        | Q::MaxClock(2)
        | Q::ApplicationsClock(_)
        | Q::PowerLimit
        | Q::EnforcedPowerLimit
        | Q::DefaultPowerLimit
        | Q::PowerLimitConstraints
        | Q::TemperatureThreshold(2)
        | schedule::MEMORY_CELSIUS => Err(Code::NOT_SUPPORTED),
        _ => return None,
    })
}

fn answer_board(identity: &GpuIdentity, query: Q) -> Option<Answer> {
    // The serial number and the part number are printed on a label. Software cannot read them on a
    // GeForce board.
    let on_a_label = |label: &str| answer_if_supported(!identity.geforce, || text_answer(label));
    Some(match query {
        Q::Name => text_answer(&identity.name),
        Q::Uuid => text_answer(&identity.uuid),
        Q::BusId => text_answer(&identity.pci_bus_id),
        Q::Serial => on_a_label(&identity.serial),
        Q::BoardPartNumber => on_a_label(&identity.part_number),
        Q::VbiosVersion => text_answer(&identity.vbios_version),
        Q::Architecture => number_answer(match identity.architecture {
            Architecture::Pascal => sys::NVML_DEVICE_ARCH_PASCAL,
            Architecture::Volta => sys::NVML_DEVICE_ARCH_VOLTA,
            Architecture::Turing => sys::NVML_DEVICE_ARCH_TURING,
            Architecture::Ampere => sys::NVML_DEVICE_ARCH_AMPERE,
            Architecture::Ada => sys::NVML_DEVICE_ARCH_ADA,
            Architecture::Hopper => sys::NVML_DEVICE_ARCH_HOPPER,
            Architecture::Blackwell => sys::NVML_DEVICE_ARCH_BLACKWELL,
        }),
        Q::ComputeCapability => list_answer(identity.architecture.compute_capability()),
        Q::NumGpuCores => number_answer(identity.cores),
        Q::MemoryBusWidth => number_answer(identity.memory_bus_bits),
        Q::MinorNumber => number_answer(identity.index),
        Q::NumaNode => number_answer(identity.numa_node),
        // The GPU always has its highest performance state, P0, and its highest PCIe generation.
        Q::PerformanceState => number_answer(0),
        Q::PcieGeneration | Q::MaxPcieGeneration => number_answer(GpuIdentity::PCIE_GENERATION),
        Q::MaxPcieWidth => number_answer(GpuIdentity::PCIE_WIDTH),
        // By default, application clocks are the highest clocks. Video engines have no application
        // clock.
        Q::ApplicationsClock(3) => Err(Code::NOT_SUPPORTED),
        Q::MaxClock(kind) | Q::ApplicationsClock(kind) => {
            answer_clock(kind, MAX_SM_MHZ, MAX_VIDEO_MHZ)
        }
        Q::DefaultPowerLimit => number_answer(to_milliwatts(identity.power_limit_watts)),
        Q::PowerLimitConstraints => list_answer([
            to_milliwatts(identity.lowest_limit_watts.round()),
            to_milliwatts(identity.power_limit_watts),
        ]),
        Q::TemperatureThreshold(0) => number_answer(GpuIdentity::SHUTDOWN_CELSIUS),
        Q::TemperatureThreshold(1) => number_answer(GpuIdentity::SLOWDOWN_CELSIUS),
        Q::TemperatureThreshold(2) => number_answer(GpuIdentity::MEMORY_MAX_CELSIUS),
        Q::TemperatureThreshold(3) => number_answer(GpuIdentity::GPU_MAX_CELSIUS),
        Q::NumFans => answer_if_supported(identity.fans > 0, || number_answer(identity.fans)),
        _ => return None,
    })
}

fn answer_settings(gpu: &dyn SimulatedGpu, identity: &GpuIdentity, query: Q) -> Option<Answer> {
    let (machine, index) = (gpu.machine(), gpu.index());
    let divided = || machine.world.is_divided(index, gpu.elapsed_ms());
    let other = |other: u32| {
        let other = machine.found.get(other as usize);
        other.copied().ok_or(Code::INVALID_ARGUMENT)
    };
    Some(match query {
        Q::PersistenceMode => number_answer(identity.persistence),
        Q::ComputeMode | Q::DisplayActive | Q::C2cMode => number_answer(0),
        Q::EccMode => answer_if_supported(identity.ecc, || list_answer([1, 1])),
        Q::MigMode => answer_if_supported(identity.has_mig(), || list_answer([divided(); 2])),
        Q::AccountingMode => number_answer(identity.accounting),
        Q::AccountingPids => list_answer(list_accounted(gpu).map(|process| process.pid)),
        Q::AccountingStats(pid) => {
            let mut accounted = list_accounted(gpu);
            let Some(own) = accounted.find(|process| process.pid == pid) else {
                return Some(Err(Code::NOT_FOUND));
            };
            let percent =
                |reading: Option<&f64>| reading.map_or(u32::MAX.into(), |own| *own as i128);
            list_answer([
                percent(own.gpu_percent.value()),
                percent(own.memory_percent.value()),
                own.max_memory_bytes
                    .value()
                    .copied()
                    .unwrap_or(u64::MAX)
                    .into(),
                own.time_ms.into(),
                own.started_us.into(),
                own.running.into(),
            ])
        }
        Q::MigDevices => answer_if_supported(identity.has_mig(), || {
            list_answer(gpu.state().mig.iter().map(|own| own.index))
        }),
        Q::CommonAncestor(with) => {
            other(with).and_then(|with| number_answer(machine.world.path(index, with) as u8))
        }
        // If GPUs have links, they reach each other over the links rather than PCIe. GPUs without
        // links cannot reach each other.
        Q::P2pStatus(with, capability) => other(with).and_then(|with| {
            let linked = machine.world.are_linked(index, with);
            let through_pcie = capability >= sys::nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_PCI;
            number_answer(if linked && !through_pcie {
                sys::nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_OK
            } else {
                sys::nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_NOT_SUPPORTED
            })
        }),
        Q::FabricInfo => {
            let Some(uuid) = machine.world.fabric_uuid(index) else {
                return Some(Err(Code::NOT_SUPPORTED));
            };
            let digits = uuid.replace('-', "");
            let half = |at| u64::from_str_radix(&digits[at..at + 16], 16).unwrap_or(0);
            let state = sys::NVML_GPU_FABRIC_STATE_COMPLETED.into();
            list_answer([state, 0, 0, 0, 0, half(0), half(16)])
        }
        _ => return None,
    })
}

fn answer_links(gpu: &dyn SimulatedGpu, identity: &GpuIdentity, query: Q) -> Option<Answer> {
    let links = &identity.nvlinks;
    let link = |number: u32| match links.get(number as usize) {
        None if links.is_empty() => Err(Code::NOT_SUPPORTED),
        None => Err(Code::INVALID_ARGUMENT),
        Some(link) => Ok(link),
    };
    let carried = |scope, bytes: fn(Totals) -> f64| {
        if scope == ALL_LINKS && !links.is_empty() {
            return number_answer((bytes(gpu.totals()) / 1024.0) as u64);
        }
        link(scope)
            .and_then(|own| number_answer(identity.link_traffic_kib(bytes(gpu.totals()), own.link)))
    };
    let errors = |scope, count: fn(&LinkState) -> u64| {
        if scope == ALL_LINKS && !links.is_empty() {
            return number_answer(links.iter().map(count).sum::<u64>());
        }
        link(scope).and_then(|own| number_answer(count(own)))
    };
    Some(match query {
        Q::NvLinkState(of) => link(of).and_then(|own| number_answer(own.active)),
        Q::NvLinkVersion(of) => link(of).and_then(|_| number_answer(NVLINK_4_0)),
        Q::NvLinkRemoteDeviceType(of) => link(of).and_then(|_| number_answer(SWITCH)),
        Q::NvLinkRemoteBusId(of) => link(of).and_then(|own| text_answer(&own.remote_bus_id)),
        Q::Field(sys::field_id::NVML_FI_DEV_NVLINK_GET_SPEED, of) => {
            link(of).and_then(|_| number_answer(NVLINK_MB_PER_SECOND))
        }
        Q::Field(sys::field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, of) => {
            carried(of, |totals| totals.nvlink_tx_bytes)
        }
        Q::Field(sys::field_id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, of) => {
            carried(of, |totals| totals.nvlink_rx_bytes)
        }
        Q::Field(sys::field_id::NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, of) => {
            errors(of, |link| link.replays)
        }
        Q::Field(sys::field_id::NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, of) => {
            errors(of, |link| link.recoveries)
        }
        Q::Field(sys::field_id::NVML_FI_DEV_NVLINK_ERROR_DL_CRC, of) => {
            errors(of, |link| link.crc_errors.iter().sum())
        }
        _ => return None,
    })
}

fn answer_wear(identity: &GpuIdentity, wear: &Wear, query: Q) -> Option<Answer> {
    let of_counter = |counter| match counter {
        _ if !identity.ecc => Err(Code::NOT_SUPPORTED),
        0 => Ok(wear.ecc_volatile),
        1 => Ok(wear.ecc_aggregate),
        _ => Err(Code::INVALID_ARGUMENT),
    };
    let of_kind = |errors: EccErrors, kind| match kind {
        0 => number_answer(errors.corrected),
        1 => number_answer(errors.uncorrected),
        _ => Err(Code::INVALID_ARGUMENT),
    };
    let rows = wear.remapped_rows.ok_or(Code::NOT_SUPPORTED);
    let pages = wear.retired_pages.ok_or(Code::NOT_SUPPORTED);
    Some(match query {
        Q::TotalEccErrors(kind, counter) => {
            of_counter(counter).and_then(|errors| of_kind(errors, kind))
        }
        Q::MemoryErrors(kind, counter, place) => {
            of_counter(counter).and_then(|errors| match place {
                2 => of_kind(errors.device_memory(), kind),
                7 => of_kind(errors.sram(), kind),
                0..8 => Err(Code::NOT_SUPPORTED),
                _ => Err(Code::INVALID_ARGUMENT),
            })
        }
        Q::RemappedRows => rows.and_then(|own| {
            let flags = [own.pending, own.failed].map(u32::from);
            list_answer([own.correctable, own.uncorrectable, flags[0], flags[1]])
        }),
        Q::RowRemapperHistogram => rows.and_then(|own| {
            let spare = own.spare.ok_or(Code::NOT_SUPPORTED)?;
            list_answer([spare.max, spare.high, spare.partial, spare.low, spare.none])
        }),
        Q::RetiredPages(cause) => pages.and_then(|own| {
            let (first, count) = match cause {
                0 => (0x100, own.single_bit),
                1 => (0x1_0000, own.double_bit),
                _ => return Err(Code::INVALID_ARGUMENT),
            };
            list_answer((first..first + u64::from(count)).flat_map(|page| [0, page * PAGE_BYTES]))
        }),
        Q::RetiredPagesPending => pages.and_then(|own| number_answer(own.pending)),
        Q::PcieReplays => number_answer(wear.pcie_replays),
        schedule::RECOVERY_ACTION => number_answer(wear.recovery_action as u8),
        _ => return None,
    })
}

fn answer_processes(gpu: &dyn SimulatedGpu, query: Q) -> Option<Answer> {
    let is_listed: fn(&ProcessState) -> bool = match query {
        // Clients of the Multi-Process Service (MPS) count as compute processes.
        Q::ComputeProcesses => |process| process.kind != ProcessKind::Graphics,
        Q::GraphicsProcesses => |process| process.kind != ProcessKind::Compute,
        Q::MpsProcesses => |process| process.mps,
        _ => return None,
    };
    let state = gpu.state();
    // The driver lists processes in the order in which they were started.
    let mut listed: Vec<_> = state
        .processes
        .iter()
        .filter(|own| is_listed(own))
        .collect();
    listed.sort_by(|one, other| one.started_s.total_cmp(&other.started_s));
    let entry = |own: &ProcessState| {
        let instance = own.mig.map_or([-1, -1], |instance| {
            [instance.gpu_instance, instance.compute_instance].map(i128::from)
        });
        let memory = own.memory_bytes.map_or(-1, i128::from);
        [own.pid.into(), memory, instance[0], instance[1]]
    };
    Some(list_answer(listed.into_iter().flat_map(entry)))
}

fn answer_state(
    gpu: &dyn SimulatedGpu,
    identity: &GpuIdentity,
    state: &GpuState,
    query: Q,
) -> Option<Answer> {
    // If a GPU is divided into MIG devices, the driver does not report the GPU's utilization.
    let whole = |answer: &dyn Fn() -> Answer| answer_if_supported(state.mig.is_empty(), answer);
    let engine = |percent: u32| whole(&|| list_answer([percent, VIDEO_PERIOD_US]));
    let has_fan = |fan| match identity.fans {
        0 => Err(Code::NOT_SUPPORTED),
        fans if fan >= fans => Err(Code::INVALID_ARGUMENT),
        _ => Ok(()),
    };
    let stamp_us = || {
        gpu.machine()
            .driver_timestamp_us(gpu.index(), gpu.elapsed_ms())
    };
    Some(match query {
        Q::UtilizationRates => whole(&|| list_answer([state.gpu_percent, state.memory_percent])),
        Q::EncoderUtilization => engine(state.encoder_percent),
        Q::DecoderUtilization => engine(state.decoder_percent),
        Q::JpgUtilization => engine(state.jpeg_percent),
        Q::OfaUtilization => engine(state.ofa_percent),
        Q::MemoryInfo => list_answer([
            state.memory_total_bytes,
            state.memory_reserved_bytes,
            state.memory_free_bytes,
            state.memory_used_bytes,
        ]),
        Q::Bar1MemoryInfo => list_answer([
            GpuState::BAR1_BYTES,
            GpuState::BAR1_BYTES - state.bar1_used_bytes,
            state.bar1_used_bytes,
        ]),
        // The temperature sensors report whole degrees.
        Q::Temperature => number_answer(state.temperature_celsius.round() as i128),
        schedule::MEMORY_CELSIUS => number_answer(state.memory_temperature_celsius.round() as i128),
        Q::MarginTemperature => answer_if_supported(identity.reports_temperature_margin(), || {
            number_answer(state.margin_celsius.round() as i128)
        }),
        Q::FanSpeed => has_fan(0).and_then(|()| number_answer(state.fan_percent)),
        Q::FanSpeedOf(fan) => has_fan(fan).and_then(|()| number_answer(state.fan_percent)),
        Q::FanSpeedRpm(fan) => has_fan(fan).and_then(|()| number_answer(state.fan_rpm())),
        Q::ThrottleReasons => {
            let bits = state
                .throttle_reasons
                .iter()
                .map(|reason| reason.nvml_bit());
            number_answer(bits.fold(0, |all, bit| all | bit))
        }
        Q::ViolationStatus(policy) => {
            let totals = gpu.totals();
            let seconds = match policy {
                0 => totals.throttled_by_cause_s(ThrottleCause::Power),
                1 => totals.throttled_by_cause_s(ThrottleCause::Thermal),
                2 => totals.throttled_s(ThrottleReason::SyncBoost),
                3 | 5 => 0.0,
                4 => totals.throttled_by_cause_s(ThrottleCause::Idle),
                10 | 11 => {
                    totals.throttled_by_cause_s(ThrottleCause::Power)
                        + totals.throttled_by_cause_s(ThrottleCause::Thermal)
                }
                _ => return Some(Err(Code::INVALID_ARGUMENT)),
            };
            list_answer([stamp_us(), (seconds * 1e9) as u64])
        }
        Q::PowerUsage | schedule::POWER_AVERAGE => number_answer(to_milliwatts(state.power_watts)),
        schedule::POWER_INSTANT => number_answer(to_milliwatts(state.power_instant_watts)),
        Q::EnforcedPowerLimit | Q::PowerLimit => {
            number_answer(to_milliwatts(state.power_limit_watts))
        }
        Q::TotalEnergyConsumption => number_answer((gpu.totals().energy_joules * 1000.0) as u64),
        Q::Clock(kind) => match kind {
            2 => number_answer(state.memory_mhz),
            kind => answer_clock(kind, state.sm_mhz, state.video_mhz),
        },
        Q::PcieWidth => number_answer(state.pcie_width),
        Q::PcieThroughput(0) => {
            number_answer((state.counters.pcie_tx_bytes_per_second / 1000.0) as u64)
        }
        Q::PcieThroughput(1) => {
            number_answer((state.counters.pcie_rx_bytes_per_second / 1000.0) as u64)
        }
        Q::ProcessUtilization(since_us) => whole(&|| {
            let at_us = stamp_us();
            if at_us <= since_us {
                return Err(Code::NOT_FOUND);
            }
            let sample = |own: &ProcessState| {
                let shares = [
                    own.sm_percent,
                    own.memory_percent,
                    own.encoder_percent,
                    own.decoder_percent,
                ];
                let [sm, memory, encoder, decoder] = shares.map(u64::from);
                [at_us, own.pid.into(), sm, memory, encoder, decoder, 0, 0]
            };
            list_answer(state.processes.iter().flat_map(sample))
        }),
        Q::Samples(kind, since_us) => {
            let (metric, unit) = match kind {
                POWER_SAMPLES => (TraceMetric::PowerWatts, 1000.0),
                1 if state.mig.is_empty() => (TraceMetric::GpuPercent, 1.0),
                2 if state.mig.is_empty() => (TraceMetric::MemoryPercent, 1.0),
                1 | 2 => return Some(Err(Code::NOT_SUPPORTED)),
                // The driver's other buffers are always empty.
                _ => return Some(Err(Code::NOT_FOUND)),
            };
            let recorded =
                gpu.machine()
                    .read_buffer(gpu.index(), metric, gpu.elapsed_ms(), since_us);
            if recorded.is_empty() {
                return Some(Err(Code::NOT_FOUND));
            }
            list_answer(
                recorded
                    .iter()
                    .flat_map(|own| [own.at_us, (own.value * unit).round() as u64]),
            )
        }
        _ => return None,
    })
}

fn answer_mig_device(own: &MigState, query: Q) -> Option<Answer> {
    Some(match query {
        Q::Name => text_answer(&own.name),
        Q::Uuid => text_answer(&own.uuid),
        Q::MigInstance => list_answer([own.instance.gpu_instance, own.instance.compute_instance]),
        Q::MigAttributes => list_answer([
            own.multiprocessors.into(),
            own.copy_engines.into(),
            own.decoders.into(),
            0,
            own.decoders.into(),
            u64::from(own.slices == MigState::MAX_SLICES),
            own.slices.into(),
            own.compute_slices.into(),
            own.memory_total_bytes >> 20,
        ]),
        Q::MemoryInfo => list_answer([
            own.memory_total_bytes,
            0,
            own.memory_total_bytes.saturating_sub(own.memory_used_bytes),
            own.memory_used_bytes,
        ]),
        _ => return None,
    })
}

/// Returns the value of a GPM metric, or `None` if the hardware does not measure it.
pub(super) fn get_gpm_metric(counters: &Counters, metric: u32, has_links: bool) -> Option<f64> {
    Some(match Metric::try_from(metric).ok()? {
        Metric::GraphicsUtil => counters.graphics_percent,
        Metric::SmUtil => counters.sm_percent,
        Metric::SmOccupancy => counters.occupancy_percent,
        Metric::AnyTensorUtil | Metric::HmmaTensorUtil => counters.tensor_percent,
        Metric::ImmaTensorUtil | Metric::DfmaTensorUtil | Metric::Fp64Util | Metric::Fp16Util => {
            0.0
        }
        Metric::Fp32Util => counters.fp32_percent,
        Metric::IntegerUtil => counters.integer_percent,
        Metric::DramBwUtil => counters.dram_bandwidth_percent,
        Metric::PcieTxPerSec => counters.pcie_tx_bytes_per_second / MIB,
        Metric::PcieRxPerSec => counters.pcie_rx_bytes_per_second / MIB,
        Metric::NvlinkTotalTxPerSec | Metric::NvlinkTotalRxPerSec if !has_links => return None,
        Metric::NvlinkTotalTxPerSec => counters.nvlink_tx_bytes_per_second / MIB,
        Metric::NvlinkTotalRxPerSec => counters.nvlink_rx_bytes_per_second / MIB,
        _ => return None,
    })
}

/// Returns the accounted processes, sorted from oldest to newest.
fn list_accounted(gpu: &dyn SimulatedGpu) -> impl Iterator<Item = crate::model::AccountedProcess> {
    let machine = gpu.machine();
    let all = machine
        .world
        .list_accounted(gpu.index(), gpu.elapsed_ms(), &machine.timeline);
    let forgotten = all.len().saturating_sub(MAX_ACCOUNTED);
    all.into_iter().skip(forgotten)
}

/// Returns the answer for the clock of the given `nvmlClockType_t`.
fn answer_clock(kind: u32, sm_mhz: u32, video_mhz: u32) -> Answer {
    match kind {
        0 | 1 => number_answer(sm_mhz),
        2 => number_answer(MEMORY_MHZ),
        3 => number_answer(video_mhz),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn answer_if_supported(is_supported: bool, answer: impl FnOnce() -> Answer) -> Answer {
    if is_supported {
        answer()
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

fn text_answer(text: &str) -> Answer {
    Ok(Value::Text(text.to_owned()))
}

fn number_answer(number: impl Into<i128>) -> Answer {
    Ok(Value::from_number(number))
}

fn list_answer<N: Into<i128>>(numbers: impl IntoIterator<Item = N>) -> Answer {
    Ok(Value::Numbers(
        numbers.into_iter().map(Into::into).collect(),
    ))
}

fn to_milliwatts(watts: f64) -> i128 {
    (watts * 1000.0).round() as i128
}
