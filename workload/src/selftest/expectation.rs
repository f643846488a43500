//! Expected values of readings.

use std::fmt;

use gpumon_probe::model::{Absence, Reading};

use super::sample_window::SampleWindow;
use crate::protocol::Unit;

/// The expected value of a reading, and the deviation that is accepted.
pub(crate) struct Expectation {
    /// The path of the reading in a sample.
    pub reading: &'static str,
    pub whose: TestedGpu,
    pub unit: Unit,
    /// A function that returns the expected value, which may depend on other readings.
    pub(super) made: ExpectedValue,
    /// A function that returns the reported value, from the readings during the load and before it.
    pub(super) reported: ReportedValue,
    pub(super) accepted: AcceptedDeviation,
    /// The way in which the expected value was determined.
    pub(super) how: String,
}

type ExpectedValue = Box<dyn Fn(&SampleWindow) -> Reading<f64>>;
type ReportedValue = Box<dyn Fn(&SampleWindow, &SampleWindow) -> Reading<f64>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestedGpu {
    /// The GPU that the load runs on.
    This,
    /// The GPU with the next index.
    Next,
}

/// The deviation from the expected value that is accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AcceptedDeviation {
    /// The reading may be higher or lower by this amount.
    Within(f64),
    /// The reading may be between these multiples of the expected value.
    Times(f64, f64),
}

impl AcceptedDeviation {
    pub(super) fn to_bounds(self, made: f64) -> (f64, f64) {
        match self {
            Self::Within(margin) => (made - margin, made + margin),
            Self::Times(least, most) => (made * least, made * most),
        }
    }
}

impl Expectation {
    /// Creates an expectation for the GPU that the load runs on. The reported value must be defined
    /// separately.
    pub(super) fn new(
        reading: &'static str,
        unit: Unit,
        made: f64,
        accepted: AcceptedDeviation,
        how: String,
    ) -> Self {
        Self {
            reading,
            whose: TestedGpu::This,
            unit,
            made: Box::new(move |_| Reading::Now(made)),
            reported: Box::new(|_, _| SampleWindow::missing_reading()),
            accepted,
            how,
        }
    }

    pub(super) fn with_reported_value(
        self,
        of: impl Fn(&SampleWindow) -> Reading<f64> + 'static,
    ) -> Self {
        Self {
            reported: Box::new(move |during, _| of(during)),
            ..self
        }
    }

    /// Defines the reported value as the amount by which a reading increases during the load.
    pub(super) fn with_reported_increase(
        self,
        of: impl Fn(&SampleWindow) -> Reading<f64> + 'static,
    ) -> Self {
        let risen =
            move |during: &SampleWindow, before: &SampleWindow| match (of(during), of(before)) {
                // A process that uses no memory is not always listed, so an unknown value before
                // the load counts as 0.
                (during, Reading::Absent(Absence::Unknown)) => during,
                (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
                (during, before) => {
                    Reading::Now(during.value().unwrap_or(&0.0) - before.value().unwrap_or(&0.0))
                }
            };
        Self {
            reported: Box::new(risen),
            ..self
        }
    }

    /// Defines the expected value as a function of readings.
    pub(super) fn with_expected_value(
        self,
        of: impl Fn(&SampleWindow) -> Reading<f64> + 'static,
    ) -> Self {
        Self {
            made: Box::new(of),
            ..self
        }
    }

    pub(super) fn for_next_gpu(self) -> Self {
        Self {
            whose: TestedGpu::Next,
            ..self
        }
    }
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expectation")
            .field("reading", &self.reading)
            .field("whose", &self.whose)
            .finish_non_exhaustive()
    }
}
