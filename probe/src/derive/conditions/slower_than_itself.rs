//! A GPU is slower than it usually is at the same load, and nothing tells why.
//!
//! A reason that the driver gives is a condition of its own, and clocks and limits that somebody has set are no concern.
//! Power alone tells nothing, since programs and even data differ in it at the same load: only beside GPUs that have the
//! same to do it does.

use super::{
    baseline::{Band, Baseline, Load, SLOW_CLOCK, Settings},
    clock::Moment,
    hysteresis::{Hysteresis, Observation},
    idle_power::draw_watts,
    rule::{Finding, Rule, View},
    text,
};
use crate::model::{Condition, ConditionKind, GpuSample, Health, Severity, ThrottleReason};

/// A GPU with less to do has its clock high or low as it pleases.
const BUSY_PERCENT: f64 = 60.0;

/// Of GPUs with the same to do, the draw differs by some percent.
const LOW_POWER: f64 = 0.8;

/// For so long it must have been slower than it was and than others are.
const BEGIN_AFTER_MS: u64 = 180_000;

/// The same where there are no others to compare with.
const BEGIN_ALONE_AFTER_MS: u64 = 600_000;

const END_AFTER_MS: u64 = 60_000;

/// A step of training or a request is no matter.
const AVERAGED_MS: f64 = 30_000.0;

/// A reason that the driver gives for this share of so much time explains a lower clock; one of a moment is left out.
const REASONED: f64 = 0.25;
const REASONED_OF_MS: f64 = 60_000.0;

/// A sample stands for the time before it, but for no longer than this.
const LONGEST_STEP_MS: u64 = 30_000;

pub(super) struct SlowerThanItself {
    baseline: Baseline,
    last: Option<Moment>,
    average: Option<Ratios>,
    /// For which share of the last minute the driver has given a reason.
    reasoned: f64,
    /// For how long it has been slower, of the time in which it had work.
    slow_ms: u64,
    hysteresis: Hysteresis<Finding>,
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
    pub(super) fn new() -> Self {
        Self::with(Baseline::default())
    }

    fn with(baseline: Baseline) -> Self {
        let hysteresis = Hysteresis::new(0, END_AFTER_MS);
        Self { baseline, last: None, average: None, reasoned: 0.0, slow_ms: 0, hysteresis }
    }

    fn observe(&mut self, view: &View<'_>) -> Observation<Finding> {
        let step_ms = self.last.replace(view.now).map_or(0, |last| view.now.since(last)).min(LONGEST_STEP_MS);
        let application_mhz = view.detail(|details| &details.application_clocks.graphics_mhz).copied();
        let limit_watts = view.fresh(&view.sample.power.limit_watts).copied();
        self.baseline.set(Settings { limit_watts, application_mhz });
        let Some(reasons) = view.fresh(&view.sample.throttle_reasons) else { return Observation::Unknown };
        let has_reason = reasons.iter().any(|reason| *reason != ThrottleReason::GpuIdle);
        self.reasoned += (f64::from(u8::from(has_reason)) - self.reasoned) * (step_ms as f64 / REASONED_OF_MS).min(1.0);
        if self.reasoned >= REASONED {
            (self.average, self.slow_ms) = (None, 0);
            return Observation::Ended;
        }
        if has_reason {
            return Observation::Inconclusive;
        }
        // Without work, nothing tells whether it is still so.
        let Some(pace) = Pace::of(view, view.sample) else { return Observation::Inconclusive };
        // Of power, the next load tells nothing.
        let (exact, near) = (self.baseline.usual(pace.load), self.baseline.usual_near(pace.load));
        self.baseline.learn(pace.load, step_ms as f64 / 1000.0, pace.sm_mhz, pace.watts);
        let Some(usual) = exact.or(near) else { return Observation::Inconclusive };
        let average = self.follow(pace.beside(usual.sm_mhz, usual.watts), step_ms);
        let siblings = Siblings::of(view, pace);
        let is_slow = average.clock < SLOW_CLOCK && siblings.are_faster(pace);
        let draws_less = exact.is_some() && average.power < LOW_POWER && siblings.draw_more(pace);
        if !is_slow && !draws_less {
            self.slow_ms = 0;
            return Observation::Inactive;
        }
        self.slow_ms += step_ms;
        let begins_after_ms = if siblings.gpus.is_empty() { BEGIN_ALONE_AFTER_MS } else { BEGIN_AFTER_MS };
        if self.slow_ms < begins_after_ms && !self.hysteresis.lasts() {
            return Observation::Inconclusive;
        }
        Observation::Active(finding(pace, usual, is_slow, siblings.gpus))
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
    fn evaluate(&mut self, view: &View<'_>) -> Option<Condition> {
        let observation = self.observe(view);
        self.hysteresis.condition(observation, view.now)
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
            view.fresh(&activity.sm_percent).copied().zip(view.fresh(&activity.tensor_percent).copied())
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
        Some(Self { load, sm_mhz, watts: draw_watts(view, gpu)? })
    }

    fn beside(self, sm_mhz: f64, watts: f64) -> Ratios {
        Ratios { clock: self.sm_mhz / sm_mhz.max(1.0), power: self.watts / watts.max(1.0) }
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
        let kind = |gpu: &GpuSample| (gpu.memory.total_bytes.value().copied(), gpu.power.limit_watts.value().copied());
        let others = view
            .machine
            .iter()
            .filter(|gpu| gpu.index != view.sample.index && gpu.health == Health::Ok && kind(gpu) == kind(view.sample));
        let alike = others.filter_map(|gpu| {
            let theirs = Pace::of(view, gpu).filter(|theirs| theirs.load.is_like(pace.load))?;
            Some((gpu.index, theirs))
        });
        let (gpus, paces) = alike.unzip();
        Self { gpus, paces }
    }

    /// Also where there are none to compare with.
    fn are_faster(&self, pace: Pace) -> bool {
        self.median(|theirs| theirs.sm_mhz).is_none_or(|usual| pace.sm_mhz < usual * SLOW_CLOCK)
    }

    fn draw_more(&self, pace: Pace) -> bool {
        self.median(|theirs| theirs.watts).is_some_and(|usual| pace.watts < usual * LOW_POWER)
    }

    fn median(&self, of: impl Fn(&Pace) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.paces.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

fn finding(pace: Pace, usual: Band, is_slow: bool, siblings: Vec<u32>) -> Finding {
    let mut sentences = vec![format!(
        "Slower than itself: {:.0} MHz and {:.0} W at a load at which {:.0} MHz and {:.0} W are usual for it.",
        pace.sm_mhz, pace.watts, usual.sm_mhz, usual.watts
    )];
    let others = match siblings.as_slice() {
        [] => None,
        [gpu] if is_slow => Some(format!("GPU {gpu} is faster at the same load.")),
        [gpu] => Some(format!("GPU {gpu} draws more at the same load.")),
        gpus if is_slow => Some(format!("GPUs {} are faster at the same load.", text::list(gpus))),
        gpus => Some(format!("GPUs {} draw more at the same load.", text::list(gpus))),
    };
    sentences.extend(others);
    let cure = "The driver gives no reason: check power cables and cooling, and reset the GPU when it is idle.";
    sentences.push(cure.to_owned());
    Finding {
        severity: Severity::Warning,
        text: sentences.join(" "),
        kind: ConditionKind::SlowerThanItself {
            sm_mhz: pace.sm_mhz.round(),
            usual_sm_mhz: usual.sm_mhz.round(),
            power_watts: pace.watts.round(),
            usual_power_watts: usual.watts.round(),
            siblings,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{START_MS, TestTimeline};
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, GpuDetails, Reading},
    };

    fn runs_at(mhz: u32, watts: f64) -> impl Fn(&mut GpuSample) {
        move |sample| {
            examples::use_gpu(sample, 98.0, 90.0);
            sample.activity = Reading::Now(examples::activity(90.0, 55.0));
            sample.clocks.sm_mhz = Reading::Now(mhz);
            sample.power.draw_watts = Reading::Now(watts);
            sample.power.limit_watts = Reading::Now(700.0);
        }
    }

    fn without_gpm(mhz: u32, watts: f64) -> impl Fn(&mut GpuSample) {
        move |sample| {
            runs_at(mhz, watts)(sample);
            sample.activity = Reading::Absent(Absence::NotSupported);
            sample.utilization.memory_percent = Reading::Now(40.0);
        }
    }

    fn others(change: impl Fn(&mut GpuSample)) -> Vec<GpuSample> {
        let other = |index| {
            let mut sample = GpuSample { index, ..examples::sample(START_MS) };
            change(&mut sample);
            sample
        };
        vec![other(1), other(2)]
    }

    #[test]
    fn a_clock_below_its_own_is_told_after_ten_minutes_and_until_it_is_back() {
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0)).show(660, runs_at(1410, 330.0));
        let [(began, word)] = &timeline.take_events()[..] else { panic!("{:?}", timeline.last.conditions) };
        assert!(word == "+slower_than_itself" && (1_000..=1_030).contains(began), "{began}");
        let condition = timeline.only();
        let text = "Slower than itself: 1410 MHz and 330 W at a load at which 1976 MHz and 499 W are usual for it. The driver \
                    gives no reason: check power cables and cooling, and reset the GPU when it is idle.";
        assert_eq!(condition.text, text);
        timeline.show(30, |sample| examples::use_gpu(sample, 0.0, 0.0));
        assert_eq!(timeline.take_events(), [], "it is still so while nothing runs");
        timeline.show(200, runs_at(1980, 500.0));
        assert_eq!(timeline.take_events().len(), 1);
    }

    #[test]
    fn beside_faster_gpus_it_is_told_sooner_and_beside_ones_as_slow_not_at_all() {
        let slow = |others| {
            let mut timeline = TestTimeline::new();
            timeline.show(400, without_gpm(1980, 500.0));
            timeline.others = others;
            timeline.show(800, without_gpm(1410, 330.0));
            (timeline.take_events(), timeline.last)
        };
        let (events, last) = slow(others(without_gpm(1980, 500.0)));
        assert!(matches!(&events[..], [(at, _)] if (580..=600).contains(at)), "{events:?}");
        assert!(last.conditions[0].text.contains(" GPUs 1 and 2 are faster at the same load."), "{last:?}");
        assert_eq!(slow(others(without_gpm(1410, 330.0))).0, []);
        let (events, _) = slow(others(|sample| {
            without_gpm(1980, 500.0)(sample);
            sample.power.limit_watts = Reading::Now(400.0);
        }));
        assert!(matches!(&events[..], [(at, _)] if *at > 1_000), "others are of another kind: {events:?}");
    }

    #[test]
    fn power_counts_beside_others_alone() {
        let low = |others| {
            let mut timeline = TestTimeline::new();
            timeline.show(400, runs_at(1980, 500.0));
            timeline.others = others;
            timeline.show(1_200, runs_at(1980, 300.0));
            let told: String = timeline.last.conditions.iter().map(|condition| condition.text.as_str()).collect();
            assert!(told.is_empty() || told.contains(" GPUs 1 and 2 draw more at the same load."), "{told}");
            timeline.take_events().len()
        };
        assert_eq!(low(others(runs_at(1980, 500.0))), 1);
        assert_eq!(low(others(runs_at(1980, 310.0))), 0);
        assert_eq!(low(Vec::new()), 0);
    }

    #[test]
    fn a_slow_clock_that_moves_the_work_into_a_load_never_seen_is_told() {
        let busier = |mhz| {
            move |sample: &mut GpuSample| {
                runs_at(mhz, 330.0)(sample);
                sample.activity = Reading::Now(examples::activity(95.0, 75.0));
            }
        };
        let mut timeline = TestTimeline::new();
        timeline.show(400, |sample| {
            runs_at(1980, 500.0)(sample);
            sample.activity = Reading::Now(examples::activity(78.0, 55.0));
        });
        timeline.show(1_200, busier(1410));
        assert!(
            matches!(&timeline.take_events()[..], [(at, _)] if (1_000..=1_030).contains(at)),
            "{:?}",
            timeline.last
        );
        assert!(timeline.only().text.contains("1410 MHz and 330 W at a load at which 197"), "{:?}", timeline.last);
        timeline.show(200, busier(1980));
        assert_eq!(timeline.take_events().len(), 1);
    }

    #[test]
    fn a_reason_of_a_moment_neither_delays_nor_ends_it_and_one_that_persists_does() {
        let slow_with = |every_s: u64| {
            move |sample: &mut GpuSample| {
                runs_at(1410, 330.0)(sample);
                let reasons = if (sample.at_ms / 1_000).is_multiple_of(every_s) {
                    vec![ThrottleReason::SwPowerCap]
                } else {
                    vec![]
                };
                sample.throttle_reasons = Reading::Now(reasons);
            }
        };
        let told = |timeline: &mut TestTimeline| -> Vec<_> {
            timeline.take_events().into_iter().filter(|(_, word)| word.ends_with("slower_than_itself")).collect()
        };
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0)).show(720, slow_with(50));
        let began = told(&mut timeline);
        assert!(matches!(&began[..], [(at, _)] if (1_000..=1_060).contains(at)), "{began:?}");
        timeline.show(600, slow_with(50));
        assert_eq!(told(&mut timeline), [], "it lasts");
        timeline.show(60, slow_with(1));
        assert_eq!(told(&mut timeline).len(), 1, "the driver tells why");
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0)).show(3_600, slow_with(3));
        assert_eq!(told(&mut timeline), [], "a reason of every third second is one that persists");
    }

    #[test]
    fn what_is_set_and_what_has_a_reason_is_not_told() {
        for reason in [ThrottleReason::SwPowerCap, ThrottleReason::ApplicationsClocksSetting] {
            let mut timeline = TestTimeline::new();
            timeline.show(400, runs_at(1980, 500.0)).show(1_200, |sample| {
                runs_at(1410, 330.0)(sample);
                sample.throttle_reasons = Reading::Now(vec![reason]);
            });
            assert!(!timeline.take_events().iter().any(|(_, word)| word == "+slower_than_itself"), "{reason:?}");
        }
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0)).show(1_200, |sample| {
            runs_at(1410, 330.0)(sample);
            sample.power.limit_watts = Reading::Now(400.0);
        });
        assert_eq!(timeline.take_events(), [], "another limit");
        let mut timeline = TestTimeline::new();
        let with_clock = |mhz| {
            let mut details = examples::details(START_MS);
            details.application_clocks.graphics_mhz = Reading::Now(mhz);
            Some(details)
        };
        timeline.details = with_clock(1980);
        timeline.show(40, runs_at(1980, 500.0));
        timeline.details = with_clock(1980).map(|details| GpuDetails { at_ms: timeline.now_ms, ..details });
        timeline.show(360, runs_at(1980, 500.0));
        timeline.details = with_clock(1410).map(|details| GpuDetails { at_ms: timeline.now_ms, ..details });
        timeline.show(1_200, runs_at(1410, 330.0));
        assert_eq!(timeline.take_events(), [], "another application clock");
    }

    #[test]
    fn work_that_changes_steps_of_the_clock_and_short_dips_are_usual() {
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0)).show(600, runs_at(1860, 480.0)).show(600, |sample| {
            let dips = sample.at_ms / 1000 % 60 < 20;
            runs_at(if dips { 1410 } else { 1980 }, 450.0)(sample);
        });
        // Another load is not known yet.
        timeline.show(1_200, |sample| {
            runs_at(1500, 300.0)(sample);
            sample.activity = Reading::Now(examples::activity(40.0, 0.0));
        });
        timeline.show(1_200, |sample| {
            runs_at(345, 80.0)(sample);
            examples::use_gpu(sample, 20.0, 10.0);
        });
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn what_was_learned_before_a_restart_measures_what_comes_after_it() {
        let mut before = TestTimeline::new();
        before.show(400, runs_at(1980, 500.0));
        let mut timeline = TestTimeline::new();
        timeline.tracker.restore(&before.tracker.baseline());
        timeline.show(660, runs_at(1410, 330.0));
        assert!(matches!(&timeline.take_events()[..], [(at, _)] if (600..=630).contains(at)), "{:?}", timeline.last);
        let learned = timeline.tracker.baseline();
        timeline.tracker.restore(&Baseline::default());
        assert_eq!(timeline.tracker.baseline(), learned, "what was learned since counts");
    }

    #[test]
    fn what_was_learned_can_be_read() {
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0));
        let usual = timeline.tracker.baseline().usual(Load::new(true, 90.0, 55.0)).unwrap();
        assert!((usual.sm_mhz - 1980.0).abs() < 1.0 && (usual.watts - 500.0).abs() < 1.0, "{usual:?}");
    }
}
