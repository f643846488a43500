//! What was read of a GPU from when to when.

use std::process;

use gpumon_probe::{
    model::{Absence, Activity, GpuSample, Process, Reading},
    stat::Window,
    usage::EnergyMeter,
};

/// The counter of energy moves ten times a second: of a shorter time it tells nothing.
const LEAST_MS: u64 = 2000;

#[derive(Debug)]
pub(crate) struct SampleWindow {
    from_ms: u64,
    to_ms: u64,
    samples: Vec<GpuSample>,
    metered: Vec<GpuSample>,
}

impl SampleWindow {
    /// Of whole samples, and of those that are taken more often and have nothing but what costs
    /// little and the energy.
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

    /// The mean of what was read in this time. What was read before it does not count.
    pub(super) fn mean(&self, of: impl Fn(&GpuSample) -> Reading<f64>) -> Reading<f64> {
        self.mean_of(&self.samples, of)
    }

    /// The mean of one of the hardware's own counters.
    pub(super) fn activity(&self, of: fn(&Activity) -> &Reading<f64>) -> Reading<f64> {
        self.mean(|sample| within(&sample.activity, |activity| of(activity).clone()))
    }

    /// The mean of what the driver said of this process; unknown where it lists it nowhere, as
    /// under a number of another namespace.
    pub(super) fn own_process(&self, of: fn(&Process) -> Reading<f64>) -> Reading<f64> {
        self.mean(|sample| {
            within(&sample.processes, |processes| {
                let own = processes
                    .iter()
                    .find(|process| process.pid == process::id());
                own.map_or(Reading::Absent(Absence::Unknown), of)
            })
        })
    }

    /// Without its first so many milliseconds.
    pub(super) fn later(&self, ms: u64) -> Self {
        Self::new(&self.samples, &self.metered, self.from_ms + ms, self.to_ms)
    }

    pub(super) fn sm_mhz(&self) -> Reading<f64> {
        self.mean_of(&self.metered, |sample| {
            sample.clocks.sm_mhz.clone().map(f64::from)
        })
    }

    /// What the board used by its own counter, in joules.
    pub(super) fn joules(&self) -> Reading<f64> {
        let (joules, time_ms) = self.read_counter();
        if time_ms >= LEAST_MS {
            return Reading::Now(joules);
        }
        match self.mean_of(&self.metered, |sample| {
            sample.power.energy_joules_total.clone()
        }) {
            Reading::Absent(why) => Reading::Absent(why),
            _ => Reading::Absent(Absence::WarmingUp),
        }
    }

    /// The same by the board's own measurements of its power, in the time between the counter's
    /// first and last count.
    pub(super) fn joules_by_power(&self) -> Reading<f64> {
        let watts = self.mean_of(&self.metered, |sample| match &sample.power.instant_watts {
            Reading::Absent(_) => sample.power.draw_watts.clone(),
            instant => instant.clone(),
        });
        let (_, time_ms) = self.read_counter();
        watts.map(|watts| watts * time_ms as f64 / 1e3)
    }

    /// The energy that the counter has counted, in joules, and in how many milliseconds.
    fn read_counter(&self) -> (f64, u64) {
        let counts = self.metered.iter();
        let counts =
            counts.filter_map(|sample| self.read(sample, &sample.power.energy_joules_total));
        counts.collect::<EnergyMeter>().get()
    }

    pub(super) fn nothing() -> Reading<f64> {
        Reading::Absent(Absence::NoAnswer)
    }

    fn mean_of(
        &self,
        samples: &[GpuSample],
        of: impl Fn(&GpuSample) -> Reading<f64>,
    ) -> Reading<f64> {
        let read = samples
            .iter()
            .filter_map(|sample| self.read(sample, &of(sample)));
        let mean = read.map(|(value, _)| value).collect::<Window>().mean();
        mean.map_or_else(
            || match samples.last().map(&of) {
                Some(Reading::Absent(why)) => Reading::Absent(why),
                _ => Self::nothing(),
            },
            Reading::Now,
        )
    }

    /// A value of this time, and when it was read.
    fn read(&self, sample: &GpuSample, reading: &Reading<f64>) -> Option<(f64, u64)> {
        let at_ms = reading.read_at_ms(sample.at_ms);
        let is_within = (self.from_ms..=self.to_ms).contains(&at_ms);
        reading
            .value()
            .filter(|_| is_within)
            .map(|value| (*value, at_ms))
    }
}

/// A reading within another, which is as old as that.
fn within<T>(outer: &Reading<T>, of: impl Fn(&T) -> Reading<f64>) -> Reading<f64> {
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
    use gpumon_probe::model::Health;

    use super::*;

    fn sample(at_ms: u64) -> GpuSample {
        GpuSample::absent(0, None, at_ms, Health::Ok, &Absence::NotSupported)
    }

    #[test]
    fn what_was_read_at_another_time_does_not_count() {
        let watts = |at_ms, reading| {
            let mut sample = sample(at_ms);
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
            SampleWindow::new(&samples, &[], 10, 20).mean(of),
            Reading::Now(150.0)
        );
        assert_eq!(
            SampleWindow::new(&[sample(3)], &[], 0, 9).mean(of),
            Reading::Absent(Absence::NotSupported)
        );
    }

    #[test]
    fn energy_by_the_counter_and_by_power_are_of_the_same_time() {
        let read = |at_ms, joules, watts| {
            let mut sample = sample(at_ms);
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
            (of(50).joules(), of(50).joules_by_power()),
            (Reading::Now(1250.0), Reading::Now(1250.0))
        );
        assert_eq!(
            of(300).joules(),
            Reading::Absent(Absence::WarmingUp),
            "one count is none"
        );
        assert_eq!(
            SampleWindow::new(&[], &[sample(1)], 0, 9).joules(),
            Reading::Absent(Absence::NotSupported)
        );
    }
}
