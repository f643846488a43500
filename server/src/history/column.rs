//! The values of one field over the time axis of samples.

use std::{collections::VecDeque, iter::repeat_n};

use gpumon_probe::model::fields::Kind;

/// As long as the time axis. What was absent is NaN.
#[derive(Debug, Clone)]
pub(super) enum Column {
    /// With the digits that a chart shows.
    Short(VecDeque<f32>),
    /// Of a counter, with all digits: a step of energy is less than the last that a short one has.
    Long(VecDeque<f64>),
}

/// Does the same with the values of either kind.
macro_rules! with {
    ($column:expr, $values:ident, $gap:ident => $result:expr) => {
        match $column {
            Column::Short($values) => {
                #[allow(unused, reason = "some need no gap")]
                let $gap = f32::NAN;
                $result
            }
            Column::Long($values) => {
                #[allow(unused, reason = "some need no gap")]
                let $gap = f64::NAN;
                $result
            }
        }
    };
}

impl Column {
    /// Of a field of this kind, without a value yet.
    pub(super) fn new(kind: Kind, length: usize) -> Self {
        match kind {
            Kind::Counter => Self::Long(repeat_n(f64::NAN, length).collect()),
            Kind::Gauge | Kind::State => Self::Short(repeat_n(f32::NAN, length).collect()),
        }
    }

    /// The axis is longer at its new end.
    pub(super) fn push_newest(&mut self) {
        with!(self, values, gap => values.push_back(gap));
    }

    /// The axis is longer at its old end.
    pub(super) fn push_oldest(&mut self) {
        with!(self, values, gap => values.push_front(gap));
    }

    pub(super) fn truncate(&mut self, length: usize) {
        with!(self, values, gap => values.truncate(length));
    }

    /// Forgets so many at the old end.
    pub(super) fn forget(&mut self, old: usize) {
        with!(self, values, gap => drop(values.drain(..old)));
    }

    /// Sets so many at the new end; of those before the newest, the gaps stay.
    pub(super) fn set_newest(&mut self, value: f64, count: usize) {
        match self {
            Self::Short(values) => fill(
                values.iter_mut().rev().take(count),
                short(value),
                f32::is_nan,
            ),
            Self::Long(values) => fill(values.iter_mut().rev().take(count), value, f64::is_nan),
        }
    }

    pub(super) fn set_oldest(&mut self, value: f64) {
        match self {
            Self::Short(values) => values.front_mut().map(|oldest| *oldest = short(value)),
            Self::Long(values) => values.front_mut().map(|oldest| *oldest = value),
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        with!(self, values, gap => values.iter().all(|value| value.is_nan()))
    }

    pub(super) fn get(&self, place: usize) -> Option<f64> {
        let value = match self {
            Self::Short(values) => f64::from(*values.get(place)?),
            Self::Long(values) => *values.get(place)?,
        };
        (!value.is_nan()).then_some(value)
    }

    /// From the place `old` on, as a chart draws them.
    pub(super) fn charted(&self, old: usize) -> Vec<Option<f32>> {
        let known = |value: f32| (!value.is_nan()).then_some(value);
        match self {
            Self::Short(values) => values.range(old..).map(|value| known(*value)).collect(),
            Self::Long(values) => values
                .range(old..)
                .map(|value| known(*value as f32))
                .collect(),
        }
    }

    /// The largest; 0 where there is none.
    pub(super) fn peak(&self) -> f64 {
        match self {
            Self::Short(values) => values.iter().copied().fold(0.0, f32::max).into(),
            Self::Long(values) => values.iter().copied().fold(0.0, f64::max),
        }
    }
}

fn fill<'a, T: Copy + 'a>(
    newest: impl Iterator<Item = &'a mut T>,
    value: T,
    is_gap: fn(T) -> bool,
) {
    for (place, known) in newest.enumerate() {
        if place == 0 || !is_gap(*known) {
            *known = value;
        }
    }
}

/// With the digits that a chart shows.
pub(super) fn short(value: f64) -> f32 {
    gpumon_history::wanted::rounded(value) as f32
}
