//! The driver's latest answers, converted to readings: a value with its time, or the reason for its
//! absence.

use super::error::absence;
use crate::{
    model::{Absence, Reading},
    vendor::nvml::query::{CachedAnswers, Code, Query, Value},
};

/// The answers about a GPU or one of its MIG devices, as of one moment.
#[derive(Clone, Copy)]
pub(super) struct Answers<'a> {
    cached: &'a CachedAnswers,
    mig: Option<u32>,
    /// The start of the moment, in milliseconds since 1970. Older answers become readings with
    /// their own time.
    since_ms: u64,
}

impl<'a> Answers<'a> {
    pub(super) const fn new(cached: &'a CachedAnswers, since_ms: u64) -> Self {
        Self {
            cached,
            mig: None,
            since_ms,
        }
    }

    /// Selects the answers about a MIG device.
    pub(super) const fn of_mig_device(self, index: u32) -> Self {
        Self {
            mig: Some(index),
            ..self
        }
    }

    /// Treats all answers as current, however old they are. This is for values that never change.
    pub(super) const fn ageless(self) -> Self {
        Self {
            since_ms: 0,
            ..self
        }
    }

    /// Returns the value that the driver returned. It is absent with `NoAnswer` if the query was
    /// not asked.
    pub(super) fn value(self, query: Query) -> Reading<&'a Value> {
        let Some(cached) = self.cached.get(self.mig, query) else {
            return Reading::Absent(Absence::NoAnswer);
        };
        match &cached.answer {
            Err(code) => Reading::Absent(absence(*code)),
            Ok(value) if cached.at_ms < self.since_ms => Reading::Earlier {
                value,
                at_ms: cached.at_ms,
            },
            Ok(value) => Reading::Now(value),
        }
    }

    /// Returns the error code of the driver, or `None` if the query succeeded or was not asked.
    pub(super) fn refusal(self, query: Query) -> Option<Code> {
        self.cached
            .get(self.mig, query)?
            .answer
            .as_ref()
            .err()
            .copied()
    }

    /// Returns the time of the last call, in milliseconds since 1970.
    pub(super) fn read_at_ms(self, query: Query) -> Option<u64> {
        self.cached.get(self.mig, query).map(|cached| cached.at_ms)
    }

    /// Returns the first `N` numbers of an answer. They are absent with `Unknown` if the answer has
    /// fewer.
    pub(super) fn numbers<const N: usize>(self, query: Query) -> Reading<[i128; N]> {
        and_then(self.value(query), |value| {
            value
                .numbers()
                .first_chunk()
                .copied()
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        })
    }

    /// Returns the first number of an answer.
    pub(super) fn number(self, query: Query) -> Reading<i128> {
        self.numbers::<1>(query).map(|[number]| number)
    }

    /// Returns the first number as a `T`. It is absent with `Unknown` if it is out of range.
    pub(super) fn whole<T: TryFrom<i128>>(self, query: Query) -> Reading<T> {
        and_then(self.number(query), whole)
    }

    /// Returns the first number, which may have a fraction.
    pub(super) fn real(self, query: Query) -> Reading<f64> {
        and_then(self.value(query), |value| {
            value
                .real()
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        })
    }

    /// Returns `true` if the first number is not 0.
    pub(super) fn flag(self, query: Query) -> Reading<bool> {
        self.number(query).map(|number| number != 0)
    }

    /// Returns the text of an answer.
    pub(super) fn text(self, query: Query) -> Reading<String> {
        and_then(self.value(query), |value| {
            value
                .text()
                .map_or(Reading::Absent(Absence::Unknown), |text| {
                    Reading::Now(text.to_owned())
                })
        })
    }
}

/// Converts a number of the driver to a `T`. It is absent with `Unknown` if it is out of range.
pub(super) fn whole<T: TryFrom<i128>>(number: i128) -> Reading<T> {
    T::try_from(number).map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}

/// Converts a number of the driver to a count. It is absent with `Unknown` if it is negative,
/// infinite or NaN.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub(super) fn count(real: f64) -> Reading<u64> {
    // The largest number that is accepted as a count.
    const LARGEST: f64 = (1_u64 << 63) as f64;
    if (0.0..=LARGEST).contains(&real) {
        Reading::Now(real as u64)
    } else {
        Reading::Absent(Absence::Unknown)
    }
}

/// Applies a function to the value of a reading. The function can return an absent reading.
pub(super) fn and_then<T, U>(
    reading: Reading<T>,
    make: impl FnOnce(T) -> Reading<U>,
) -> Reading<U> {
    match reading {
        Reading::Now(value) => make(value),
        Reading::Earlier { value, at_ms } => make(value).dated(at_ms),
        Reading::Absent(reason) => Reading::Absent(reason),
    }
}
