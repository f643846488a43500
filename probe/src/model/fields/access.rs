//! Functions that get a field's value from a sample, or change it.

use std::fmt;

use crate::model::{Absence, Reading};

/// Functions that get or change one number in a value of type `S`, such as a sample.
pub struct Access<S: 'static> {
    /// Returns the number in a sample, or the reason for its absence.
    pub read: fn(&S) -> Result<f64, &Absence>,
    /// Returns the time of the reading if the reading is older than the sample.
    pub earlier_ms: fn(&S) -> Option<u64>,
    /// Replaces the value with the result of `judge`. If the result is `None`, the reading becomes
    /// absent with the reason `unknown`.
    pub amend: fn(&mut S, judge: &dyn Fn(f64) -> Option<f64>),
}

/// The number types of readings.
pub(super) trait Number: Copy + PartialEq {
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
}

macro_rules! number {
    ($($kind:ty),+) => {
        $(impl Number for $kind {
            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_f64(value: f64) -> Self {
                value as Self
            }
        })+
    };
}

number!(u8, u32, u64, f64);

/// Creates the [`Access`] for the reading at a path. The path `outer?.part` denotes a reading
/// inside another reading.
macro_rules! at {
    ($($part:ident).+) => {
        $crate::model::fields::Access {
            read: |sample| $crate::model::fields::access::read(&sample.$($part).+),
            earlier_ms: |sample| sample.$($part).+.earlier_ms(),
            amend: |sample, judge| $crate::model::fields::access::amend(&mut sample.$($part).+, judge),
        }
    };
    ($outer:ident?.$part:ident) => {
        $crate::model::fields::Access {
            read: |sample| {
                let parts = sample.$outer.as_result()?;
                $crate::model::fields::access::read(&parts.$part)
            },
            earlier_ms: |sample| {
                let part = sample.$outer.value().and_then(|parts| parts.$part.earlier_ms());
                sample.$outer.earlier_ms().or(part)
            },
            amend: |sample, judge| {
                if let Some(parts) = sample.$outer.value_mut() {
                    $crate::model::fields::access::amend(&mut parts.$part, judge);
                }
            },
        }
    };
}

/// Creates a catalog entry from the path, label, short label and unit. The entry's ID is a prefix
/// followed by the path.
macro_rules! field {
    ($sample:ty, $prefix:literal, $outer:ident?.$part:ident, $($named:expr),+) => {
        $crate::model::fields::Field::<$sample>::new(
            concat!($prefix, stringify!($outer), ".", stringify!($part)),
            $crate::model::fields::access::at!($outer?.$part),
            $($named),+
        )
    };
    ($sample:ty, $prefix:literal, $first:ident $(.$part:ident)*, $($named:expr),+) => {
        $crate::model::fields::Field::<$sample>::new(
            concat!($prefix, stringify!($first) $(, ".", stringify!($part))*),
            $crate::model::fields::access::at!($first $(.$part)*),
            $($named),+
        )
    };
}

pub(super) use {at, field};

pub(super) fn read<T: Number>(reading: &Reading<T>) -> Result<f64, &Absence> {
    Ok(reading.as_result()?.to_f64())
}

pub(super) fn amend<T: Number>(reading: &mut Reading<T>, judge: &dyn Fn(f64) -> Option<f64>) {
    let Some(value) = reading.value_mut() else {
        return;
    };
    let before = value.to_f64();
    match judge(before) {
        // An unchanged value is not converted, because a large integer would lose precision.
        Some(after) if after.total_cmp(&before).is_eq() => {}
        Some(after) => *value = T::from_f64(after),
        None => *reading = Reading::Absent(Absence::Unknown),
    }
}

impl<S> Access<S> {
    /// Returns the number, or `None` if it is absent.
    pub fn value(&self, sample: &S) -> Option<f64> {
        (self.read)(sample).ok()
    }

    /// Returns the number, and whether the number was read later than `since_ms`.
    pub fn value_and_freshness(&self, sample: &S, since_ms: u64) -> Option<(f64, bool)> {
        let is_new = (self.earlier_ms)(sample).is_none_or(|read_ms| read_ms > since_ms);
        self.value(sample).map(|value| (value, is_new))
    }
}

impl<S> Clone for Access<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Access<S> {}

impl<S> fmt::Debug for Access<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Access")
    }
}
