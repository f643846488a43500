//! Summaries of the driver's readings over a period of time.

use std::collections::BTreeMap;

use gpumon_probe::{
    model::{GpuSample, Reading, ThrottleCause},
    stat::{Stat, Window},
    usage::EnergyMeter,
};

use super::other_processes::find_other_processes;
use crate::protocol::Load;

/// The minimum time for a measurement of energy. The counter changes ten times a second, and three
/// changes are needed.
const MIN_ENERGY_MS: u64 = 300;

/// Summarizes the samples in a time range, in milliseconds since 1970. Returns `None` if there are
/// no samples. `before` contains the PIDs that were computing before the work began.
pub(super) fn summarize_load(
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
        sm_mhz: stat(|sample| fresh_value(&sample.clocks.sm_mhz).map(f64::from)),
        watts: stat(current_watts),
        limit_watts: all()
            .filter_map(|sample| sample.power.limit_watts.value())
            .next_back()
            .copied(),
        joules: total_joules(all(), from_ms, to_ms),
        celsius: stat(|sample| fresh_value(&sample.temperature.gpu_celsius)),
        share_at_clock: None,
        throttled_by,
        others: find_other_processes(all(), before),
    })
}

/// Returns the power draw of the board, if it was read for this sample.
pub(super) fn current_watts(sample: &GpuSample) -> Option<f64> {
    fresh_value(&sample.power.instant_watts).or_else(|| fresh_value(&sample.power.draw_watts))
}

/// Returns the energy for the whole time range, if the counter's readings cover at least half of
/// it.
fn total_joules<'a>(
    samples: impl Iterator<Item = &'a GpuSample>,
    from_ms: u64,
    to_ms: u64,
) -> Option<f64> {
    let meter: EnergyMeter = samples
        .filter_map(|sample| {
            Some((
                fresh_value(&sample.power.energy_joules_total)?,
                sample.at_ms,
            ))
        })
        .collect();
    let ((joules, read_ms), all_ms) = (meter.total_energy_and_time(), to_ms - from_ms);
    (read_ms >= MIN_ENERGY_MS && read_ms * 2 >= all_ms)
        .then(|| joules / read_ms as f64 * all_ms as f64)
}

/// Returns the value of a reading if it was read for this sample, and not earlier.
pub(super) fn fresh_value<T: Copy>(reading: &Reading<T>) -> Option<T> {
    match reading {
        Reading::Now(value) => Some(*value),
        Reading::Earlier { .. } | Reading::Absent(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Health, ThrottleReason};

    use super::*;

    fn make_sample(at_ms: u64) -> GpuSample {
        GpuSample::new_absent(0, None, at_ms, Health::Ok, &Absence::Unknown)
    }

    #[test]
    fn samples_are_summarized_and_empty_range_is_none() {
        let mut hot = make_sample(10);
        hot.power.draw_watts = Reading::Now(500.0);
        hot.power.instant_watts = Reading::Now(690.0);
        hot.power.limit_watts = Reading::Now(700.0);
        hot.throttle_reasons =
            Reading::Now(vec![ThrottleReason::SwPowerCap, ThrottleReason::GpuIdle]);
        let mut cool = make_sample(20);
        cool.power.draw_watts = Reading::Now(120.0);
        cool.temperature.gpu_celsius = Reading::Earlier {
            value: 99.0,
            at_ms: 1,
        };
        let samples = [make_sample(5), hot.clone(), cool, make_sample(25)];
        let load = summarize_load(&samples, 6, 24, &[]).unwrap();
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
        assert_eq!(load.main_throttle_reason(), None);
        assert_eq!(
            summarize_load(&[hot], 10, 10, &[])
                .unwrap()
                .main_throttle_reason(),
            Some("sw_power_cap")
        );
        assert_eq!(summarize_load(&samples, 11, 19, &[]), None);
    }

    #[test]
    fn energy_requires_long_enough_span() {
        let counted = |at_ms, joules| {
            let mut sample = make_sample(at_ms);
            sample.power.energy_joules_total = Reading::Now(joules);
            sample
        };
        let of =
            |samples: &[GpuSample], to_ms| summarize_load(samples, 0, to_ms, &[]).unwrap().joules;
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
