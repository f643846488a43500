//! A GPU is slower than it usually is at the same load, and nothing tells why.
//!
//! A reason that the driver gives is a condition of its own, and clocks and limits that somebody
//! has set are no concern. Power alone tells nothing, since programs and even data differ in it at
//! the same load: only beside GPUs that have the same to do it does.

use super::{
    baseline::{Baseline, Load, Settings},
    clock::Moment,
    hysteresis::Observation,
    idle_power::draw_watts,
    rule::{Rule, View},
};
use crate::model::{ConditionKind, GpuSample, SLOW_CLOCK, ThrottleCause};

/// A GPU with less to do has its clock high or low as it pleases.
const BUSY_PERCENT: f64 = 60.0;

/// Of GPUs with the same to do, the draw differs by some percent.
const LOW_POWER: f64 = 0.8;

/// For so long it must have been slower than it was and than others are.
const BEGIN_AFTER_MS: u64 = 180_000;

/// The same where there are no others to compare with.
pub(super) const BEGIN_ALONE_AFTER_MS: u64 = 600_000;

/// A step of training or a request is no matter.
const AVERAGED_MS: f64 = 30_000.0;

/// A reason that the driver gives for this share of so much time explains a lower clock; one of a
/// moment is left out.
const REASONED: f64 = 0.25;
const REASONED_OF_MS: f64 = 60_000.0;

/// A sample stands for the time before it, but for no longer than this.
const LONGEST_STEP_MS: u64 = 30_000;

#[derive(Default)]
pub(super) struct SlowerThanItself {
    baseline: Baseline,
    last: Option<Moment>,
    /// When the counters were read last, and compared with.
    counted: Option<(u64, Moment)>,
    average: Option<Ratios>,
    /// For which share of the last minute the driver has given a reason.
    reasoned: f64,
    /// For how long it has been slower, of the time in which it had work.
    slow_ms: u64,
}

/// What is now, as a share of what is usual.
#[derive(Debug, Clone, Copy)]
struct Ratios {
    clock: f64,
    power: f64,
}

/// What a GPU does at its load.
#[derive(Debug, Clone, Copy)]
struct Pace {
    load: Load,
    sm_mhz: f64,
    watts: f64,
}

impl SlowerThanItself {
    fn with(baseline: Baseline) -> Self {
        Self {
            baseline,
            ..Self::default()
        }
    }

    fn follow(&mut self, now: Ratios, step_ms: u64) -> Ratios {
        let weight = (step_ms as f64 / AVERAGED_MS).min(1.0);
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
            .map_or(0, |last| view.now.since(last))
            .min(LONGEST_STEP_MS);
        let application_mhz = view
            .detail(|details| &details.application_clocks.graphics_mhz)
            .copied();
        let limit_watts = view.fresh(&view.sample.power.limit_watts).copied();
        self.baseline.set(Settings {
            limit_watts,
            application_mhz,
        });
        let Some(reasons) = view.fresh(&view.sample.throttle_reasons) else {
            return Observation::Unknown;
        };
        let has_reason = reasons
            .iter()
            .any(|reason| reason.cause() != ThrottleCause::Idle);
        self.reasoned += (f64::from(u8::from(has_reason)) - self.reasoned)
            * (step_ms as f64 / REASONED_OF_MS).min(1.0);
        if self.reasoned >= REASONED {
            (self.average, self.slow_ms) = (None, 0);
            return Observation::Ended;
        }
        if has_reason {
            return Observation::Inconclusive;
        }
        // A load of earlier says nothing of a clock of now.
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
        let step_ms = step_ms.max(view.now.since(before)).min(LONGEST_STEP_MS);
        // Without work, nothing tells whether it is still so.
        let Some(pace) = Pace::of(view, view.sample) else {
            return Observation::Inconclusive;
        };
        // Of power, the next load tells nothing.
        let (exact, near) = (
            self.baseline.usual(pace.load),
            self.baseline.usual_near(pace.load),
        );
        self.baseline
            .learn(pace.load, step_ms as f64 / 1000.0, pace.sm_mhz, pace.watts);
        let Some(usual) = exact.or(near) else {
            return Observation::Inconclusive;
        };
        let average = self.follow(pace.beside(usual.sm_mhz, usual.watts), step_ms);
        let siblings = Siblings::of(view, pace);
        let is_slow = average.clock < SLOW_CLOCK && siblings.are_faster(pace);
        let draws_less = exact.is_some() && average.power < LOW_POWER && siblings.draw_more(pace);
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
        // It is the same chip when it is back.
        *self = Self::with(std::mem::take(&mut self.baseline));
    }

    fn baseline(&self) -> Option<&Baseline> {
        Some(&self.baseline)
    }

    fn restore(&mut self, baseline: &Baseline) {
        *self = Self::with(baseline.clone());
    }
}

impl Pace {
    /// `None` where it has little to do, or not everything is known.
    fn of(view: &View<'_>, gpu: &GpuSample) -> Option<Self> {
        let counted = view.fresh(&gpu.activity).and_then(|activity| {
            view.fresh(&activity.sm_percent)
                .copied()
                .zip(view.fresh(&activity.tensor_percent).copied())
        });
        let utilization = &gpu.utilization;
        let gpu_percent = view.fresh(&utilization.gpu_percent).copied();
        let plain = gpu_percent.zip(view.fresh(&utilization.memory_percent).copied());
        let load = match (counted, plain) {
            (Some((sm, tensor)), _) => Load::new(true, sm, tensor),
            (None, Some((gpu, memory))) => Load::new(false, gpu, memory),
            (None, None) => return None,
        };
        gpu_percent.filter(|percent| *percent >= BUSY_PERCENT)?;
        let sm_mhz = f64::from(*view.fresh(&gpu.clocks.sm_mhz)?);
        Some(Self {
            load,
            sm_mhz,
            watts: draw_watts(view, gpu)?,
        })
    }

    fn beside(self, sm_mhz: f64, watts: f64) -> Ratios {
        Ratios {
            clock: self.sm_mhz / sm_mhz.max(1.0),
            power: self.watts / watts.max(1.0),
        }
    }
}

/// GPUs of the same kind, with about the same to do.
#[derive(Debug, Default)]
struct Siblings {
    gpus: Vec<u32>,
    paces: Vec<Pace>,
}

impl Siblings {
    /// The model is told apart by its memory, and one whose limit was lowered by that.
    fn of(view: &View<'_>, pace: Pace) -> Self {
        let kind = |gpu: &GpuSample| {
            (
                gpu.memory.total_bytes.value().copied(),
                gpu.power.limit_watts.value().copied(),
            )
        };
        let others = view.others().filter(|gpu| kind(gpu) == kind(view.sample));
        let alike = others.filter_map(|gpu| {
            let theirs = Pace::of(view, gpu).filter(|theirs| theirs.load.is_like(pace.load))?;
            Some((gpu.index, theirs))
        });
        let (gpus, paces) = alike.unzip();
        Self { gpus, paces }
    }

    /// Also where there are none to compare with.
    fn are_faster(&self, pace: Pace) -> bool {
        self.median(|theirs| theirs.sm_mhz)
            .is_none_or(|usual| pace.sm_mhz < usual * SLOW_CLOCK)
    }

    fn draw_more(&self, pace: Pace) -> bool {
        self.median(|theirs| theirs.watts)
            .is_some_and(|usual| pace.watts < usual * LOW_POWER)
    }

    fn median(&self, of: impl Fn(&Pace) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.paces.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests;
