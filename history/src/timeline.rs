//! The values of many lines over one time axis.

use std::{
    collections::{BTreeMap, VecDeque},
    iter::repeat_n,
    ops::RangeBounds,
};

use gpumon_probe::model::fields::Kind;

/// A time axis, the oldest moment first, with the values of each line.
#[derive(Debug, Clone)]
pub struct Timeline<K> {
    moments: VecDeque<Moment>,
    lines: BTreeMap<K, Column>,
}

/// One place of the time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub at_ms: u64,
    /// The longest distance to the previous moment at which both are neighbors, in milliseconds. A
    /// longer one is a gap.
    pub reach_ms: u64,
}

/// The values of one line. A missing value is NaN.
#[derive(Debug, Clone)]
pub struct Column {
    values: Values,
    /// The number of positions that have repeated the last new reading.
    repeated: usize,
}

#[derive(Debug, Clone)]
enum Values {
    /// Values with seven significant digits.
    Short(VecDeque<f32>),
    /// Values of a counter with all digits: an increase of energy can be less than the precision of
    /// `f32`.
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
    pub fn moments(&self) -> &VecDeque<Moment> {
        &self.moments
    }

    /// Returns the time of the first moment.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.moments.front().map(|moment| moment.at_ms)
    }

    /// Returns the time of the last moment.
    pub fn newest_ms(&self) -> Option<u64> {
        self.moments.back().map(|moment| moment.at_ms)
    }

    /// Returns the position of the first moment at or after `at_ms`.
    pub fn place_of(&self, at_ms: u64) -> usize {
        self.moments.partition_point(|moment| moment.at_ms < at_ms)
    }

    /// Adds a moment after all others. No line has a value there yet.
    pub fn push(&mut self, moment: Moment) {
        self.moments.push_back(moment);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.push_back(f32::NAN),
                Values::Long(values) => values.push_back(f64::NAN),
            }
        }
    }

    /// Adds a moment before all others. No line has a value there yet.
    pub fn push_oldest(&mut self, moment: Moment) {
        self.moments.push_front(moment);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.push_front(f32::NAN),
                Values::Long(values) => values.push_front(f64::NAN),
            }
        }
    }

    /// Returns the values of a line, or `None` if there is no such line.
    pub fn line(&self, key: &K) -> Option<&Column> {
        self.lines.get(key)
    }

    /// Returns the moments from a position on with the values of a line.
    pub fn line_points(
        &self,
        key: &K,
        from: usize,
    ) -> impl Iterator<Item = (Moment, Option<f64>)> + use<'_, K> {
        let column = self.line(key);
        let moments = self.moments.iter().enumerate().skip(from);
        moments.map(move |(place, moment)| (*moment, column.and_then(|column| column.get(place))))
    }

    /// Returns the lines in a range of keys.
    pub fn lines(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &Column)> {
        self.lines.range(keys)
    }

    /// Returns the values of an existing line for changes.
    pub fn line_mut(&mut self, key: &K) -> Option<&mut Column> {
        self.lines.get_mut(key)
    }

    /// Returns the values of a line for changes, and creates the line if necessary. Counters keep
    /// all digits.
    pub fn line_or_new(&mut self, key: K, kind: Kind) -> &mut Column {
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

    /// Removes the moments after `newest_ms`, which are in the future if the clock was set back.
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

    /// Removes the moments before `oldest_ms`, and then the lines without values.
    pub fn drop_before(&mut self, oldest_ms: u64) {
        let old = self.place_of(oldest_ms);
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
    pub fn get(&self, place: usize) -> Option<f64> {
        let value = match &self.values {
            Values::Short(values) => f64::from(*values.get(place)?),
            Values::Long(values) => *values.get(place)?,
        };
        (!value.is_nan()).then_some(value)
    }

    /// Returns the values from a position on.
    pub fn values(&self, from: usize) -> impl Iterator<Item = Option<f64>> {
        (from..self.len()).map(|place| self.get(place))
    }

    pub fn set(&mut self, place: usize, value: f64) {
        match &mut self.values {
            Values::Short(values) => values[place] = value as f32,
            Values::Long(values) => values[place] = value,
        }
    }

    /// Sets the newest value to a reading, which may not be new. A new average applies to the time
    /// since the previous reading, and is set at all its positions except gaps.
    pub fn read(&mut self, value: f64, is_new: bool, is_average: bool) {
        let newest = self.len() - 1;
        let repeated = if is_new {
            std::mem::take(&mut self.repeated)
        } else {
            0
        };
        if is_average {
            for place in newest.saturating_sub(repeated)..newest {
                if self.get(place).is_some() {
                    self.set(place, value);
                }
            }
        }
        self.set(newest, value);
        self.repeated += usize::from(!is_new);
    }

    /// Records that the newest position has no reading.
    pub fn interrupt(&mut self) {
        self.repeated = 0;
    }
}
