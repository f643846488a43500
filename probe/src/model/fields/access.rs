//! How a field is reached in what it is a field of, to read it and to correct it.

use std::fmt;

use crate::model::{Absence, Reading};

/// The way to one number of `S`.
pub struct Access<S: 'static> {
    /// Takes it out of a sample, or says why it is absent.
    pub read: fn(&S) -> Result<f64, &Absence>,
    /// When it was read, where that was for an earlier sample.
    pub earlier_ms: fn(&S) -> Option<u64>,
    /// Replaces a value by what `judge` makes of it; `None` makes it absent as unknown.
    pub amend: fn(&mut S, judge: &dyn Fn(f64) -> Option<f64>),
}

/// What readings have for values.
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

/// The way to the reading at a path, or by `outer?.part` to one that stands in another reading.
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
            read: |sample| match &sample.$outer {
                $crate::model::Reading::Absent(reason) => Err(reason),
                $crate::model::Reading::Now(parts) | $crate::model::Reading::Earlier { value: parts, .. } => {
                    $crate::model::fields::access::read(&parts.$part)
                }
            },
            earlier_ms: |sample| {
                let part = sample.$outer.value().and_then(|parts| parts.$part.earlier_ms());
                sample.$outer.earlier_ms().or(part)
            },
            amend: |sample, judge| match &mut sample.$outer {
                $crate::model::Reading::Absent(_) => {}
                $crate::model::Reading::Now(parts) | $crate::model::Reading::Earlier { value: parts, .. } => {
                    $crate::model::fields::access::amend(&mut parts.$part, judge);
                }
            },
        }
    };
}

/// An entry of the catalogue: the path to its number, which is its id behind a prefix, label, short
/// label and unit.
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
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => Ok(value.to_f64()),
        Reading::Absent(reason) => Err(reason),
    }
}

pub(super) fn amend<T: Number>(reading: &mut Reading<T>, judge: &dyn Fn(f64) -> Option<f64>) {
    let (Reading::Now(value) | Reading::Earlier { value, .. }) = reading else {
        return;
    };
    let before = value.to_f64();
    match judge(before) {
        // A large whole number is not sent through a float for nothing.
        Some(after) if after.total_cmp(&before).is_eq() => {}
        Some(after) => *value = T::from_f64(after),
        None => *reading = Reading::Absent(Absence::Unknown),
    }
}

impl<S> Access<S> {
    /// The number; `None` where it is absent.
    pub fn value(&self, sample: &S) -> Option<f64> {
        (self.read)(sample).ok()
    }

    /// The same, and whether it was read behind `since_ms`, as of which it is known.
    pub fn value_since(&self, sample: &S, since_ms: u64) -> Option<(f64, bool)> {
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
