//! Expected values of readings.

use std::fmt;

use gpumon_probe::model::{Absence, Reading};

use super::sample_window::SampleWindow;
use crate::protocol::Unit;

/// The expected value of a reading, and the accepted deviation.
pub(crate) struct Expectation {
    /// The path of the reading in a sample.
    pub reading: &'static str,
    pub whose: Whose,
    pub unit: Unit,
    /// The expected value, which may depend on readings.
    pub(super) made: Made,
    /// The reported value, from the readings during the load and before it.
    pub(super) reported: Reported,
    pub(super) accepted: Accepted,
    /// The source of the expected value.
    pub(super) how: String,
}

type Made = Box<dyn Fn(&SampleWindow) -> Reading<f64>>;
type Reported = Box<dyn Fn(&SampleWindow, &SampleWindow) -> Reading<f64>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The GPU with the load.
    This,
    /// The GPU with the next index.
    Next,
}

/// The accepted deviation of a reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Accepted {
    /// The reading may be this much more or less.
    Within(f64),
    /// The reading may be between these multiples of the expected value.
    Times(f64, f64),
}

impl Accepted {
    pub(super) fn bounds(self, made: f64) -> (f64, f64) {
        match self {
            Self::Within(margin) => (made - margin, made + margin),
            Self::Times(least, most) => (made * least, made * most),
        }
    }
}

impl Expectation {
    /// Creates an expectation for the GPU with the load. It has no reported value before one is
    /// defined.
    pub(super) fn new(
        reading: &'static str,
        unit: Unit,
        made: f64,
        accepted: Accepted,
        how: String,
    ) -> Self {
        Self {
            reading,
            whose: Whose::This,
            unit,
            made: Box::new(move |_| Reading::Now(made)),
            reported: Box::new(|_, _| SampleWindow::nothing()),
            accepted,
            how,
        }
    }

    pub(super) fn reported(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        Self {
            reported: Box::new(move |during, _| of(during)),
            ..self
        }
    }

    /// Defines the reported value as the increase of a reading during the load.
    pub(super) fn risen(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        let risen =
            move |during: &SampleWindow, before: &SampleWindow| match (of(during), of(before)) {
                // A process that used no memory before the load may not have been listed.
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

    /// Defines the expected value if it depends on readings.
    pub(super) fn made(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        Self {
            made: Box::new(of),
            ..self
        }
    }

    pub(super) fn for_next(self) -> Self {
        Self {
            whose: Whose::Next,
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
