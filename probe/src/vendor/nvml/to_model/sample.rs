//! The fields of a GPU's sample that are read at every tick.

use super::{
    super::{
        cached::{Answers, and_then, whole},
        lanes,
    },
    small, watts,
};
use crate::{
    model::{Absence, Absent, GpuSample, MemoryKind, MemorySample, Reading, ThrottleReason},
    vendor::nvml::query::Query as Q,
};

/// Fills in the fields that come from single answers. It leaves rates, which need two readings, and
/// the fields of MIG devices unchanged.
pub(in super::super) fn sample(answers: Answers<'_>, sample: &mut GpuSample) {
    let percent = |query| answers.number(query).map(|percent| percent as f64);
    sample.memory = memory(answers);
    sample.memory_kind = memory_kind(&sample.memory);
    let rates = answers.numbers::<2>(Q::UtilizationRates);
    sample.utilization.gpu_percent = rates.clone().map(|[gpu, _]| gpu as f64);
    sample.utilization.memory_percent = rates.map(|[_, memory]| memory as f64);
    sample.utilization.encoder_percent = percent(Q::EncoderUtilization);
    sample.utilization.decoder_percent = percent(Q::DecoderUtilization);
    sample.utilization.jpeg_percent = percent(Q::JpgUtilization);
    sample.utilization.ofa_percent = percent(Q::OfaUtilization);

    sample.power.draw_watts = watts(answers, Q::PowerUsage);
    sample.power.instant_watts = watts(answers, lanes::POWER_INSTANT);
    sample.power.average_watts = watts(answers, lanes::POWER_AVERAGE);
    sample.power.limit_watts = watts(answers, Q::EnforcedPowerLimit);
    sample.power.energy_joules_total = watts(answers, Q::TotalEnergyConsumption);
    sample.temperature.gpu_celsius = percent(Q::Temperature);
    // A value of 0 means that the board lacks this sensor.
    sample.temperature.memory_celsius = match answers.real(lanes::MEMORY_CELSIUS) {
        Reading::Now(0.0) => Reading::Absent(Absence::NotSupported),
        celsius => celsius,
    };
    sample.temperature.margin_celsius = percent(Q::MarginTemperature);

    sample.clocks.graphics_mhz = small(answers, Q::Clock(0));
    sample.clocks.sm_mhz = small(answers, Q::Clock(1));
    sample.clocks.memory_mhz = small(answers, Q::Clock(2));
    sample.clocks.video_mhz = small(answers, Q::Clock(3));
    // The value of NVML_PSTATE_UNKNOWN is 32.
    sample.performance_state =
        and_then(
            answers.number(Q::PerformanceState),
            |state| match u8::try_from(state) {
                Ok(state @ 0..=15) => Reading::Now(state),
                _ => Reading::Absent(Absence::Unknown),
            },
        );
    sample.throttle_reasons = answers
        .number(Q::ThrottleReasons)
        .map(|mask| ThrottleReason::from_nvml_mask(u64::try_from(mask).unwrap_or_default()));
    sample.pcie.generation = small(answers, Q::PcieGeneration);
    sample.pcie.width = small(answers, Q::PcieWidth);
    sample.fan_percent = percent(Q::FanSpeed);
}

/// Returns the kind of memory. For a GPU without its own memory, the driver returns "not supported"
/// or 0 bytes. Other errors give no information about the kind.
fn memory_kind(memory: &MemorySample) -> MemoryKind {
    match memory.total_bytes {
        Reading::Absent(Absence::NotSupported) | Reading::Now(0) => MemoryKind::Unified,
        _ => MemoryKind::Device,
    }
}

/// Returns the memory. Drivers before 510 count the memory that they reserve as used.
pub(in super::super) fn memory(answers: Answers<'_>) -> MemorySample {
    let newer = answers.numbers::<4>(Q::MemoryInfo);
    if let Reading::Absent(Absence::NotSupported) = newer {
        let older = answers.numbers::<3>(Q::MemoryInfoV1);
        return MemorySample {
            total_bytes: and_then(older.clone(), |[total, _, _]| whole(total)),
            reserved_bytes: Reading::Absent(Absence::NotSupported),
            free_bytes: and_then(older.clone(), |[_, free, _]| whole(free)),
            used_bytes: and_then(older, |[_, _, used]| whole(used)),
            ..MemorySample::absent(&Absence::NotSupported)
        };
    }
    MemorySample {
        total_bytes: and_then(newer.clone(), |[total, ..]| whole(total)),
        reserved_bytes: and_then(newer.clone(), |[_, reserved, ..]| {
            u64::try_from(reserved).map_or(Reading::Absent(Absence::NotSupported), Reading::Now)
        }),
        free_bytes: and_then(newer.clone(), |[_, _, free, _]| whole(free)),
        used_bytes: and_then(newer, |[.., used]| whole(used)),
        ..MemorySample::absent(&Absence::NotSupported)
    }
}
