//! The values of many chart lines on one time axis.

use std::{
    collections::{BTreeMap, VecDeque},
    iter::repeat_n,
    ops::RangeBounds,
};

use gpumon_probe::model::fields::Kind;

/// A time axis, the oldest time point first, and the values of each line.
#[derive(Debug, Clone)]
pub struct Timeline<K> {
    moments: VecDeque<TimePoint>,
    lines: BTreeMap<K, Column>,
}

/// A position on the time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimePoint {
    pub at_ms: u64,
    /// The maximum time since the previous time point, in milliseconds. If more time has passed,
    /// lines have a gap between the two points.
    pub reach_ms: u64,
}

/// The values of one line. A missing value is NaN.
#[derive(Debug, Clone)]
pub struct Column {
    values: Values,
    /// How many values at the end repeat the last new reading.
    repeated: usize,
}

#[derive(Debug, Clone)]
enum Values {
    /// Values with about seven significant digits.
    Short(VecDeque<f32>),
    /// Values of a counter at full precision: an increase in energy can be smaller than the
    /// precision of `f32`.
    Long(VecDeque<f64>),
}

impl<K> Default for Timeline<K> {
    fn default() -> Self {
        Self {
            moments: VecDeque::new(),
            lines: BTreeMap::new(),
        }
    }
}

impl<K: Ord> Timeline<K> {
    /// Returns the time axis.
    pub fn time_points(&self) -> &VecDeque<TimePoint> {
        &self.moments
    }

    /// Returns the time of the first time point.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.moments.front().map(|moment| moment.at_ms)
    }

    /// Returns the time of the last time point.
    pub fn newest_ms(&self) -> Option<u64> {
        self.moments.back().map(|moment| moment.at_ms)
    }

    /// Returns the position of the first time point that is not before `at_ms`.
    pub fn find_position(&self, at_ms: u64) -> usize {
        self.moments.partition_point(|moment| moment.at_ms < at_ms)
    }

    /// Adds a time point after all others, without values.
    pub fn push(&mut self, moment: TimePoint) {
        self.moments.push_back(moment);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.push_back(f32::NAN),
                Values::Long(values) => values.push_back(f64::NAN),
            }
        }
    }

    /// Adds a time point before all others, without values.
    pub fn push_oldest(&mut self, moment: TimePoint) {
        self.moments.push_front(moment);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.push_front(f32::NAN),
                Values::Long(values) => values.push_front(f64::NAN),
            }
        }
    }

    /// Returns the values of a line, or `None` if there is no such line.
    pub fn find_column(&self, key: &K) -> Option<&Column> {
        self.lines.get(key)
    }

    /// Returns the time points, starting at a position, with the values of a line.
    pub fn column_points(
        &self,
        key: &K,
        from: usize,
    ) -> impl Iterator<Item = (TimePoint, Option<f64>)> + use<'_, K> {
        let column = self.find_column(key);
        let moments = self.moments.iter().enumerate().skip(from);
        moments
            .map(move |(place, moment)| (*moment, column.and_then(|column| column.value_at(place))))
    }

    /// Returns the lines in a range of keys.
    pub fn columns(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &Column)> {
        self.lines.range(keys)
    }

    /// Returns the values of an existing chart line, so that they can be changed.
    pub fn column_mut(&mut self, key: &K) -> Option<&mut Column> {
        self.lines.get_mut(key)
    }

    /// Returns the values of a line for modification, and creates the line if necessary. Counters
    /// are stored at full precision.
    pub fn column_or_new(&mut self, key: K, kind: Kind) -> &mut Column {
        let length = self.moments.len();
        self.lines.entry(key).or_insert_with(|| Column {
            values: match kind {
                Kind::Counter => Values::Long(repeat_n(f64::NAN, length).collect()),
                Kind::Gauge | Kind::State => Values::Short(repeat_n(f32::NAN, length).collect()),
            },
            repeated: 0,
        })
    }

    pub fn remove(&mut self, key: &K) {
        self.lines.remove(key);
    }

    /// Removes the time points after `newest_ms`. Such time points exist if the clock was set back.
    pub fn drop_after(&mut self, newest_ms: u64) {
        let known = self
            .moments
            .partition_point(|moment| moment.at_ms <= newest_ms);
        self.moments.truncate(known);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.truncate(known),
                Values::Long(values) => values.truncate(known),
            }
        }
    }

    /// Removes the time points before `oldest_ms`, and all lines that then have no values.
    pub fn drop_before(&mut self, oldest_ms: u64) {
        let old = self.find_position(oldest_ms);
        self.moments.drain(..old);
        self.lines.retain(|_, column| {
            match &mut column.values {
                Values::Short(values) => drop(values.drain(..old)),
                Values::Long(values) => drop(values.drain(..old)),
            }
            column.values(0).any(|value| value.is_some())
        });
    }
}

impl Column {
    fn len(&self) -> usize {
        match &self.values {
            Values::Short(values) => values.len(),
            Values::Long(values) => values.len(),
        }
    }

    /// Returns the value at a position.
    pub fn value_at(&self, place: usize) -> Option<f64> {
        let value = match &self.values {
            Values::Short(values) => f64::from(*values.get(place)?),
            Values::Long(values) => *values.get(place)?,
        };
        (!value.is_nan()).then_some(value)
    }

    /// Returns the values, starting at position `from`.
    pub fn values(&self, from: usize) -> impl Iterator<Item = Option<f64>> {
        (from..self.len()).map(|place| self.value_at(place))
    }

    pub fn set(&mut self, place: usize, value: f64) {
        match &mut self.values {
            Values::Short(values) => values[place] = value as f32,
            Values::Long(values) => values[place] = value,
        }
    }

    /// Sets the newest value to a reading, which may be new or repeated. A new average covers all
    /// the time since the previous new reading. It therefore also replaces the repeated values
    /// since then, except in gaps.
    pub fn record_reading(&mut self, value: f64, is_new: bool, is_average: bool) {
        let newest = self.len() - 1;
        let repeated = if is_new {
            std::mem::take(&mut self.repeated)
        } else {
            0
        };
        if is_average {
            for place in newest.saturating_sub(repeated)..newest {
                if self.value_at(place).is_some() {
                    self.set(place, value);
                }
            }
        }
        self.set(newest, value);
        self.repeated += usize::from(!is_new);
    }

    /// Records a gap: the newest position has no reading.
    pub fn record_gap(&mut self) {
        self.repeated = 0;
    }
}
