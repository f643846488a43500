//! The conditions that a GPU is slower than before: slower than usual at the same load without a
//! reason from the driver, or slower than its baseline in a benchmark.
//!
//! If the driver reports a reason, another condition covers it. Clocks and limits set by users are
//! not a problem. Power alone proves nothing: at the same load, it differs between programs, and
//! even depends on the data that a program processes. Power is used only in comparison with GPUs
//! that have the same load.

use super::{
    baseline::{Baseline, Load, Settings, draw_watts},
    rule::{Moment, Observation, Rule, View},
};
use crate::{
    benchmarks::BelowBaseline,
    model::{ConditionKind, GpuSample, SLOW_CLOCK_RATIO, ThrottleCause},
};

/// The minimum utilization at which a GPU is checked. At lower loads, clocks vary.
const BUSY_PERCENT: f64 = 60.0;

/// A GPU draws too little power if its draw is less than this share of its usual draw, and also
/// less than this share of the other GPUs' median draw. At the same load, GPUs differ by a few
/// percent.
const LOW_POWER_RATIO: f64 = 0.8;

/// The condition starts after the GPU has been slower than usual, and slower than comparable GPUs,
/// for this long.
const BEGIN_AFTER_MS: u64 = 180_000;

/// If there are no comparable GPUs, the condition starts after the GPU has been slower than usual
/// for this long.
pub(super) const BEGIN_ALONE_AFTER_MS: u64 = 600_000;

/// The averaging period, which smooths out the variation between training steps or requests.
const AVERAGING_MS: f64 = 30_000.0;

/// If the driver reports a reason for at least this share of the last minute, a lower clock counts
/// as explained. Samples with a reason are skipped.
const EXPLAINED_SHARE: f64 = 0.25;
const EXPLAINED_WINDOW_MS: f64 = 60_000.0;

/// The longest period that one sample represents.
const MAX_STEP_MS: u64 = 30_000;

#[derive(Default)]
pub(super) struct SlowerThanItself {
    baseline: Baseline,
    last: Option<Moment>,
    /// The time of the hardware counters' latest reading, and the moment at which this rule used
    /// the reading.
    counted: Option<(u64, Moment)>,
    average: Option<Ratios>,
    /// The share of the last minute in which the driver reported a reason for lower clocks.
    reasoned: f64,
    /// How long the GPU has been slower than usual, not counting periods of low load.
    slow_ms: u64,
}

/// Current clock and power relative to the usual values.
#[derive(Debug, Clone, Copy)]
struct Ratios {
    clock: f64,
    power: f64,
}

/// A GPU's current load, clock and power.
#[derive(Debug, Clone, Copy)]
struct Pace {
    load: Load,
    sm_mhz: f64,
    watts: f64,
}

impl SlowerThanItself {
    fn with_baseline(baseline: Baseline) -> Self {
        Self {
            baseline,
            ..Self::default()
        }
    }

    fn update_average(&mut self, now: Ratios, step_ms: u64) -> Ratios {
        let weight = (step_ms as f64 / AVERAGING_MS).min(1.0);
        let average = self.average.map_or(now, |average| Ratios {
            clock: average.clock + (now.clock - average.clock) * weight,
            power: average.power + (now.power - average.power) * weight,
        });
        *self.average.insert(average)
    }
}

impl Rule for SlowerThanItself {
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        let step_ms = self
            .last
            .replace(view.now)
            .map_or(0, |last| view.now.ms_since(last))
            .min(MAX_STEP_MS);
        let application_mhz = view
            .fresh_detail(|details| &details.application_clocks.graphics_mhz)
            .copied();
        let limit_watts = view.fresh_value(&view.sample.power.limit_watts).copied();
        self.baseline.reset_if_settings_changed(Settings {
            limit_watts,
            application_mhz,
        });
        let Some(reasons) = view.fresh_value(&view.sample.throttle_reasons) else {
            return Observation::Unknown;
        };
        let has_reason = reasons
            .iter()
            .any(|reason| reason.cause() != ThrottleCause::Idle);
        self.reasoned += (f64::from(u8::from(has_reason)) - self.reasoned)
            * (step_ms as f64 / EXPLAINED_WINDOW_MS).min(1.0);
        if self.reasoned >= EXPLAINED_SHARE {
            (self.average, self.slow_ms) = (None, 0);
            return Observation::Ended;
        }
        if has_reason {
            return Observation::Inconclusive;
        }
        // Without a new reading of the hardware counters, the old load must not be compared with
        // the current clock.
        let counted_ms = view.sample.activity.read_at_ms(view.sample.at_ms);
        if self
            .counted
            .is_some_and(|(known_ms, _)| known_ms == counted_ms)
        {
            return Observation::Inconclusive;
        }
        let before = self
            .counted
            .replace((counted_ms, view.now))
            .map_or(view.now, |(_, at)| at);
        let step_ms = step_ms.max(view.now.ms_since(before)).min(MAX_STEP_MS);
        // A GPU without load neither confirms nor ends the condition.
        let Some(pace) = Pace::from_sample(view, view.sample) else {
            return Observation::Inconclusive;
        };
        // The usual power is known only for exactly the same load, but the usual clock is also
        // known for nearby loads.
        let (exact, near) = (
            self.baseline.usual_band(pace.load),
            self.baseline.nearest_usual_band(pace.load),
        );
        self.baseline
            .learn(pace.load, step_ms as f64 / 1000.0, pace.sm_mhz, pace.watts);
        let Some(usual) = exact.or(near) else {
            return Observation::Inconclusive;
        };
        let average = self.update_average(pace.ratios_to(usual.sm_mhz, usual.watts), step_ms);
        let siblings = Siblings::find(view, pace);
        let is_slow = average.clock < SLOW_CLOCK_RATIO && siblings.are_faster(pace);
        let draws_less =
            exact.is_some() && average.power < LOW_POWER_RATIO && siblings.draw_more(pace);
        if !is_slow && !draws_less {
            self.slow_ms = 0;
            return Observation::Inactive;
        }
        self.slow_ms = self.slow_ms.saturating_add(step_ms);
        let begins_after_ms = if siblings.gpus.is_empty() {
            BEGIN_ALONE_AFTER_MS
        } else {
            BEGIN_AFTER_MS
        };
        if self.slow_ms < begins_after_ms && !lasts {
            return Observation::Inconclusive;
        }
        Observation::Active(ConditionKind::SlowerThanItself {
            sm_mhz: pace.sm_mhz.round(),
            usual_sm_mhz: usual.sm_mhz.round(),
            power_watts: pace.watts.round(),
            usual_power_watts: usual.watts.round(),
            siblings: siblings.gpus,
        })
    }

    fn forget(&mut self) {
        // The baseline is kept, because the GPU that returns is the same chip.
        *self = Self::with_baseline(std::mem::take(&mut self.baseline));
    }

    fn baseline(&self) -> Option<&Baseline> {
        Some(&self.baseline)
    }

    fn restore(&mut self, baseline: &Baseline) {
        *self = Self::with_baseline(baseline.clone());
    }
}

impl Pace {
    /// Returns the current pace, or `None` if the load is low or a reading is missing.
    fn from_sample(view: &View<'_>, gpu: &GpuSample) -> Option<Self> {
        let counted = view.fresh_value(&gpu.activity).and_then(|activity| {
            view.fresh_value(&activity.sm_percent)
                .copied()
                .zip(view.fresh_value(&activity.tensor_percent).copied())
        });
        let load = match (counted, view.fresh_utilization(gpu)) {
            (Some((sm, tensor)), _) => Load::new(true, sm, tensor),
            (None, Some((gpu, memory))) => Load::new(false, gpu, memory),
            (None, None) => return None,
        };
        view.fresh_value(&gpu.utilization.gpu_percent)
            .filter(|percent| **percent >= BUSY_PERCENT)?;
        let sm_mhz = f64::from(*view.fresh_value(&gpu.clocks.sm_mhz)?);
        Some(Self {
            load,
            sm_mhz,
            watts: draw_watts(view, gpu)?,
        })
    }

    fn ratios_to(self, sm_mhz: f64, watts: f64) -> Ratios {
        Ratios {
            clock: self.sm_mhz / sm_mhz.max(1.0),
            power: self.watts / watts.max(1.0),
        }
    }
}

/// GPUs of the same model, with about the same load.
#[derive(Debug, Default)]
struct Siblings {
    gpus: Vec<u32>,
    paces: Vec<Pace>,
}

impl Siblings {
    /// Finds the GPU's siblings. GPUs with the same memory size count as the same model, and GPUs
    /// with another power limit are excluded.
    fn find(view: &View<'_>, pace: Pace) -> Self {
        let kind = |gpu: &GpuSample| {
            (
                gpu.memory.total_bytes.value().copied(),
                gpu.power.limit_watts.value().copied(),
            )
        };
        let others = view
            .other_responding_gpus()
            .filter(|gpu| kind(gpu) == kind(view.sample));
        let alike = others.filter_map(|gpu| {
            let theirs =
                Pace::from_sample(view, gpu).filter(|theirs| theirs.load.is_similar(pace.load))?;
            Some((gpu.index, theirs))
        });
        let (gpus, paces) = alike.unzip();
        Self { gpus, paces }
    }

    /// Returns `true` if the siblings are faster, or if there are none.
    fn are_faster(&self, pace: Pace) -> bool {
        self.median(|theirs| theirs.sm_mhz)
            .is_none_or(|usual| pace.sm_mhz < usual * SLOW_CLOCK_RATIO)
    }

    fn draw_more(&self, pace: Pace) -> bool {
        self.median(|theirs| theirs.watts)
            .is_some_and(|usual| pace.watts < usual * LOW_POWER_RATIO)
    }

    fn median(&self, of: impl Fn(&Pace) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.paces.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

/// Observes whether the latest benchmark was slower than its baseline. The condition lasts until
/// the next benchmark.
pub(super) fn observe_below_baseline(view: &View<'_>, _: bool) -> Observation<ConditionKind> {
    let Some(BelowBaseline {
        latest, baseline, ..
    }) = view.below_baseline
    else {
        return Observation::Inactive;
    };
    Observation::Active(ConditionKind::BelowBaseline {
        workload: latest.workload.clone(),
        dtype: latest.dtype.clone(),
        median_us: latest.time.median_us,
        baseline_us: baseline.time.median_us,
        measured_ms: latest.at_ms,
        baseline_ms: baseline.at_ms,
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod below_baseline_tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::{
        benchmarks::{Interval, Measurement},
        model::Severity,
    };

    #[test]
    fn condition_lasts_while_benchmark_is_below_baseline() {
        let measured = |at_ms, median_us| Measurement {
            workload: "copy".to_owned(),
            dtype: "fp32".to_owned(),
            n: 8,
            at_ms,
            time: Interval {
                median_us,
                low_us: median_us,
                high_us: median_us,
            },
            gpumon: "0.2.0".to_owned(),
            cuda: None,
            limit_watts: None,
            sm_mhz: None,
        };
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(1, |_| {});
        let (latest, baseline) = (measured(7, 3000.0), measured(5, 1000.0));
        timeline.tracker.set_below_baseline(Some(BelowBaseline {
            latest,
            baseline,
            ratio: 1.0 / 3.0,
        }));
        timeline.advance_with_sample(2, |_| {});
        assert!(
            timeline.only_condition().text.contains(
                "copy (fp32) takes 3000 us, compared with 1000 us before (0.33x the speed)"
            )
        );
        assert_eq!(timeline.only_condition().severity, Severity::Warning);
        let ConditionKind::BelowBaseline {
            measured_ms: 7,
            baseline_ms: 5,
            ..
        } = timeline.only_condition().kind
        else {
            panic!()
        };
        timeline.tracker.set_below_baseline(None);
        timeline.advance_with_sample(1, |_| {});
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(2, "+below_baseline"),
                expected_event(4, "-below_baseline")
            ]
        );
    }
}
