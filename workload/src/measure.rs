//! The repetition of a workload's runs, the decision when to stop, and the statistics of the
//! measured times.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use crate::{
    error::RunError,
    protocol::{Backend, MeasureEnd, Phase, Report, Times},
    workload::{Prepared, TimedRun},
};

/// The minimum number of measured runs.
pub(crate) const MIN_RUNS: usize = 10;
/// The maximum number of measured runs.
pub(crate) const MAX_RUNS: usize = 20_000;
/// The time under load after which a GPU's clock depends only on its power and cooling.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(3);
/// The minimum time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The relative deviation below which times count as steady.
pub(crate) const STEADY_DEVIATION: f64 = 0.005;

#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasureLimits {
    /// The minimum duration of the warm-up runs, which raise the clocks and fill the caches before
    /// measuring starts. There is at least one such run.
    pub warm_up: Duration,
    /// The minimum duration of measuring, even if the times are steady sooner. Other readings of
    /// the device need this time.
    pub least: Duration,
    /// The maximum duration of measuring if the times do not become steady. At least ten runs are
    /// measured in any case.
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MeasureProgress {
    Phase(Phase),
    /// The completed share of the measurement, from 0 to 1, sent at most ten times a second.
    Share(f64),
}

impl MeasureProgress {
    /// Converts the progress to a report about a step.
    pub(crate) fn into_report(self, step: usize, id: &str, backend: Backend) -> Report {
        match self {
            Self::Phase(phase) => Report::Phase {
                step,
                id: id.to_owned(),
                backend,
                phase,
            },
            Self::Share(share) => Report::Progress {
                share,
                text: String::new(),
                memory: None,
            },
        }
    }
}

impl MeasureLimits {
    /// Returns the limits of a quick or a full measurement.
    pub(crate) fn new(is_quick: bool) -> Self {
        if is_quick { Self::QUICK } else { Self::FULL }
    }

    /// The limits of a full measurement.
    const FULL: Self = Self {
        warm_up: Duration::from_millis(100),
        least: Duration::from_millis(600),
        time: Duration::from_secs(2),
    };
    /// The limits of a quick measurement.
    pub(crate) const QUICK: Self = Self {
        warm_up: Duration::from_millis(10),
        least: Duration::ZERO,
        time: Duration::from_millis(200),
    };
}

pub(crate) fn measure_runs(
    work: &mut dyn Prepared,
    limits: &MeasureLimits,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(MeasureProgress),
) -> Result<(Vec<TimedRun>, MeasureEnd), RunError> {
    tell(MeasureProgress::Phase(Phase::WarmingUp));
    let begun = Instant::now();
    loop {
        if interrupted.load(Relaxed) {
            return Ok((Vec::new(), MeasureEnd::Interrupted));
        }
        work.run()?;
        if begun.elapsed() >= limits.warm_up {
            break;
        }
    }
    tell(MeasureProgress::Phase(Phase::Measuring));
    let begun = Instant::now();
    let mut reported = begun;
    let (mut samples, mut times) = (Vec::new(), Vec::new());
    loop {
        if interrupted.load(Relaxed) {
            return Ok((samples, MeasureEnd::Interrupted));
        }
        let sample = work.run()?;
        samples.push(sample);
        times.push(sample.device_us.unwrap_or(sample.host_us));
        if reported.elapsed() >= PROGRESS_INTERVAL {
            reported = Instant::now();
            tell(MeasureProgress::Share(completed_share(
                times.len(),
                begun.elapsed(),
                limits,
            )));
        }
        if times.len() < MIN_RUNS {
            continue;
        }
        // The check reads all times, so it is only done after every tenth run.
        let may_be_steady = times.len() % MIN_RUNS == 0 && begun.elapsed() >= limits.least;
        if may_be_steady
            && relative_deviation(&times).is_some_and(|deviation| deviation <= STEADY_DEVIATION)
        {
            return Ok((samples, MeasureEnd::Steady));
        }
        if begun.elapsed() >= limits.time {
            return Ok((samples, MeasureEnd::TimeLimit));
        }
        if times.len() >= MAX_RUNS {
            return Ok((samples, MeasureEnd::Enough));
        }
    }
}

/// Returns the completed share of a measurement. The measurement ends at the time limit, but not
/// before the minimum number of runs.
fn completed_share(runs: usize, elapsed: Duration, limits: &MeasureLimits) -> f64 {
    let of_runs = runs as f64 / MIN_RUNS as f64;
    let of_time = elapsed.as_secs_f64() / limits.time.as_secs_f64().max(f64::MIN_POSITIVE);
    of_runs.min(of_time).min(1.0)
}

/// Summarizes times. Returns `None` if there are no times.
pub(crate) fn summarize_times(times_us: impl IntoIterator<Item = f64>) -> Option<Times> {
    let mut sorted: Vec<f64> = times_us.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let (first, _) = (sorted.first()?, sorted.last()?);
    let rank = median_interval_lower_index(n);
    Some(Times {
        median_us: f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
        low_us: sorted[rank],
        high_us: sorted[n - 1 - rank],
        p5_us: interpolate_quantile(&sorted, 0.05),
        p95_us: interpolate_quantile(&sorted, 0.95),
        min_us: *first,
        n,
    })
}

/// Returns the standard deviation divided by the mean, or `None` if there are fewer than two times.
pub(crate) fn relative_deviation(times_us: &[f64]) -> Option<f64> {
    let n = times_us.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = times_us.iter().sum::<f64>() / n;
    let variance = times_us
        .iter()
        .map(|time| (time - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

/// Returns the index of the lower end of the median's 95 % confidence interval, in a sorted list of
/// `n` values. The upper end has the same index, counted from the end of the list.
///
/// Each value is below the median with a probability of one half, whatever the distribution. The
/// number of values below the median therefore has a binomial distribution. If there are too few
/// values for 95 %, the interval covers all of them.
fn median_interval_lower_index(n: usize) -> usize {
    // For more than 200 values, the binomial distribution is close to the normal distribution.
    if n > 200 {
        let n = n as f64;
        return ((n - 1.96 * n.sqrt()) / 2.0).floor() as usize;
    }
    let mut probability = 0.5_f64.powf(n as f64);
    let (mut below, mut rank) = (probability, 0);
    while below <= 0.025 {
        rank += 1;
        probability *= (n - rank + 1) as f64 / rank as f64;
        below += probability;
    }
    rank.saturating_sub(1)
}

/// Returns a quantile, interpolated between the two nearest values.
fn interpolate_quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + part * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Verification;

    /// Work whose runs take the given times. The run number `stops_at` sets the interrupt flag.
    struct ScriptedWork<'a> {
        times_us: &'a [f64],
        runs: usize,
        stops_at: usize,
        flag: &'a AtomicBool,
    }

    impl Prepared for ScriptedWork<'_> {
        fn run(&mut self) -> Result<TimedRun, RunError> {
            let host_us = self.times_us[self.runs % self.times_us.len()];
            self.runs += 1;
            self.flag.store(self.runs >= self.stops_at, Relaxed);
            Ok(TimedRun {
                device_us: None,
                host_us,
            })
        }

        fn verify(&mut self) -> Result<Verification, RunError> {
            Ok(Verification::empty())
        }
    }

    fn measure_scripted(
        times_us: &[f64],
        stops_at: usize,
        time: Duration,
    ) -> (usize, usize, MeasureEnd) {
        let flag = AtomicBool::new(false);
        let mut work = ScriptedWork {
            times_us,
            runs: 0,
            stops_at,
            flag: &flag,
        };
        let limits = MeasureLimits {
            warm_up: Duration::ZERO,
            least: Duration::ZERO,
            time,
        };
        let (samples, stopped) = measure_runs(&mut work, &limits, &flag, &mut |_| {}).unwrap();
        (work.runs, samples.len(), stopped)
    }

    #[test]
    fn measurement_with_steady_times_stops_after_ten_runs() {
        let hour = Duration::from_hours(1);
        assert_eq!(
            measure_scripted(&[100.0, 100.4], usize::MAX, hour),
            (11, 10, MeasureEnd::Steady)
        );
    }

    #[test]
    fn unsteady_measurement_stops_at_time_or_run_limit() {
        assert_eq!(
            measure_scripted(&[1.0, 2.0], usize::MAX, Duration::ZERO),
            (11, 10, MeasureEnd::TimeLimit)
        );
        let hour = Duration::from_hours(1);
        assert_eq!(
            measure_scripted(&[1.0, 2.0], usize::MAX, hour),
            (MAX_RUNS + 1, MAX_RUNS, MeasureEnd::Enough)
        );
    }

    #[test]
    fn progress_depends_on_runs_and_elapsed_time() {
        let limits = MeasureLimits {
            time: Duration::from_secs(2),
            ..MeasureLimits::QUICK
        };
        let at = |runs, ms| completed_share(runs, Duration::from_millis(ms), &limits);
        let shares = [at(5, 3000), at(1000, 500), at(1000, 3000)]
            .map(|share| (share * 100.0).round() as u32);
        assert_eq!(shares, [50, 25, 100]);
    }

    #[test]
    fn interruption_keeps_earlier_measurements() {
        let hour = Duration::from_hours(1);
        assert_eq!(
            measure_scripted(&[1.0, 2.0], 4, hour),
            (4, 3, MeasureEnd::Interrupted)
        );
    }

    #[test]
    fn confidence_interval_ranks_match_textbook_tables() {
        // The expected ranks are those of textbook tables for the lower end of the 95 % interval.
        // Ranks in these tables start at 1.
        for (n, rank) in [
            (5, 1),
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (15, 4),
            (20, 6),
            (25, 8),
            (50, 18),
            (100, 40),
        ] {
            assert_eq!(median_interval_lower_index(n) + 1, rank, "{n}");
        }
        // The exact rank for 200 values and the approximate rank for 201 values must agree.
        assert!(median_interval_lower_index(200).abs_diff(median_interval_lower_index(201)) <= 1);
    }

    #[test]
    fn times_are_summarized() {
        let times = summarize_times((1..=21).rev().map(f64::from)).unwrap();
        assert_eq!((times.median_us, times.min_us, times.n), (11.0, 1.0, 21));
        assert_eq!((times.p5_us, times.p95_us), (2.0, 20.0));
        assert_eq!((times.low_us, times.high_us), (6.0, 16.0));
        assert!((summarize_times([1.0, 2.0]).unwrap().median_us - 1.5).abs() < 1e-9);
        assert_eq!(summarize_times([]), None);
    }

    #[test]
    fn relative_deviation_requires_two_times() {
        assert_eq!(relative_deviation(&[1.0]), None);
        assert_eq!(relative_deviation(&[2.0, 2.0]), Some(0.0));
        assert!((relative_deviation(&[9.0, 11.0]).unwrap() - 0.141_42).abs() < 1e-4);
    }
}
