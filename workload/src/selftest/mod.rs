//! The self-test, which checks whether gpumon's readings show what the GPU did. Known loads run one
//! after another, and the readings are compared with expected values.
//!
//! - [`loads`] contains the loads. Each load returns an [`Expectation`] for some of the readings.
//! - [`limits`] compares the causes that limited the GPU with the cause of the load.
//! - [`SampleWindow`] contains the readings of a GPU in a time range. [`check_expectation`]
//!   compares them with an expectation.
//!
//! The effect of a load is known independently of the driver's readings: from counted bytes and
//! operations, from the clocks of the host and the device, and from measurements made by the
//! blocks.

mod limits;
mod loads;

use std::{fmt, process, sync::atomic::AtomicBool, time::Duration};

use gpumon_probe::{
    model::{Absence, Activity, GpuSample, Process, Reading},
    stat::Window,
    usage::EnergyMeter,
};

use crate::{
    gpu::Gpu,
    protocol::{ReadingCheck, Unit, Verdict},
};

pub(crate) use self::loads::{KNOWN_LOADS, KnownLoad};

pub(crate) struct LoadContext<'a> {
    pub gpu: &'a Gpu,
    pub time: Duration,
    /// The first part of the load's time range, in which readings do not show the load yet. The
    /// driver averages readings over up to a second.
    pub settling: Duration,
    pub interrupted: &'a AtomicBool,
}

pub(crate) struct LoadResult {
    pub from_ms: u64,
    pub to_ms: u64,
    pub expectations: Vec<Expectation>,
}

/// The expected value of a reading, and the deviation that is accepted.
pub(crate) struct Expectation {
    /// The path of the reading in a sample.
    pub reading: &'static str,
    pub whose: TestedGpu,
    pub unit: Unit,
    /// A function that returns the expected value, which may depend on other readings.
    made: ExpectedValue,
    /// A function that returns the reported value, from the readings during the load and before it.
    reported: ReportedValue,
    accepted: AcceptedDeviation,
    /// A function that returns the way in which the expected value was determined.
    how: Explanation,
}

type Explanation = Box<dyn Fn(&SampleWindow) -> String>;
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
enum AcceptedDeviation {
    /// The reading may be higher or lower by this amount.
    Within(f64),
    /// The reading may be between these multiples of the expected value.
    Times(f64, f64),
}

impl AcceptedDeviation {
    fn bounds_around(self, made: f64) -> (f64, f64) {
        match self {
            Self::Within(margin) => (made - margin, made + margin),
            Self::Times(least, most) => (made * least, made * most),
        }
    }
}

impl Expectation {
    /// Creates an expectation for the GPU that the load runs on. The reported value must be defined
    /// separately.
    fn new(
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
            how: Box::new(move |_| how.clone()),
        }
    }

    fn with_reported_value(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        Self {
            reported: Box::new(move |during, _| of(during)),
            ..self
        }
    }

    /// Defines the reported value as the amount by which a reading increases during the load.
    fn with_reported_increase(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        let risen =
            move |during: &SampleWindow, before: &SampleWindow| match (of(during), of(before)) {
                // The driver does not always list a process that uses no memory. So an unknown
                // value before the load counts as 0.
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
    fn with_expected_value(self, of: impl Fn(&SampleWindow) -> Reading<f64> + 'static) -> Self {
        Self {
            made: Box::new(of),
            ..self
        }
    }

    fn with_explanation(self, of: impl Fn(&SampleWindow) -> String + 'static) -> Self {
        Self {
            how: Box::new(of),
            ..self
        }
    }

    fn for_next_gpu(self) -> Self {
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

/// Compares readings with the expected value. `during` contains the readings during the load, and
/// `before` the readings before it.
pub(crate) fn check_expectation(
    (load, does): (&'static str, &'static str),
    gpu: u32,
    expectation: &Expectation,
    during: &SampleWindow,
    before: &SampleWindow,
) -> ReadingCheck {
    let expected = (expectation.made)(during);
    let reported = (expectation.reported)(during, before);
    let bounds = |of: fn((f64, f64)) -> f64| {
        expected
            .clone()
            .map(|made| of(expectation.accepted.bounds_around(made)))
    };
    let (least, most) = (bounds(|(least, _)| least), bounds(|(_, most)| most));
    let verdict = match (reported.value(), least.value(), most.value()) {
        (Some(reported), Some(least), Some(most)) if (*least..=*most).contains(reported) => {
            Verdict::Verified
        }
        (Some(_), Some(_), Some(_)) => Verdict::Mismatch,
        _ => Verdict::NotReported,
    };
    let [wanted, read] =
        [&expected, &reported].map(|reading| expectation.unit.format_with_unit(reading));
    let (reading, comes_to) = (expectation.reading, verdict.describe());
    let text = format!(
        "{reading} of GPU {gpu}: {comes_to} (reported {read}, expected {wanted}) while {does}"
    );
    ReadingCheck {
        load: load.into(),
        does: does.into(),
        gpu,
        reading: reading.into(),
        unit: expectation.unit,
        expected,
        least,
        most,
        reported,
        verdict,
        how: (expectation.how)(during),
        text,
    }
}

/// The minimum time in milliseconds for measuring energy. The energy counter changes only ten times
/// a second.
const MIN_ENERGY_MS: u64 = 2000;

/// The readings of a GPU in a time range.
#[derive(Debug)]
pub(crate) struct SampleWindow {
    from_ms: u64,
    to_ms: u64,
    samples: Vec<GpuSample>,
    metered: Vec<GpuSample>,
}

impl SampleWindow {
    /// Returns the window with the samples of a time range. `samples` contains complete samples.
    /// `metered` contains more frequent samples, which only have energy and cheap readings.
    pub(crate) fn new(
        samples: &[GpuSample],
        metered: &[GpuSample],
        from_ms: u64,
        to_ms: u64,
    ) -> Self {
        let within = |samples: &[GpuSample]| {
            let within = samples
                .iter()
                .filter(|sample| (from_ms..=to_ms).contains(&sample.at_ms));
            within.cloned().collect()
        };
        Self {
            from_ms,
            to_ms,
            samples: within(samples),
            metered: within(metered),
        }
    }

    /// Returns the mean of a reading in this window. Values that were read before the window do not
    /// count.
    fn mean_reading(&self, of: impl Fn(&GpuSample) -> Reading<f64>) -> Reading<f64> {
        self.mean_of_samples(&self.samples, of)
    }

    /// Returns the mean of a hardware counter in this window.
    fn mean_activity(&self, of: fn(&Activity) -> &Reading<f64>) -> Reading<f64> {
        self.mean_reading(|sample| inner_reading(&sample.activity, |activity| of(activity).clone()))
    }

    /// Returns the mean of one of this process's readings in this window. The mean is unknown if
    /// the driver does not list the process, for example because PIDs belong to another namespace.
    fn mean_reading_of_process(&self, of: fn(&Process) -> Reading<f64>) -> Reading<f64> {
        self.mean_reading(|sample| {
            inner_reading(&sample.processes, |processes| {
                let own = processes
                    .iter()
                    .find(|process| process.pid == process::id());
                own.map_or(Reading::Absent(Absence::Unknown), of)
            })
        })
    }

    /// Returns this window without its first `ms` milliseconds.
    fn without_first_ms(&self, ms: u64) -> Self {
        Self::new(&self.samples, &self.metered, self.from_ms + ms, self.to_ms)
    }

    fn mean_sm_mhz(&self) -> Reading<f64> {
        self.mean_of_samples(&self.metered, |sample| {
            sample.clocks.sm_mhz.clone().map(f64::from)
        })
    }

    /// Returns the energy in joules that the board used, from the board's own counter.
    fn counted_joules(&self) -> Reading<f64> {
        let (joules, time_ms) = self.counted_energy_and_time();
        if time_ms >= MIN_ENERGY_MS {
            return Reading::Now(joules);
        }
        match self.mean_of_samples(&self.metered, |sample| {
            sample.power.energy_joules_total.clone()
        }) {
            Reading::Absent(why) => Reading::Absent(why),
            _ => Reading::Absent(Absence::WarmingUp),
        }
    }

    /// Returns the energy in joules that the board used between the first and the last change of
    /// the energy counter. It is calculated from the board's power readings.
    fn joules_from_power_readings(&self) -> Reading<f64> {
        let watts =
            self.mean_of_samples(&self.metered, |sample| match &sample.power.instant_watts {
                Reading::Absent(_) => sample.power.draw_watts.clone(),
                instant => instant.clone(),
            });
        let (_, time_ms) = self.counted_energy_and_time();
        watts.map(|watts| watts * time_ms as f64 / 1e3)
    }

    /// Returns the increase of the energy counter in joules, and the duration of this increase in
    /// milliseconds.
    fn counted_energy_and_time(&self) -> (f64, u64) {
        let counts = self.metered.iter();
        let counts = counts.filter_map(|sample| {
            self.value_within_window(sample, &sample.power.energy_joules_total)
        });
        counts.collect::<EnergyMeter>().total_energy_and_time()
    }

    fn missing_reading() -> Reading<f64> {
        Reading::Absent(Absence::NoAnswer)
    }

    fn mean_of_samples(
        &self,
        samples: &[GpuSample],
        of: impl Fn(&GpuSample) -> Reading<f64>,
    ) -> Reading<f64> {
        let read = samples
            .iter()
            .filter_map(|sample| self.value_within_window(sample, &of(sample)));
        let mean = read.map(|(value, _)| value).collect::<Window>().mean();
        mean.map_or_else(
            || match samples.last().map(&of) {
                Some(Reading::Absent(why)) => Reading::Absent(why),
                _ => Self::missing_reading(),
            },
            Reading::Now,
        )
    }

    /// Returns a value and the time at which it was read, if this time is within the window.
    fn value_within_window(
        &self,
        sample: &GpuSample,
        reading: &Reading<f64>,
    ) -> Option<(f64, u64)> {
        let at_ms = reading.read_at_ms(sample.at_ms);
        let is_within = (self.from_ms..=self.to_ms).contains(&at_ms);
        reading
            .value()
            .filter(|_| is_within)
            .map(|value| (*value, at_ms))
    }
}

/// Returns a reading that is contained in another reading. The result has the age of the outer
/// reading.
fn inner_reading<T>(outer: &Reading<T>, of: impl Fn(&T) -> Reading<f64>) -> Reading<f64> {
    match outer {
        Reading::Now(value) => of(value),
        Reading::Earlier { value, at_ms } => match of(value) {
            Reading::Now(value) => Reading::Earlier {
                value,
                at_ms: *at_ms,
            },
            reading => reading,
        },
        Reading::Absent(why) => Reading::Absent(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, GpuSample, Health, Reading};

    use super::*;

    fn make_window(percents: &[f64]) -> SampleWindow {
        let sample = |(at_ms, percent): (u64, &f64)| {
            let mut sample =
                GpuSample::new_absent(0, None, at_ms, Health::Ok, &Absence::NotSupported);
            sample.utilization.gpu_percent = Reading::Now(*percent);
            sample
        };
        SampleWindow::new(
            &(0..).zip(percents).map(sample).collect::<Vec<_>>(),
            &[],
            0,
            100,
        )
    }

    fn make_expectation(made: f64, accepted: AcceptedDeviation) -> Expectation {
        Expectation::new(
            "utilization.gpu_percent",
            Unit::Percent,
            made,
            accepted,
            "counted".to_owned(),
        )
        .with_reported_value(|during| {
            during.mean_reading(|sample| sample.utilization.gpu_percent.clone())
        })
    }

    #[track_caller]
    fn assert_verdict(percents: &[f64], accepted: AcceptedDeviation, verdict: Verdict) {
        let check = check_expectation(
            ("half", "half of it"),
            1,
            &make_expectation(50.0, accepted),
            &make_window(percents),
            &make_window(&[]),
        );
        assert_eq!(check.verdict, verdict, "{check:?}");
        assert!(
            check.text.starts_with("utilization.gpu_percent of GPU 1: "),
            "{check:?}"
        );
        assert!(
            check.text.ends_with(", expected 50.0 %) while half of it"),
            "{check:?}"
        );
    }

    #[test]
    fn reading_within_bounds_is_verified() {
        assert_verdict(
            &[49.0, 53.0],
            AcceptedDeviation::Within(2.0),
            Verdict::Verified,
        );
        assert_verdict(
            &[49.0, 57.0],
            AcceptedDeviation::Within(2.0),
            Verdict::Mismatch,
        );
        assert_verdict(
            &[49.0, 57.0],
            AcceptedDeviation::Times(1.0, 1.1),
            Verdict::Verified,
        );
        assert_verdict(
            &[49.0, 50.0],
            AcceptedDeviation::Times(1.0, 1.1),
            Verdict::Mismatch,
        );
        assert_verdict(
            &[f64::NAN],
            AcceptedDeviation::Within(2.0),
            Verdict::Mismatch,
        );
        assert_verdict(&[], AcceptedDeviation::Within(2.0), Verdict::NotReported);
    }

    #[test]
    fn unknown_expected_value_is_not_compared() {
        let unknown = make_expectation(1.0, AcceptedDeviation::Within(1.0))
            .with_expected_value(|_| Reading::Absent(Absence::Unknown));
        let check = check_expectation(
            ("half", "half of it"),
            0,
            &unknown,
            &make_window(&[1.0]),
            &make_window(&[]),
        );
        assert_eq!(
            (check.verdict, check.least.value()),
            (Verdict::NotReported, None)
        );
    }
}

#[cfg(test)]
mod sample_window_tests {
    use gpumon_probe::model::Health;

    use super::*;

    fn make_sample(at_ms: u64) -> GpuSample {
        GpuSample::new_absent(0, None, at_ms, Health::Ok, &Absence::NotSupported)
    }

    #[test]
    fn readings_outside_window_are_ignored() {
        let watts = |at_ms, reading| {
            let mut sample = make_sample(at_ms);
            sample.power.draw_watts = reading;
            sample
        };
        let samples = [
            watts(5, Reading::Now(1000.0)),
            watts(10, Reading::Now(100.0)),
            watts(
                12,
                Reading::Earlier {
                    value: 1000.0,
                    at_ms: 9,
                },
            ),
            watts(
                14,
                Reading::Earlier {
                    value: 200.0,
                    at_ms: 13,
                },
            ),
            watts(21, Reading::Now(1000.0)),
        ];
        let of = |sample: &GpuSample| sample.power.draw_watts.clone();
        assert_eq!(
            SampleWindow::new(&samples, &[], 10, 20).mean_reading(of),
            Reading::Now(150.0)
        );
        assert_eq!(
            SampleWindow::new(&[make_sample(3)], &[], 0, 9).mean_reading(of),
            Reading::Absent(Absence::NotSupported)
        );
    }

    #[test]
    fn energy_from_counter_and_power_covers_same_span() {
        let read = |at_ms, joules, watts| {
            let mut sample = make_sample(at_ms);
            sample.power.energy_joules_total = joules;
            sample.power.draw_watts = Reading::Now(watts);
            sample
        };
        let samples = [
            read(0, Reading::Now(0.0), 0.0),
            read(100, Reading::Now(1000.0), 490.0),
            read(2600, Reading::Now(2250.0), 510.0),
            read(
                2700,
                Reading::Earlier {
                    value: 2250.0,
                    at_ms: 2600,
                },
                500.0,
            ),
        ];
        let of = |from_ms| SampleWindow::new(&[], &samples, from_ms, 2700);
        assert_eq!(
            (of(50).counted_joules(), of(50).joules_from_power_readings()),
            (Reading::Now(1250.0), Reading::Now(1250.0))
        );
        assert_eq!(
            of(300).counted_joules(),
            Reading::Absent(Absence::WarmingUp),
            "one count is none"
        );
        assert_eq!(
            SampleWindow::new(&[], &[make_sample(1)], 0, 9).counted_joules(),
            Reading::Absent(Absence::NotSupported)
        );
    }
}
