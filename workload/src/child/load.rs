//! A summary of the readings over a time.

use std::collections::BTreeMap;

use gpumon_probe::{
    model::{GpuSample, Reading, ThrottleCause},
    stat::{Stat, Window},
    usage::EnergyMeter,
};

use super::other_processes::other_than_this_process;
use crate::protocol::Load;

/// The minimum time for a measurement of energy. The counter changes ten times a second, and three
/// changes are needed.
const SHORTEST_MS: u64 = 300;

/// Summarizes the samples of a time range, in milliseconds since 1970; returns `None` if there are
/// none. `before` are the PIDs from before the work.
pub(super) fn load_of(
    samples: &[GpuSample],
    from_ms: u64,
    to_ms: u64,
    before: &[u32],
) -> Option<Load> {
    let all = || {
        samples
            .iter()
            .filter(|sample| (from_ms..=to_ms).contains(&sample.at_ms))
    };
    let reasons = all()
        .filter_map(|sample| sample.throttle_reasons.value())
        .flatten();
    let mut throttled_by = BTreeMap::new();
    for reason in reasons.filter(|reason| reason.cause() != ThrottleCause::Idle) {
        let name = serde_json::to_value(reason).ok()?.as_str()?.to_owned();
        *throttled_by.entry(name).or_default() += 1;
    }
    let stat = |read: fn(&GpuSample) -> Option<f64>| -> Option<Stat> {
        all().filter_map(read).collect::<Window>().stat()
    };
    let count = all().count();
    (count > 0).then(|| Load {
        samples: count,
        sm_mhz: stat(|sample| fresh(&sample.clocks.sm_mhz).map(f64::from)),
        watts: stat(watts),
        limit_watts: all()
            .filter_map(|sample| sample.power.limit_watts.value())
            .next_back()
            .copied(),
        joules: joules(all(), from_ms, to_ms),
        celsius: stat(|sample| fresh(&sample.temperature.gpu_celsius)),
        share_at_clock: None,
        throttled_by,
        others: other_than_this_process(all(), before),
    })
}

/// Returns the power draw of the board, if it was read for this sample.
pub(super) fn watts(sample: &GpuSample) -> Option<f64> {
    fresh(&sample.power.instant_watts).or_else(|| fresh(&sample.power.draw_watts))
}

/// Returns the energy of the whole time, if the counter covers at least half of it.
fn joules<'a>(
    samples: impl Iterator<Item = &'a GpuSample>,
    from_ms: u64,
    to_ms: u64,
) -> Option<f64> {
    let meter: EnergyMeter = samples
        .filter_map(|sample| Some((fresh(&sample.power.energy_joules_total)?, sample.at_ms)))
        .collect();
    let ((joules, read_ms), all_ms) = (meter.get(), to_ms - from_ms);
    (read_ms >= SHORTEST_MS && read_ms * 2 >= all_ms)
        .then(|| joules / read_ms as f64 * all_ms as f64)
}

/// Returns a value if it was read for this sample.
pub(super) fn fresh<T: Copy>(reading: &Reading<T>) -> Option<T> {
    match reading {
        Reading::Now(value) => Some(*value),
        Reading::Earlier { .. } | Reading::Absent(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Health, ThrottleReason};

    use super::*;

    fn sample(at_ms: u64) -> GpuSample {
        GpuSample::absent(0, None, at_ms, Health::Ok, &Absence::Unknown)
    }

    #[test]
    fn a_stretch_of_time_is_summed_up_and_an_empty_one_is_nothing() {
        let mut hot = sample(10);
        hot.power.draw_watts = Reading::Now(500.0);
        hot.power.instant_watts = Reading::Now(690.0);
        hot.power.limit_watts = Reading::Now(700.0);
        hot.throttle_reasons =
            Reading::Now(vec![ThrottleReason::SwPowerCap, ThrottleReason::GpuIdle]);
        let mut cool = sample(20);
        cool.power.draw_watts = Reading::Now(120.0);
        cool.temperature.gpu_celsius = Reading::Earlier {
            value: 99.0,
            at_ms: 1,
        };
        let samples = [sample(5), hot.clone(), cool, sample(25)];
        let load = load_of(&samples, 6, 24, &[]).unwrap();
        assert_eq!(
            (load.samples, load.watts),
            (
                2,
                Some(Stat {
                    min: 120.0,
                    mean: 405.0,
                    max: 690.0
                })
            )
        );
        assert_eq!(load.limit_watts, Some(700.0), "the last that is known");
        assert_eq!(
            (load.sm_mhz, load.celsius, load.joules),
            (None, None, None),
            "what is not known is left out"
        );
        assert_eq!(
            load.throttled_by,
            BTreeMap::from([("sw_power_cap".to_owned(), 1)])
        );
        assert_eq!(load.mostly_throttled_by(), None);
        assert_eq!(
            load_of(&[hot], 10, 10, &[]).unwrap().mostly_throttled_by(),
            Some("sw_power_cap")
        );
        assert_eq!(load_of(&samples, 11, 19, &[]), None);
    }

    #[test]
    fn energy_is_told_of_a_stretch_that_was_read_for_long_enough() {
        let counted = |at_ms, joules| {
            let mut sample = sample(at_ms);
            sample.power.energy_joules_total = Reading::Now(joules);
            sample
        };
        let of = |samples: &[GpuSample], to_ms| load_of(samples, 0, to_ms, &[]).unwrap().joules;
        let samples = [
            counted(100, 1000.0),
            counted(300, 1100.0),
            counted(500, 1200.0),
        ];
        assert_eq!(of(&samples, 600), Some(300.0));
        assert_eq!(of(&samples, 1000), None, "less than half of it was read");
        assert_eq!(of(&samples[..2], 350), None, "too short");
    }
}
