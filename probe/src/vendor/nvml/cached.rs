//! The driver's last answers as readings: a value with its time, or the reason why there is none.

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
    /// What was answered from then on is of this moment, and what was answered before it is of an
    /// earlier one.
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

    /// Those about a MIG device.
    pub(super) const fn of_mig_device(self, index: u32) -> Self {
        Self {
            mig: Some(index),
            ..self
        }
    }

    /// The same answers, however old, as of this moment: what does not change has no age.
    pub(super) const fn ageless(self) -> Self {
        Self {
            since_ms: 0,
            ..self
        }
    }

    /// What the driver gave; no answer where it has not been asked.
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

    /// The code with which the driver refused; `None` where it answered, or was not asked.
    pub(super) fn refusal(self, query: Query) -> Option<Code> {
        self.cached
            .get(self.mig, query)?
            .answer
            .as_ref()
            .err()
            .copied()
    }

    /// When the query was asked last.
    pub(super) fn read_at_ms(self, query: Query) -> Option<u64> {
        self.cached.get(self.mig, query).map(|cached| cached.at_ms)
    }

    /// The numbers of an answer that has so many, or more; unknown where it has fewer.
    pub(super) fn numbers<const N: usize>(self, query: Query) -> Reading<[i128; N]> {
        and_then(self.value(query), |value| {
            value
                .numbers()
                .first_chunk()
                .copied()
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        })
    }

    /// The first number, whatever its type in the driver.
    pub(super) fn number(self, query: Query) -> Reading<i128> {
        self.numbers::<1>(query).map(|[number]| number)
    }

    /// Returns the first number as this type; unknown if the type has no such number.
    pub(super) fn whole<T: TryFrom<i128>>(self, query: Query) -> Reading<T> {
        and_then(self.number(query), whole)
    }

    /// The first number as one that may have a fraction.
    pub(super) fn real(self, query: Query) -> Reading<f64> {
        and_then(self.value(query), |value| {
            value
                .real()
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        })
    }

    /// A number that is 0 or not.
    pub(super) fn flag(self, query: Query) -> Reading<bool> {
        self.number(query).map(|number| number != 0)
    }

    /// A text.
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

/// Returns a number of the driver as this type; unknown if the type has no such number.
pub(super) fn whole<T: TryFrom<i128>>(number: i128) -> Reading<T> {
    T::try_from(number).map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}

/// Returns a quantity of the driver as a count; unknown if it is negative, infinite or no number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub(super) fn count(real: f64) -> Reading<u64> {
    // The largest value of a count.
    const LARGEST: f64 = (1_u64 << 63) as f64;
    if (0.0..=LARGEST).contains(&real) {
        Reading::Now(real as u64)
    } else {
        Reading::Absent(Absence::Unknown)
    }
}

/// A reading made of another, which may turn out to be none.
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
