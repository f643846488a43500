//! Values of many lines over one time axis.

use std::{
    collections::{BTreeMap, VecDeque},
    iter::repeat_n,
    ops::RangeBounds,
};

use gpumon_probe::model::fields::Kind;

/// Moments, the oldest first, and what each line had at each of them.
#[derive(Debug, Clone)]
pub struct Timeline<K> {
    moments: VecDeque<Moment>,
    lines: BTreeMap<K, Column>,
}

/// One place of the time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When it was.
    pub at_ms: u64,
    /// How far back the moment before may be for the two to be neighbors.
    pub reach_ms: u64,
}

/// The values of one line. A missing one is NaN.
#[derive(Debug, Clone)]
pub struct Column {
    values: Values,
    /// How many places have repeated a reading since it was new.
    repeated: usize,
}

#[derive(Debug, Clone)]
enum Values {
    /// Seven digits.
    Short(VecDeque<f32>),
    /// All digits of a counter: a step of energy is less than the last that a short one has.
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
    /// The time axis.
    pub fn moments(&self) -> &VecDeque<Moment> {
        &self.moments
    }

    /// The first moment.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.moments.front().map(|moment| moment.at_ms)
    }

    /// The last moment.
    pub fn newest_ms(&self) -> Option<u64> {
        self.moments.back().map(|moment| moment.at_ms)
    }

    /// The place of the first moment that is not before this one.
    pub fn place_of(&self, at_ms: u64) -> usize {
        self.moments.partition_point(|moment| moment.at_ms < at_ms)
    }

    /// Adds a moment behind all others, at which no line has a value yet.
    pub fn push(&mut self, moment: Moment) {
        self.moments.push_back(moment);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.push_back(f32::NAN),
                Values::Long(values) => values.push_back(f64::NAN),
            }
        }
    }

    /// Adds a moment before all others, at which no line has a value yet.
    pub fn push_oldest(&mut self, moment: Moment) {
        self.moments.push_front(moment);
        for column in self.lines.values_mut() {
            match &mut column.values {
                Values::Short(values) => values.push_front(f32::NAN),
                Values::Long(values) => values.push_front(f64::NAN),
            }
        }
    }

    /// The values of a line; `None` if it has none.
    pub fn line(&self, key: &K) -> Option<&Column> {
        self.lines.get(key)
    }

    /// The moments from a place on, with the values of a line.
    pub fn line_points(
        &self,
        key: &K,
        from: usize,
    ) -> impl Iterator<Item = (Moment, Option<f64>)> + use<'_, K> {
        let column = self.line(key);
        let moments = self.moments.iter().enumerate().skip(from);
        moments.map(move |(place, moment)| (*moment, column.and_then(|column| column.get(place))))
    }

    /// The lines in a range of keys.
    pub fn lines(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &Column)> {
        self.lines.range(keys)
    }

    /// The values of a line that is known, to be changed.
    pub fn line_mut(&mut self, key: &K) -> Option<&mut Column> {
        self.lines.get_mut(key)
    }

    /// The values of a line, to be changed. Counters keep all digits.
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

    /// Forgets a line.
    pub fn remove(&mut self, key: &K) {
        self.lines.remove(key);
    }

    /// Forgets what is later than a moment: a clock that was set back makes some of the past a
    /// future.
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

    /// Forgets what is earlier than a moment, and lines that have no value left.
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

    /// The value at a place.
    pub fn get(&self, place: usize) -> Option<f64> {
        let value = match &self.values {
            Values::Short(values) => f64::from(*values.get(place)?),
            Values::Long(values) => *values.get(place)?,
        };
        (!value.is_nan()).then_some(value)
    }

    /// The values from a place on.
    pub fn values(&self, from: usize) -> impl Iterator<Item = Option<f64>> {
        (from..self.len()).map(|place| self.get(place))
    }

    /// Sets the value at a place.
    pub fn set(&mut self, place: usize, value: f64) {
        match &mut self.values {
            Values::Short(values) => values[place] = value as f32,
            Values::Long(values) => values[place] = value,
        }
    }

    /// Sets the value at the newest place to a reading, which may not be new. An average since the
    /// reading before is put into all places of that time; gaps among them remain.
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

    /// Notes that there was no reading at the newest place.
    pub fn interrupt(&mut self) {
        self.repeated = 0;
    }
}
