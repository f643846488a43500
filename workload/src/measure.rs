//! The repetition of runs, and the decision when to stop.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use crate::{
    error::RunError,
    protocol::{Backend, Phase, Report, Stopped},
    statistics::relative_deviation,
    workload::{Prepared, Sample},
};

/// The minimum number of measured runs.
pub(crate) const FEWEST: usize = 10;
/// The maximum number of measured runs.
pub(crate) const MOST: usize = 20_000;
/// The time under load after which the clock of a GPU depends only on its power and cooling.
pub(crate) const SETTLING: Duration = Duration::from_secs(3);
/// The minimum time between two progress reports.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// The relative deviation below which times are steady.
pub(crate) const STEADY: f64 = 0.005;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The minimum duration of unmeasured runs, which raise the clocks and fill the caches. There
    /// is at least one such run.
    pub warm_up: Duration,
    /// The minimum duration of measuring, even if the times are steady, because other readings of
    /// the device take time.
    pub least: Duration,
    /// The maximum duration of measuring if the times do not become steady. At least ten runs are
    /// measured in any case.
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Now {
    Phase(Phase),
    /// The completed share of the measurement, from 0 to 1, sent at most ten times a second.
    Share(f64),
}

impl Now {
    /// Converts the progress into a report of a step.
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

impl Limits {
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

pub(crate) fn measure(
    work: &mut dyn Prepared,
    limits: &Limits,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Now),
) -> Result<(Vec<Sample>, Stopped), RunError> {
    tell(Now::Phase(Phase::WarmingUp));
    let begun = Instant::now();
    loop {
        if interrupted.load(Relaxed) {
            return Ok((Vec::new(), Stopped::Interrupted));
        }
        work.run()?;
        if begun.elapsed() >= limits.warm_up {
            break;
        }
    }
    tell(Now::Phase(Phase::Measuring));
    let begun = Instant::now();
    let mut told = begun;
    let (mut samples, mut times) = (Vec::new(), Vec::new());
    loop {
        if interrupted.load(Relaxed) {
            return Ok((samples, Stopped::Interrupted));
        }
        let sample = work.run()?;
        samples.push(sample);
        times.push(sample.device_us.unwrap_or(sample.host_us));
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            tell(Now::Share(share(times.len(), begun.elapsed(), limits)));
        }
        if times.len() < FEWEST {
            continue;
        }
        // The check reads all times, so it is only done after every tenth run.
        let may_be_steady = times.len() % FEWEST == 0 && begun.elapsed() >= limits.least;
        if may_be_steady && relative_deviation(&times).is_some_and(|deviation| deviation <= STEADY)
        {
            return Ok((samples, Stopped::Steady));
        }
        if begun.elapsed() >= limits.time {
            return Ok((samples, Stopped::TimeLimit));
        }
        if times.len() >= MOST {
            return Ok((samples, Stopped::Enough));
        }
    }
}

/// Returns the completed share of the measurement, which ends with the time limit, but not before
/// the minimum number of runs.
fn share(runs: usize, elapsed: Duration, limits: &Limits) -> f64 {
    let of_runs = runs as f64 / FEWEST as f64;
    let of_time = elapsed.as_secs_f64() / limits.time.as_secs_f64().max(f64::MIN_POSITIVE);
    of_runs.min(of_time).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Verification;

    /// Work that takes given times in turn, and can interrupt itself.
    struct Told<'a> {
        times_us: &'a [f64],
        runs: usize,
        stops_at: usize,
        flag: &'a AtomicBool,
    }

    impl Prepared for Told<'_> {
        fn run(&mut self) -> Result<Sample, RunError> {
            let host_us = self.times_us[self.runs % self.times_us.len()];
            self.runs += 1;
            self.flag.store(self.runs >= self.stops_at, Relaxed);
            Ok(Sample {
                device_us: None,
                host_us,
            })
        }

        fn verify(&mut self) -> Result<Verification, RunError> {
            Ok(Verification::nothing())
        }
    }

    fn measured(times_us: &[f64], stops_at: usize, time: Duration) -> (usize, usize, Stopped) {
        let flag = AtomicBool::new(false);
        let mut work = Told {
            times_us,
            runs: 0,
            stops_at,
            flag: &flag,
        };
        let limits = Limits {
            warm_up: Duration::ZERO,
            least: Duration::ZERO,
            time,
        };
        let (samples, stopped) = measure(&mut work, &limits, &flag, &mut |_| {}).unwrap();
        (work.runs, samples.len(), stopped)
    }

    #[test]
    fn steady_times_are_enough_after_ten_and_a_warm_up() {
        let hour = Duration::from_hours(1);
        assert_eq!(
            measured(&[100.0, 100.4], usize::MAX, hour),
            (11, 10, Stopped::Steady)
        );
    }

    #[test]
    fn times_that_never_settle_end_with_the_time_but_not_before_ten() {
        assert_eq!(
            measured(&[1.0, 2.0], usize::MAX, Duration::ZERO),
            (11, 10, Stopped::TimeLimit)
        );
        let hour = Duration::from_hours(1);
        assert_eq!(
            measured(&[1.0, 2.0], usize::MAX, hour),
            (MOST + 1, MOST, Stopped::Enough)
        );
    }

    #[test]
    fn it_is_done_with_the_last_of_runs_and_time() {
        let limits = Limits {
            time: Duration::from_secs(2),
            ..Limits::QUICK
        };
        let at = |runs, ms| share(runs, Duration::from_millis(ms), &limits);
        let shares = [at(5, 3000), at(1000, 500), at(1000, 3000)]
            .map(|share| (share * 100.0).round() as u32);
        assert_eq!(shares, [50, 25, 100]);
    }

    #[test]
    fn who_interrupts_keeps_what_there_is() {
        let hour = Duration::from_hours(1);
        assert_eq!(measured(&[1.0, 2.0], 4, hour), (4, 3, Stopped::Interrupted));
    }
}
