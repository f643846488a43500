//! Readings as answers: the model's units back to the driver's.

use crate::{
    model::{Absence, Reading},
    vendor::nvml::query::{Answer, Code, Value},
};

pub(super) fn text(reading: &Reading<String>) -> Answer {
    known(reading).map(|text| Value::Text(text.clone()))
}

pub(super) fn integer<T: Copy + Into<i128>>(reading: &Reading<T>) -> Answer {
    number(reading, Into::into)
}

/// One number, changed by `convert` into the driver's unit.
pub(super) fn number<T: Copy>(reading: &Reading<T>, convert: impl FnOnce(T) -> i128) -> Answer {
    known(reading).map(|value| Value::Numbers(vec![convert(*value)]))
}

pub(super) fn numbers<T>(reading: &Reading<T>, convert: impl FnOnce(&T) -> Vec<i128>) -> Answer {
    known(reading).map(|value| Value::Numbers(convert(value)))
}

/// Several readings of one call: all of them, or the first reason why not.
pub(super) fn together<const N: usize>(answers: [Answer; N]) -> Answer {
    let mut all = Vec::with_capacity(N);
    for answer in answers {
        all.extend_from_slice(answer?.numbers());
    }
    Ok(Value::Numbers(all))
}

/// Watts in milliwatts, seconds in milliseconds, and so on.
pub(super) fn thousandths(value: f64) -> i128 {
    (value * 1000.0).round() as i128
}

/// A whole number that the model holds as a real one.
pub(super) fn whole(value: f64) -> i128 {
    value.round() as i128
}

fn known<T>(reading: &Reading<T>) -> Result<&T, Code> {
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => Ok(value),
        Reading::Absent(absence) => Err(code(absence)),
    }
}

/// The return code that an absence was made of.
fn code(absence: &Absence) -> Code {
    match absence {
        Absence::NotSupported | Absence::Asleep => Code::NOT_SUPPORTED,
        Absence::NoPermission | Absence::Hidden => Code::NO_PERMISSION,
        Absence::GpuLost => Code::GPU_IS_LOST,
        Absence::NoAnswer | Absence::NotReadYet | Absence::WarmingUp => Code::NOT_READY,
        Absence::Unknown | Absence::NotInProc | Absence::Ended | Absence::NeedsGpumon => {
            Code::UNKNOWN
        }
        Absence::DriverError { code } => Code(*code),
    }
}
