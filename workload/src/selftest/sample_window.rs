//! The readings of a GPU in a time range.

use std::process;

use gpumon_probe::{
    model::{Absence, Activity, GpuSample, Process, Reading},
    stat::Window,
    usage::EnergyMeter,
};

/// The minimum time in milliseconds for measuring energy. The energy counter changes only ten times
/// a second.
const MIN_ENERGY_MS: u64 = 2000;

#[derive(Debug)]
pub(crate) struct SampleWindow {
    from_ms: u64,
    to_ms: u64,
    samples: Vec<GpuSample>,
    metered: Vec<GpuSample>,
}

impl SampleWindow {
    /// Returns the window with the samples of a time range. `samples` contain all readings.
    /// `metered` samples are taken more often, but only contain energy and cheap readings.
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
    pub(super) fn mean_reading(&self, of: impl Fn(&GpuSample) -> Reading<f64>) -> Reading<f64> {
        self.mean_of_samples(&self.samples, of)
    }

    /// Returns the mean of a hardware counter in this window.
    pub(super) fn mean_activity(&self, of: fn(&Activity) -> &Reading<f64>) -> Reading<f64> {
        self.mean_reading(|sample| inner_reading(&sample.activity, |activity| of(activity).clone()))
    }

    /// Returns the mean of a reading of this process in this window. It is unknown if the driver
    /// does not list the process, for example because PIDs belong to another namespace.
    pub(super) fn mean_of_this_process(&self, of: fn(&Process) -> Reading<f64>) -> Reading<f64> {
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
    pub(super) fn skip_first(&self, ms: u64) -> Self {
        Self::new(&self.samples, &self.metered, self.from_ms + ms, self.to_ms)
    }

    pub(super) fn sm_mhz(&self) -> Reading<f64> {
        self.mean_of_samples(&self.metered, |sample| {
            sample.clocks.sm_mhz.clone().map(f64::from)
        })
    }

    /// Returns the energy that the board used in joules, from the board's own counter.
    pub(super) fn joules(&self) -> Reading<f64> {
        let (joules, time_ms) = self.total_energy();
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

    /// Returns the energy that the board used in joules, from its power readings between the first
    /// and the last change of the energy counter.
    pub(super) fn joules_by_power(&self) -> Reading<f64> {
        let watts =
            self.mean_of_samples(&self.metered, |sample| match &sample.power.instant_watts {
                Reading::Absent(_) => sample.power.draw_watts.clone(),
                instant => instant.clone(),
            });
        let (_, time_ms) = self.total_energy();
        watts.map(|watts| watts * time_ms as f64 / 1e3)
    }

    /// Returns the energy counted by the energy counter in joules, and the time in milliseconds in
    /// which it was counted.
    fn total_energy(&self) -> (f64, u64) {
        let counts = self.metered.iter();
        let counts = counts.filter_map(|sample| {
            self.value_within_window(sample, &sample.power.energy_joules_total)
        });
        counts.collect::<EnergyMeter>().total_energy_and_time()
    }

    pub(super) fn missing_reading() -> Reading<f64> {
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
    fn counter_and_power_energy_cover_same_time() {
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
            (of(50).joules(), of(50).joules_by_power()),
            (Reading::Now(1250.0), Reading::Now(1250.0))
        );
        assert_eq!(
            of(300).joules(),
            Reading::Absent(Absence::WarmingUp),
            "one count is none"
        );
        assert_eq!(
            SampleWindow::new(&[], &[make_sample(1)], 0, 9).joules(),
            Reading::Absent(Absence::NotSupported)
        );
    }
}
