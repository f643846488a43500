//! The condition that processes hold memory while nothing has run for minutes.

use std::collections::HashMap;

use super::rule::{Hysteresis, Moment, Observation, ProcessKey, Rule, View, process_key};
use crate::model::{ConditionKind, ProcessKind, Utilization};

/// The minimum memory to report. A single context takes a few hundred MiB on a large board, and
/// less memory is not worth reporting.
const MIN_BYTES: u64 = 256 << 20;

/// The SM activity below which a GPU counts as idle. An idle GPU has almost no activity, but the
/// hardware counters may round the value up.
const QUIET_SM_PERCENT: f64 = 0.5;

/// The rule for processes that hold memory while idle. Idle time is recorded for each process, so
/// that a process that just started on a long idle GPU does not count as idle for long.
pub(super) struct HeldIdle {
    after_ms: u64,
    quiet: Hysteresis<()>,
    holders: HashMap<ProcessKey, Moment>,
    /// The time at which the process with the longest idle time became idle.
    since: Option<Moment>,
}

impl HeldIdle {
    pub(super) fn new(after_ms: u64) -> Self {
        Self {
            after_ms,
            quiet: Hysteresis::new(0, 0),
            holders: HashMap::new(),
            since: None,
        }
    }
}

impl Rule for HeldIdle {
    fn observe(&mut self, view: &View<'_>, _: bool) -> Observation<ConditionKind> {
        let quiet = match is_idle(view) {
            None => Observation::Unknown,
            Some(true) => Observation::Active(()),
            Some(false) => Observation::Inactive,
        };
        let is_unknown = quiet == Observation::Unknown;
        if self.quiet.update(quiet, view.now).is_none() {
            self.holders.clear();
            return if is_unknown {
                Observation::Unknown
            } else {
                Observation::Inactive
            };
        }
        let Some(processes) = view.fresh_value(&view.sample.processes) else {
            return Observation::Unknown;
        };
        if is_unknown {
            return Observation::Unknown;
        }
        let before = std::mem::take(&mut self.holders);
        let mut idle = Vec::new();
        for process in processes
            .iter()
            .filter(|process| process.kind != ProcessKind::Graphics)
        {
            let Some(&bytes) = view
                .fresh_value(&process.memory_bytes)
                .filter(|bytes| **bytes > 0)
            else {
                continue;
            };
            let key = process_key(process);
            let since = before.get(&key).copied().unwrap_or(view.now);
            self.holders.insert(key, since);
            if view.now.ms_since(since) >= self.after_ms {
                idle.push((since, bytes, process.pid));
            }
        }
        idle.sort_by_key(|(_, bytes, pid)| (std::cmp::Reverse(*bytes), *pid));
        let bytes = idle
            .iter()
            .fold(0_u64, |sum, (_, bytes, _)| sum.saturating_add(*bytes));
        let longest = idle
            .iter()
            .map(|(since, _, _)| *since)
            .max_by_key(|since| view.now.ms_since(*since));
        match longest {
            Some(since) if bytes >= MIN_BYTES => {
                self.since = Some(since);
                Observation::Active(ConditionKind::HeldIdle {
                    bytes,
                    idle_ms: view.now.ms_since(since),
                    pids: idle.into_iter().map(|(_, _, pid)| pid).collect(),
                })
            }
            _ => Observation::Inactive,
        }
    }

    fn earlier_start(&self) -> Option<Moment> {
        self.since
    }

    fn forget(&mut self) {
        *self = Self::new(self.after_ms);
    }
}

/// Returns `true` if no engine is in use, or `None` if neither NVML nor the hardware counters
/// report a value.
fn is_idle(view: &View<'_>) -> Option<bool> {
    let Utilization {
        gpu_percent,
        memory_percent,
        ..
    } = &view.sample.utilization;
    let gpu = view.fresh_value(gpu_percent).map(|percent| *percent <= 0.0);
    let sm = view
        .fresh_activity(|activity| &activity.sm_percent)
        .map(|percent| percent < QUIET_SM_PERCENT);
    // A GPU with MIG devices reports no utilization, so the activity of its MIG devices is used.
    let mig = view
        .fresh_value(&view.sample.mig_devices)
        .filter(|devices| !devices.is_empty())
        .and_then(|devices| {
            let quiet = devices.iter().map(|mig| {
                let percent = view.fresh_value(&view.fresh_value(&mig.activity)?.sm_percent)?;
                Some(*percent < QUIET_SM_PERCENT)
            });
            quiet
                .collect::<Option<Vec<bool>>>()
                .map(|quiet| quiet.into_iter().all(|quiet| quiet))
        });
    let own_engines = view.sample.utilization.engine_percents();
    let processes = view
        .fresh_value(&view.sample.processes)
        .into_iter()
        .flatten()
        .map(|process| &process.sm_percent);
    let is_moving = own_engines
        .into_iter()
        .chain([memory_percent])
        .chain(processes)
        .any(|share| view.fresh_value(share).is_some_and(|share| *share > 0.0));
    let mut known = [gpu, sm, mig].into_iter().flatten().peekable();
    known.peek()?;
    Some(!is_moving && known.all(|quiet| quiet))
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{START_MS, TestTimeline, expected_event},
        *,
    };
    use crate::{
        derive::examples::{self, GIB},
        model::{Absence, GpuSample, MigInstance, MigSample, Process, Reading},
    };

    fn set_idle_with_processes(processes: &[Process]) -> impl Fn(&mut GpuSample) {
        |sample| {
            examples::set_gpu_use(sample, 0.0, 0.0);
            sample.processes = Reading::Now(processes.to_vec());
        }
    }

    #[test]
    fn idle_memory_is_reported_after_five_minutes() {
        let mut timeline = TestTimeline::new();
        let process = [examples::make_process(7, 12 * GIB)];
        timeline
            .advance_with_sample(10, |_| {})
            .advance_with_sample(420, set_idle_with_processes(&process));
        assert_eq!(timeline.take_events(), [expected_event(311, "+held_idle")]);
        let condition = timeline.only_condition();
        assert_eq!(
            condition.kind,
            ConditionKind::HeldIdle {
                bytes: 12 * GIB,
                idle_ms: 419_000,
                pids: vec![7]
            }
        );
        assert_eq!(condition.since_ms, START_MS + 11_000);
        assert_eq!(
            condition.text,
            "train.py (ana) idle for 6 min, holding 12.0 GiB."
        );
        timeline
            .advance_with_sample(1, |_| {})
            .advance_with_sample(299, set_idle_with_processes(&process));
        assert_eq!(timeline.take_events(), [expected_event(431, "-held_idle")]);
    }

    #[test]
    fn new_process_is_not_idle() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(3_600, set_idle_with_processes(&[]));
        timeline.advance_with_sample(
            299,
            set_idle_with_processes(&[examples::make_process(7, GIB)]),
        );
        assert_eq!(timeline.take_events(), []);
        let both = [
            examples::make_process(7, GIB),
            examples::make_process(8, 2 * GIB),
        ];
        timeline.advance_with_sample(10, set_idle_with_processes(&both));
        assert_eq!(
            timeline.take_events(),
            [expected_event(3_901, "+held_idle")]
        );
        assert!(
            matches!(&timeline.only_condition().kind, ConditionKind::HeldIdle { pids, .. } if *pids == [7])
        );
        timeline.advance_with_sample(300, set_idle_with_processes(&both));
        assert!(
            matches!(&timeline.only_condition().kind, ConditionKind::HeldIdle { pids, .. } if *pids == [8, 7])
        );
        timeline.advance_with_sample(1, set_idle_with_processes(&[]));
        assert_eq!(
            timeline.take_events(),
            [expected_event(4_210, "-held_idle")]
        );
    }

    #[test]
    fn small_unknown_and_graphics_memory_is_ignored() {
        let mut unknown = examples::make_process(1, 0);
        unknown.memory_bytes = Reading::Absent(Absence::Unknown);
        let mut screen = examples::make_process(2, GIB);
        screen.kind = ProcessKind::Graphics;
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(
            1_000,
            set_idle_with_processes(&[unknown, screen, examples::make_process(3, 255 << 20)]),
        );
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn gpu_with_busy_engine_is_not_idle() {
        let works: [fn(&mut GpuSample); 4] = [
            |sample| sample.activity = Reading::Now(examples::make_activity(0.6, 0.0)),
            |sample| sample.utilization.decoder_percent = Reading::Now(3.0),
            |sample| sample.utilization.memory_percent = Reading::Now(1.0),
            |sample| {
                let mut process = examples::make_process(7, GIB);
                process.sm_percent = Reading::Now(1.0);
                sample.processes = Reading::Now(vec![process]);
            },
        ];
        for (number, work) in works.iter().enumerate() {
            let mut timeline = TestTimeline::new();
            timeline.advance_with_sample(1_000, |sample| {
                set_idle_with_processes(&[examples::make_process(7, GIB)])(sample);
                work(sample);
            });
            assert_eq!(timeline.take_events(), [], "{number}");
        }
    }

    #[test]
    fn unknown_activity_is_not_idle() {
        let mut timeline = TestTimeline::new();
        let unknown = |sample: &mut GpuSample| {
            set_idle_with_processes(&[examples::make_process(7, GIB)])(sample);
            sample.utilization.gpu_percent = Reading::Absent(Absence::NoAnswer);
            sample.activity = Reading::Absent(Absence::NoAnswer);
        };
        timeline.advance_with_sample(1_000, unknown);
        assert_eq!(timeline.take_events(), []);
        // A few missing readings do not count as activity.
        let held = [examples::make_process(7, GIB)];
        timeline
            .advance_with_sample(200, set_idle_with_processes(&held))
            .advance_with_sample(5, unknown)
            .advance_with_sample(100, set_idle_with_processes(&held));
        assert_eq!(
            timeline.take_events(),
            [expected_event(1_301, "+held_idle")]
        );
    }

    #[test]
    fn mig_gpu_is_idle_if_devices_are_idle() {
        let mig = |sm_percent| MigSample {
            uuid: "MIG-0".into(),
            instance: MigInstance {
                gpu_instance: 1,
                compute_instance: 0,
            },
            memory: examples::make_sample(0).memory,
            activity: Reading::Now(examples::make_activity(sm_percent, 0.0)),
            allocated_to: Vec::new(),
        };
        for (second, expected) in [(0.0, 1), (40.0, 0)] {
            let mut timeline = TestTimeline::new();
            timeline.advance_with_sample(400, |sample| {
                set_idle_with_processes(&[examples::make_process(7, GIB)])(sample);
                sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
                sample.activity = Reading::Absent(Absence::NotSupported);
                sample.mig_devices = Reading::Now(vec![mig(0.0), mig(second)]);
            });
            assert_eq!(timeline.take_events().len(), expected, "{second}");
        }
    }
}
