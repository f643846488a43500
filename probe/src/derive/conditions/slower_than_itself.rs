//! A GPU is slower than usual at the same load, and the driver reports no reason.
//!
//! Reasons that the driver reports are a condition of their own, and clocks and limits set by users
//! are no problem. Power alone proves nothing, because it differs between programs and even between
//! data at the same load. It is used only in comparison with GPUs that have the same load.

use super::{
    baseline::{Baseline, Load, Settings},
    clock::Moment,
    hysteresis::Observation,
    idle_power::draw_watts,
    rule::{Rule, View},
};
use crate::model::{ConditionKind, GpuSample, SLOW_CLOCK, ThrottleCause};

/// The minimum utilization of a GPU that is checked. A GPU with less load has varying clocks.
const BUSY_PERCENT: f64 = 60.0;

/// The share of the other GPUs' draw below which a GPU draws less. With the same load, the draw of
/// GPUs differs by some percent.
const LOW_POWER: f64 = 0.8;

/// The time for which the GPU must have been slower than usual and than other GPUs.
const BEGIN_AFTER_MS: u64 = 180_000;

/// The time for which the GPU must have been slower if there are no GPUs to compare with.
pub(super) const BEGIN_ALONE_AFTER_MS: u64 = 600_000;

/// The averaging period, which smooths out training steps and requests.
const AVERAGED_MS: f64 = 30_000.0;

/// The share of a period in which the driver must report a reason to explain a lower clock. Samples
/// with a reason are skipped.
const REASONED: f64 = 0.25;
const REASONED_OF_MS: f64 = 60_000.0;

/// The longest period that one sample represents.
const LONGEST_STEP_MS: u64 = 30_000;

#[derive(Default)]
pub(super) struct SlowerThanItself {
    baseline: Baseline,
    last: Option<Moment>,
    /// The time of the latest reading of the counters, and the moment at which it was used.
    counted: Option<(u64, Moment)>,
    average: Option<Ratios>,
    /// The share of the last minute in which the driver reported a reason.
    reasoned: f64,
    /// The time for which the GPU has been slower, without periods of low load.
    slow_ms: u64,
}

/// Current values relative to the usual ones.
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
        // An older load cannot be compared with the current clock.
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
        // A GPU without load neither confirms nor ends the condition.
        let Some(pace) = Pace::of(view, view.sample) else {
            return Observation::Inconclusive;
        };
        // The usual power is only known at exactly the same load, while the usual clock is also
        // known at a near one.
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
        // The baseline is kept, because a GPU that returns is the same chip.
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
    /// Returns the pace, or `None` if the GPU has little load or not all readings are available.
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

/// GPUs of the same model, with about the same load.
#[derive(Debug, Default)]
struct Siblings {
    gpus: Vec<u32>,
    paces: Vec<Pace>,
}

impl Siblings {
    /// Finds the siblings of the GPU. The model is identified by the memory size, and GPUs with
    /// another power limit are excluded.
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

    /// Returns `true` if the siblings are faster, or if there are none.
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
