//! What a reading should be.

use std::fmt;

use gpumon_probe::model::{Absence, Reading};

use super::sample_window::SampleWindow;
use crate::protocol::Unit;

/// What a reading should be, and how far from that it may be.
pub(crate) struct Expectation {
    /// The reading, by its place in a sample.
    pub reading: &'static str,
    pub whose: Whose,
    pub unit: Unit,
    /// What was made, as far as it needs to know what was read.
    pub(super) made: Made,
    /// What was reported: while the load was on, and before it.
    pub(super) reported: Reported,
    pub(super) accepted: Accepted,
    /// How it is known what was made.
    pub(super) how: String,
}

type Made = Box<dyn Fn(&SampleWindow) -> Reading<f64>>;
type Reported = Box<dyn Fn(&SampleWindow, &SampleWindow) -> Reading<f64>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The GPU on which the load was.
    This,
    /// The one behind it.
    Next,
}

/// How far a reading may be from what was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Accepted {
    /// So much more or less.
    Within(f64),
    /// From so many times to so many times of it.
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
    /// Of this GPU. Nothing is reported before [`reported`](Self::reported) says what is.
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

    /// How much more was reported while the load was on than before.
    pub(super) fn risen(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        let risen =
            move |during: &SampleWindow, before: &SampleWindow| match (of(during), of(before)) {
                // A process that held nothing need not have been listed.
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

    /// What was made, where that depends on what was read.
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
