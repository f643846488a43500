//! Statistics of a reading over a time window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The minimum, mean and maximum of a reading over a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    pub min: f64,
    /// The mean, weighted by time or by the number of readings.
    pub mean: f64,
    pub max: f64,
}

/// An accumulator for the readings of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Window {
    sum: f64,
    weight: f64,
    last: f64,
    min: f64,
    max: f64,
}

impl Stat {
    /// Returns the statistics of a single reading.
    pub fn from_value(value: f64) -> Self {
        Self {
            min: value,
            mean: value,
            max: value,
        }
    }
}

impl Window {
    /// Adds a reading. The weight is the time or the number of readings that it represents.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.merge(Stat::from_value(value), weight);
    }

    /// Adds the statistics of another window. All of its readings must be later than those added so
    /// far.
    pub fn merge(&mut self, stat: Stat, weight: f64) {
        if self.weight == 0.0 {
            (self.min, self.max) = (stat.min, stat.max);
        }
        self.sum += stat.mean * weight;
        self.weight += weight;
        self.last = stat.mean;
        (self.min, self.max) = (self.min.min(stat.min), self.max.max(stat.max));
    }

    /// Returns the statistics, or `None` if the window is empty.
    pub fn stat(&self) -> Option<Stat> {
        (self.weight > 0.0).then(|| Stat {
            min: self.min,
            mean: self.sum / self.weight,
            max: self.max,
        })
    }

    /// Returns the mean, or `None` if the window is empty.
    pub fn mean(&self) -> Option<f64> {
        self.stat().map(|stat| stat.mean)
    }

    /// Returns the highest value, or `None` if the window is empty.
    pub fn max(&self) -> Option<f64> {
        self.stat().map(|stat| stat.max)
    }

    /// Returns the weighted sum of all readings, or `None` if the window is empty.
    pub fn weighted_sum(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.sum)
    }

    /// Returns the last value added, or `None` if the window is empty.
    pub fn last(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.last)
    }
}

/// Collects readings with equal weight.
impl FromIterator<f64> for Window {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut window = Self::default();
        values.into_iter().for_each(|value| window.add(value, 1.0));
        window
    }
}

/// The mean and the peak of a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, TS, JsonSchema)]
pub struct Spread {
    /// The mean over time.
    pub mean: f64,
    /// The highest value of a single sample.
    pub peak: f64,
}

impl From<Stat> for Spread {
    fn from(stat: Stat) -> Self {
        Self {
            mean: stat.mean,
            peak: stat.max,
        }
    }
}
