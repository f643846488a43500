//! Conversion of cached driver answers to readings. A reading is a value, possibly with its time,
//! or the reason for its absence.

use super::error::to_absence;
use crate::{
    model::{Absence, Reading},
    vendor::nvml::query::{CachedAnswers, Code, Query, Value},
};

/// The answers about a GPU or one of its MIG devices, considered at a certain time.
#[derive(Clone, Copy)]
pub(super) struct TimedAnswers<'a> {
    cached: &'a CachedAnswers,
    mig: Option<u32>,
    /// The time from which answers count as current, in milliseconds since 1970. Older answers
    /// become readings with their own time.
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
    pub(super) const fn without_age(self) -> Self {
        Self {
            since_ms: 0,
            ..self
        }
    }

    /// Returns the value in the answer to `query`. The reading is absent with `NoAnswer` if the
    /// query was never run.
    pub(super) fn get(self, query: Query) -> Reading<&'a Value> {
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
    pub(super) fn error_code(self, query: Query) -> Option<Code> {
        self.cached
            .get(self.mig, query)?
            .answer
            .as_ref()
            .err()
            .copied()
    }

    /// Returns the time of the latest call for `query`, in milliseconds since 1970.
    pub(super) fn read_at_ms(self, query: Query) -> Option<u64> {
        self.cached.get(self.mig, query).map(|cached| cached.at_ms)
    }

    /// Returns the first `N` numbers of an answer. The reading is absent with `Unknown` if the
    /// answer contains fewer numbers.
    pub(super) fn read_numbers<const N: usize>(self, query: Query) -> Reading<[i128; N]> {
        and_then(self.get(query), |value| {
            value
                .numbers()
                .first_chunk()
                .copied()
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        })
    }

    /// Returns the first number of an answer.
    pub(super) fn read_number(self, query: Query) -> Reading<i128> {
        self.read_numbers::<1>(query).map(|[number]| number)
    }

    /// Returns the first number of an answer as a `T`. The reading is absent with `Unknown` if the
    /// number is out of range.
    pub(super) fn read_integer<T: TryFrom<i128>>(self, query: Query) -> Reading<T> {
        and_then(self.read_number(query), convert_integer)
    }

    /// Returns the first number of an answer, which may have a fractional part.
    pub(super) fn read_float(self, query: Query) -> Reading<f64> {
        and_then(self.get(query), |value| {
            value
                .first_as_float()
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        })
    }

    /// Returns a reading of whether the first number of an answer is nonzero.
    pub(super) fn read_flag(self, query: Query) -> Reading<bool> {
        self.read_number(query).map(|number| number != 0)
    }

    /// Returns the text of an answer.
    pub(super) fn read_text(self, query: Query) -> Reading<String> {
        and_then(self.get(query), |value| {
            value
                .text()
                .map_or(Reading::Absent(Absence::Unknown), |text| {
                    Reading::Now(text.to_owned())
                })
        })
    }
}

/// Converts a number from the driver to a `T`. The reading is absent with `Unknown` if the number
/// is out of range.
pub(super) fn convert_integer<T: TryFrom<i128>>(number: i128) -> Reading<T> {
    T::try_from(number).map_or(Reading::Absent(Absence::Unknown), Reading::Now)
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
