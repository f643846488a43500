//! What NVML would answer about a simulated GPU, for nvidia-smi's face.

mod number;
mod processes;

use self::number::{integer, number, numbers, text, thousandths, together, whole};
use crate::{
    model::{ComputeMode, EccLocation, Gpu, GpuDetails, GpuSample, Mode, Reading, now_ms},
    vendor::nvml::query::{Answer, CachedAnswers, Code, Query as Q, Value},
    vendor::nvml::{self, ECC_LOCATIONS, lanes},
};

/// Everything that is asked of a GPU by the table of NVML's calls, as far as the simulation knows it.
pub(super) fn answers(identity: &Gpu, sample: &GpuSample, details: &GpuDetails) -> CachedAnswers {
    let device = Device {
        identity,
        sample,
        details,
    };
    let (mut answers, at_ms) = (CachedAnswers::default(), now_ms());
    for (query, _) in nvml::shared_queries() {
        if let Some(answer) = device.answer(query) {
            answers.keep(None, query, at_ms, answer);
        }
    }
    answers
}

/// A simulated GPU as the model has it.
struct Device<'a> {
    identity: &'a Gpu,
    sample: &'a GpuSample,
    details: &'a GpuDetails,
}

impl Device<'_> {
    fn answer(&self, query: Q) -> Option<Answer> {
        self.of_the_board(query)
            .or_else(|| self.of_the_sample(query))
            .or_else(|| of_the_details(self.details, query))
            .or_else(|| processes::list(self.sample, query))
    }

    fn of_the_board(&self, query: Q) -> Option<Answer> {
        let board = &self.identity.board;
        let clocks = &board.max_clocks;
        let limits = &board.power_limits;
        Some(match query {
            // It is in no slot of this machine.
            Q::HostMaxPcieGeneration => Err(Code::NOT_SUPPORTED),
            Q::Name => text(&self.identity.name),
            Q::Uuid => Ok(Value::Text(self.identity.uuid.clone()?)),
            Q::BusId => text(&self.identity.pci_bus_id),
            Q::Serial => text(&board.serial),
            Q::BoardPartNumber => text(&board.part_number),
            Q::VbiosVersion => text(&board.vbios_version),
            Q::MinorNumber => integer(&board.minor_number),
            Q::ComputeCapability => numbers(&board.compute_capability, |version| {
                version
                    .split('.')
                    .filter_map(|part| part.parse().ok())
                    .collect()
            }),
            Q::MaxPcieGeneration => integer(&board.pcie_max_generation),
            Q::MaxPcieWidth => integer(&board.pcie_max_width),
            Q::MaxClock(0) => integer(&clocks.graphics_mhz),
            Q::MaxClock(1) => integer(&clocks.sm_mhz),
            Q::MaxClock(2) => integer(&clocks.memory_mhz),
            Q::MaxClock(3) => integer(&clocks.video_mhz),
            Q::DefaultPowerLimit => number(&limits.default_watts, thousandths),
            Q::PowerLimitConstraints => together([
                number(&limits.min_watts, thousandths),
                number(&limits.max_watts, thousandths),
            ]),
            _ => return None,
        })
    }

    fn of_the_sample(&self, query: Q) -> Option<Answer> {
        let sample = &self.sample;
        let use_of = &sample.utilization;
        let memory = &sample.memory;
        // The sampling period, which nobody shows, is not in the records.
        let engine = |reading: &Reading<f64>| numbers(reading, |percent| vec![whole(*percent), 0]);
        Some(match query {
            Q::UtilizationRates => together([
                number(&use_of.gpu_percent, whole),
                number(&use_of.memory_percent, whole),
            ]),
            Q::EncoderUtilization => engine(&use_of.encoder_percent),
            Q::DecoderUtilization => engine(&use_of.decoder_percent),
            Q::JpgUtilization => engine(&use_of.jpeg_percent),
            Q::OfaUtilization => engine(&use_of.ofa_percent),
            Q::MemoryInfo => together([
                integer(&memory.total_bytes),
                integer(&memory.reserved_bytes),
                integer(&memory.free_bytes),
                integer(&memory.used_bytes),
            ]),
            Q::Temperature => number(&sample.temperature.gpu_celsius, whole),
            Q::MarginTemperature => number(&sample.temperature.margin_celsius, whole),
            lanes::MEMORY_CELSIUS => number(&sample.temperature.memory_celsius, whole),
            Q::FanSpeed => number(&sample.fan_percent, whole),
            Q::PerformanceState => integer(&sample.performance_state),
            Q::ThrottleReasons => numbers(&sample.throttle_reasons, |reasons| {
                vec![reasons.iter().map(|reason| i128::from(reason.bit())).sum()]
            }),
            Q::PowerUsage => number(&sample.power.draw_watts, thousandths),
            lanes::POWER_AVERAGE => number(&sample.power.average_watts, thousandths),
            lanes::POWER_INSTANT => number(&sample.power.instant_watts, thousandths),
            Q::EnforcedPowerLimit => number(&sample.power.limit_watts, thousandths),
            Q::Clock(0) => integer(&sample.clocks.graphics_mhz),
            Q::Clock(1) => integer(&sample.clocks.sm_mhz),
            Q::Clock(2) => integer(&sample.clocks.memory_mhz),
            Q::Clock(3) => integer(&sample.clocks.video_mhz),
            Q::PcieGeneration => integer(&sample.pcie.generation),
            Q::PcieWidth => integer(&sample.pcie.width),
            Q::PcieThroughput(0) => number(&sample.pcie.tx_bytes_per_second, |rate| {
                (rate / 1000.0).round() as i128
            }),
            Q::PcieThroughput(1) => number(&sample.pcie.rx_bytes_per_second, |rate| {
                (rate / 1000.0).round() as i128
            }),
            _ => return None,
        })
    }
}

fn of_the_details(details: &GpuDetails, query: Q) -> Option<Answer> {
    let modes = &details.modes;
    let mode = |reading: &Reading<Mode>| {
        numbers(reading, |mode| {
            vec![i128::from(mode.current), i128::from(mode.pending)]
        })
    };
    let ecc = &details.ecc;
    Some(match query {
        Q::PersistenceMode => integer(&modes.persistence),
        Q::DisplayActive => integer(&modes.display_active),
        Q::AccountingMode => integer(&modes.accounting),
        Q::EccMode => mode(&modes.ecc),
        Q::MigMode => mode(&modes.mig),
        Q::ComputeMode => number(&modes.compute, |mode| match mode {
            ComputeMode::Default => 0,
            ComputeMode::Prohibited => 2,
            ComputeMode::ExclusiveProcess => 3,
        }),
        Q::C2cMode => integer(&details.c2c_enabled),
        Q::ApplicationsClock(0) => integer(&details.application_clocks.graphics_mhz),
        Q::ApplicationsClock(2) => integer(&details.application_clocks.memory_mhz),
        Q::PowerLimit => number(&details.requested_power_limit_watts, thousandths),
        Q::Bar1MemoryInfo => numbers(&details.bar1, |bar1| {
            [
                bar1.total_bytes,
                bar1.total_bytes.saturating_sub(bar1.used_bytes),
                bar1.used_bytes,
            ]
            .map(Into::into)
            .into()
        }),
        Q::PcieReplays => integer(&details.pcie_replays_total),
        lanes::RECOVERY_ACTION => number(&details.recovery_action, |action| action as i128),
        Q::TotalEccErrors(0, 0) => integer(&ecc.volatile.corrected_total),
        Q::TotalEccErrors(1, 0) => integer(&ecc.volatile.uncorrected_total),
        Q::TotalEccErrors(0, 1) => integer(&ecc.aggregate.corrected_total),
        Q::TotalEccErrors(1, 1) => integer(&ecc.aggregate.uncorrected_total),
        Q::MemoryErrors(kind, 0, place) => at_place(&ecc.volatile_by_location, kind, place),
        Q::MemoryErrors(kind, 1, place) => at_place(&ecc.aggregate_by_location, kind, place),
        Q::RemappedRows => numbers(&details.remapped_rows, |rows| {
            vec![
                rows.correctable.into(),
                rows.uncorrectable.into(),
                rows.pending.into(),
                rows.failed.into(),
            ]
        }),
        Q::RowRemapperHistogram => {
            let spare = details.remapped_rows.value()?.spare?;
            let banks = [spare.max, spare.high, spare.partial, spare.low, spare.none];
            Ok(Value::Numbers(banks.map(Into::into).into()))
        }
        _ => return None,
    })
}

/// The errors at one of `nvmlMemoryLocation_t`; a place that the board does not count is not in the list.
fn at_place(places: &Reading<Vec<EccLocation>>, kind: u32, place: u32) -> Answer {
    let list = numbers(places, |places| {
        let name = ECC_LOCATIONS
            .get(place as usize)
            .copied()
            .unwrap_or_default();
        let own = places.iter().find(|own| own.location == name);
        own.map(|own| {
            if kind == 0 {
                own.corrected_total
            } else {
                own.uncorrected_total
            }
            .into()
        })
        .into_iter()
        .collect()
    })?;
    if list.numbers().is_empty() {
        Err(Code::NOT_SUPPORTED)
    } else {
        Ok(list)
    }
}
