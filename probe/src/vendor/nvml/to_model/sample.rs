//! Conversion of the sample fields that are read at every tick.

use super::{
    super::{
        cached::{TimedAnswers, and_then, convert_integer},
        lanes,
    },
    read_u32, read_watts,
};
use crate::{
    model::{Absence, Absent, GpuSample, MemoryKind, MemorySample, Reading, ThrottleReason},
    vendor::nvml::query::Query as Q,
};

/// Fills in the fields that are based on single answers. Rates, which need two readings, and the
/// fields of MIG devices are not changed.
pub(in super::super) fn fill_sample(answers: TimedAnswers<'_>, sample: &mut GpuSample) {
    let percent = |query| answers.read_number(query).map(|percent| percent as f64);
    sample.memory = make_memory(answers);
    sample.memory_kind = memory_kind(&sample.memory);
    let rates = answers.read_numbers::<2>(Q::UtilizationRates);
    sample.utilization.gpu_percent = rates.clone().map(|[gpu, _]| gpu as f64);
    sample.utilization.memory_percent = rates.map(|[_, memory]| memory as f64);
    sample.utilization.encoder_percent = percent(Q::EncoderUtilization);
    sample.utilization.decoder_percent = percent(Q::DecoderUtilization);
    sample.utilization.jpeg_percent = percent(Q::JpgUtilization);
    sample.utilization.ofa_percent = percent(Q::OfaUtilization);

    sample.power.draw_watts = read_watts(answers, Q::PowerUsage);
    sample.power.instant_watts = read_watts(answers, lanes::POWER_INSTANT);
    sample.power.average_watts = read_watts(answers, lanes::POWER_AVERAGE);
    sample.power.limit_watts = read_watts(answers, Q::EnforcedPowerLimit);
    sample.power.energy_joules_total = read_watts(answers, Q::TotalEnergyConsumption);
    sample.temperature.gpu_celsius = percent(Q::Temperature);
    // If the board has no memory temperature sensor, the driver reports 0.
    sample.temperature.memory_celsius = match answers.read_float(lanes::MEMORY_CELSIUS) {
        Reading::Now(0.0) => Reading::Absent(Absence::NotSupported),
        celsius => celsius,
    };
    sample.temperature.margin_celsius = percent(Q::MarginTemperature);

    sample.clocks.graphics_mhz = read_u32(answers, Q::Clock(0));
    sample.clocks.sm_mhz = read_u32(answers, Q::Clock(1));
    sample.clocks.memory_mhz = read_u32(answers, Q::Clock(2));
    sample.clocks.video_mhz = read_u32(answers, Q::Clock(3));
    // The value 32 is `NVML_PSTATE_UNKNOWN`.
    sample.performance_state =
        and_then(
            answers.read_number(Q::PerformanceState),
            |state| match u8::try_from(state) {
                Ok(state @ 0..=15) => Reading::Now(state),
                _ => Reading::Absent(Absence::Unknown),
            },
        );
    sample.throttle_reasons = answers
        .read_number(Q::ThrottleReasons)
        .map(|mask| ThrottleReason::from_nvml_mask(u64::try_from(mask).unwrap_or_default()));
    sample.pcie.generation = read_u32(answers, Q::PcieGeneration);
    sample.pcie.width = read_u32(answers, Q::PcieWidth);
    sample.fan_percent = percent(Q::FanSpeed);
}

/// Returns the kind of memory. If a GPU has no memory of its own, the driver returns "not
/// supported" or 0 bytes. Other errors do not reveal the kind.
fn memory_kind(memory: &MemorySample) -> MemoryKind {
    match memory.total_bytes {
        Reading::Absent(Absence::NotSupported) | Reading::Now(0) => MemoryKind::Unified,
        _ => MemoryKind::Device,
    }
}

/// Returns the GPU's memory. Drivers before 510 include their reserved memory in the used memory.
pub(in super::super) fn make_memory(answers: TimedAnswers<'_>) -> MemorySample {
    let newer = answers.read_numbers::<4>(Q::MemoryInfo);
    if let Reading::Absent(Absence::NotSupported) = newer {
        let older = answers.read_numbers::<3>(Q::MemoryInfoV1);
        return MemorySample {
            total_bytes: and_then(older.clone(), |[total, _, _]| convert_integer(total)),
            reserved_bytes: Reading::Absent(Absence::NotSupported),
            free_bytes: and_then(older.clone(), |[_, free, _]| convert_integer(free)),
            used_bytes: and_then(older, |[_, _, used]| convert_integer(used)),
            ..MemorySample::new_absent(&Absence::NotSupported)
        };
    }
    MemorySample {
        total_bytes: and_then(newer.clone(), |[total, ..]| convert_integer(total)),
        reserved_bytes: and_then(newer.clone(), |[_, reserved, ..]| {
            u64::try_from(reserved).map_or(Reading::Absent(Absence::NotSupported), Reading::Now)
        }),
        free_bytes: and_then(newer.clone(), |[_, _, free, _]| convert_integer(free)),
        used_bytes: and_then(newer, |[.., used]| convert_integer(used)),
        ..MemorySample::new_absent(&Absence::NotSupported)
    }
}
