//! Conversion of the driver's answers to the model. All functions are pure: they convert units,
//! combine answers, and turn return codes into reasons for absence.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod details;
mod ecc;
mod links;
mod processes;

use super::{error::to_absence, schedule};
use crate::{
    model::{Absence, Absent, GpuSample, MemoryKind, MemorySample, Reading, ThrottleReason},
    vendor::nvml::query::{CachedAnswers, Code, Query as Q, Value},
};

pub(super) use details::{
    fill_details, make_board, make_identity, make_mig_device, make_mig_sample, read_mode,
};
pub(super) use links::{DATA_UNIT_BYTES, has_no_links, to_remote_kind};
pub(super) use processes::{list_processes, make_processes};

/// Fills in the fields that are based on single answers. Rates, which need two readings, and the
/// fields of MIG devices are not changed.
pub(super) fn fill_sample(answers: TimedAnswers<'_>, sample: &mut GpuSample) {
    sample.memory = make_memory(answers);
    sample.memory_kind = memory_kind(&sample.memory);
    let rates = answers.read_numbers::<2>(Q::UtilizationRates);
    sample.utilization.gpu_percent = rates.clone().map(|[gpu, _]| gpu as f64);
    sample.utilization.memory_percent = rates.map(|[_, memory]| memory as f64);
    sample.utilization.encoder_percent = answers.read_float(Q::EncoderUtilization);
    sample.utilization.decoder_percent = answers.read_float(Q::DecoderUtilization);
    sample.utilization.jpeg_percent = answers.read_float(Q::JpgUtilization);
    sample.utilization.ofa_percent = answers.read_float(Q::OfaUtilization);

    sample.power.draw_watts = read_watts(answers, Q::PowerUsage);
    sample.power.instant_watts = read_watts(answers, schedule::POWER_INSTANT);
    sample.power.average_watts = read_watts(answers, schedule::POWER_AVERAGE);
    sample.power.limit_watts = read_watts(answers, Q::EnforcedPowerLimit);
    sample.power.energy_joules_total = read_watts(answers, Q::TotalEnergyConsumption);
    sample.temperature.gpu_celsius = answers.read_float(Q::Temperature);
    // If the board has no memory temperature sensor, the driver reports 0.
    sample.temperature.memory_celsius = match answers.read_float(schedule::MEMORY_CELSIUS) {
        Reading::Now(0.0) => Reading::NOT_SUPPORTED,
        celsius => celsius,
    };
    sample.temperature.margin_celsius = answers.read_float(Q::MarginTemperature);

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
    sample.fan_percent = answers.read_float(Q::FanSpeed);
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
pub(super) fn make_memory(answers: TimedAnswers<'_>) -> MemorySample {
    let newer = answers.read_numbers::<4>(Q::MemoryInfo);
    if newer.is_not_supported() {
        let [total_bytes, free_bytes, used_bytes] =
            convert_numbers(&answers.read_numbers::<3>(Q::MemoryInfoV1));
        return MemorySample {
            total_bytes,
            used_bytes,
            free_bytes,
            ..MemorySample::new_absent(&Absence::NotSupported)
        };
    }
    let reserved_bytes = and_then(newer.clone(), |[_, reserved, ..]| {
        u64::try_from(reserved)
            .map_err(|_| Absence::NotSupported)
            .into()
    });
    let [total_bytes, _, free_bytes, used_bytes] = convert_numbers(&newer);
    MemorySample {
        total_bytes,
        used_bytes,
        reserved_bytes,
        free_bytes,
        ..MemorySample::new_absent(&Absence::NotSupported)
    }
}

fn read_watts(answers: TimedAnswers<'_>, query: Q) -> Reading<f64> {
    answers
        .read_number(query)
        .map(|milliwatts| milliwatts as f64 / 1000.0)
}

fn read_u32(answers: TimedAnswers<'_>, query: Q) -> Reading<u32> {
    answers.read_integer(query)
}

/// The answers about a GPU or one of its MIG devices, and the time from which answers count as
/// current.
#[derive(Clone, Copy)]
pub(super) struct TimedAnswers<'a> {
    cached: &'a CachedAnswers,
    mig: Option<u32>,
    /// The time from which answers count as current, in milliseconds since 1970. A reading from an
    /// older answer is marked with the answer's time.
    since_ms: u64,
}

impl<'a> TimedAnswers<'a> {
    pub(super) const fn new(cached: &'a CachedAnswers, since_ms: u64) -> Self {
        Self {
            cached,
            mig: None,
            since_ms,
        }
    }

    /// Selects the answers about the MIG device `index`.
    pub(super) const fn for_mig_device(self, index: u32) -> Self {
        Self {
            mig: Some(index),
            ..self
        }
    }

    /// Treats all answers as current regardless of their age. This is meant for values that never
    /// change.
    pub(super) const fn ignoring_age(self) -> Self {
        Self {
            since_ms: 0,
            ..self
        }
    }

    /// Returns the value in the answer to `query`. The reading is absent with `NoAnswer` if the
    /// query was never run.
    pub(super) fn get(self, query: Q) -> Reading<&'a Value> {
        let Some(cached) = self.cached.get(self.mig, query) else {
            return Reading::Absent(Absence::NoAnswer);
        };
        match &cached.answer {
            Err(code) => Reading::Absent(to_absence(*code)),
            Ok(value) if cached.at_ms < self.since_ms => Reading::Earlier {
                value,
                at_ms: cached.at_ms,
            },
            Ok(value) => Reading::Now(value),
        }
    }

    /// Returns the driver's error code for `query`, or `None` if the query succeeded or was never
    /// run.
    pub(super) fn error_code(self, query: Q) -> Option<Code> {
        self.cached
            .get(self.mig, query)?
            .answer
            .as_ref()
            .err()
            .copied()
    }

    /// Returns the time of the latest call for `query`, in milliseconds since 1970.
    pub(super) fn read_at_ms(self, query: Q) -> Option<u64> {
        self.cached.get(self.mig, query).map(|cached| cached.at_ms)
    }

    /// Returns the first `N` numbers of an answer. The reading is absent with `Unknown` if the
    /// answer contains fewer numbers.
    pub(super) fn read_numbers<const N: usize>(self, query: Q) -> Reading<[i128; N]> {
        and_then(self.get(query), |value| {
            let numbers = value.numbers().first_chunk::<N>().copied();
            numbers.ok_or(Absence::Unknown).into()
        })
    }

    /// Returns the first number of an answer.
    pub(super) fn read_number(self, query: Q) -> Reading<i128> {
        self.read_numbers::<1>(query).map(|[number]| number)
    }

    /// Returns the first number of an answer as a `T`. The reading is absent with `Unknown` if the
    /// number is out of range.
    pub(super) fn read_integer<T: TryFrom<i128>>(self, query: Q) -> Reading<T> {
        and_then(self.read_number(query), convert_integer)
    }

    /// Returns the first number of an answer, which may have a fractional part.
    pub(super) fn read_float(self, query: Q) -> Reading<f64> {
        and_then(self.get(query), |value| {
            value.first_as_float().ok_or(Absence::Unknown).into()
        })
    }

    /// Returns a reading that is `true` if the first number of an answer is not 0.
    pub(super) fn read_flag(self, query: Q) -> Reading<bool> {
        self.read_number(query).map(|number| number != 0)
    }

    /// Returns the text of an answer.
    pub(super) fn read_text(self, query: Q) -> Reading<String> {
        and_then(self.get(query), |value| {
            let text = value.text().map(ToOwned::to_owned);
            text.ok_or(Absence::Unknown).into()
        })
    }
}

/// Converts a number from the driver to a `T`. The reading is absent with `Unknown` if the number
/// is out of range.
pub(super) fn convert_integer<T: TryFrom<i128>>(number: i128) -> Reading<T> {
    T::try_from(number).map_err(|_| Absence::Unknown).into()
}

/// Converts several numbers from the driver, each to its own reading.
pub(super) fn convert_numbers<T: TryFrom<i128>, const N: usize>(
    numbers: &Reading<[i128; N]>,
) -> [Reading<T>; N] {
    std::array::from_fn(|place| {
        and_then(numbers.clone(), |numbers| convert_integer(numbers[place]))
    })
}

/// Converts a number from the driver to a count. The reading is absent with `Unknown` if the number
/// is negative, infinite, or NaN.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub(super) fn convert_count(real: f64) -> Reading<u64> {
    // The largest number that is still accepted as a count.
    const MAX_COUNT: f64 = (1_u64 << 63) as f64;
    if (0.0..=MAX_COUNT).contains(&real) {
        Reading::Now(real as u64)
    } else {
        Reading::Absent(Absence::Unknown)
    }
}

/// Converts a reading's value with `make`, which can also return an absent reading. The reading's
/// time is kept.
pub(super) fn and_then<T, U>(
    reading: Reading<T>,
    make: impl FnOnce(T) -> Reading<U>,
) -> Reading<U> {
    match reading {
        Reading::Now(value) => make(value),
        Reading::Earlier { value, at_ms } => make(value).with_time(at_ms),
        Reading::Absent(reason) => Reading::Absent(reason),
    }
}

#[cfg(test)]
mod tests;
