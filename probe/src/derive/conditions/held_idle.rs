//! Processes hold memory, and nothing has run for minutes.

use std::collections::HashMap;

use super::{
    clock::Moment,
    hysteresis::{Hysteresis, Observation},
    rule::{ProcessKey, Rule, View, process_key},
};
use crate::model::{ConditionKind, ProcessKind, Utilization};

/// The minimum memory to report. A context alone takes a few hundred MiB on a large board, and less
/// memory hinders nobody.
const LEAST_BYTES: u64 = 256 << 20;

/// The SM activity up to which a GPU is idle. An idle GPU has almost no activity, but the
/// hardware's counters may round it up.
const QUIET_SM_PERCENT: f64 = 0.5;

/// The rule for idle processes. It records for each process since when nothing has run while the
/// process held memory, so that a new process does not count as idle for as long as the GPU.
pub(super) struct HeldIdle {
    after_ms: u64,
    quiet: Hysteresis<()>,
    holders: HashMap<ProcessKey, Moment>,
    /// The time since which the process that has been idle the longest is idle.
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
        let quiet = match is_quiet(view) {
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
        let Some(processes) = view.fresh(&view.sample.processes) else {
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
                .fresh(&process.memory_bytes)
                .filter(|bytes| **bytes > 0)
            else {
                continue;
            };
            let key = process_key(process);
            let since = before.get(&key).copied().unwrap_or(view.now);
            self.holders.insert(key, since);
            if view.now.since(since) >= self.after_ms {
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
            .max_by_key(|since| view.now.since(*since));
        match longest {
            Some(since) if bytes >= LEAST_BYTES => {
                self.since = Some(since);
                Observation::Active(ConditionKind::HeldIdle {
                    bytes,
                    idle_ms: view.now.since(since),
                    pids: idle.into_iter().map(|(_, _, pid)| pid).collect(),
                })
            }
            _ => Observation::Inactive,
        }
    }

    fn began_at(&self) -> Option<Moment> {
        self.since
    }

    fn forget(&mut self) {
        *self = Self::new(self.after_ms);
    }
}

/// Returns `true` if no engine is in use, or `None` if neither NVML nor the hardware's counters
/// report a value.
fn is_quiet(view: &View<'_>) -> Option<bool> {
    let Utilization {
        gpu_percent,
        memory_percent,
        ..
    } = &view.sample.utilization;
    let gpu = view.fresh(gpu_percent).map(|percent| *percent <= 0.0);
    let sm = view
        .activity(|activity| &activity.sm_percent)
        .map(|percent| percent < QUIET_SM_PERCENT);
    // A GPU with MIG devices has no utilization of its own.
    let mig = view
        .fresh(&view.sample.mig_devices)
        .filter(|devices| !devices.is_empty())
        .and_then(|devices| {
            let quiet = devices.iter().map(|mig| {
                let percent = view.fresh(&view.fresh(&mig.activity)?.sm_percent)?;
                Some(*percent < QUIET_SM_PERCENT)
            });
            quiet
                .collect::<Option<Vec<bool>>>()
                .map(|quiet| quiet.into_iter().all(|quiet| quiet))
        });
    let own_engines = view.sample.utilization.engines();
    let processes = view
        .fresh(&view.sample.processes)
        .into_iter()
        .flatten()
        .map(|process| &process.sm_percent);
    let is_moving = own_engines
        .into_iter()
        .chain([memory_percent])
        .chain(processes)
        .any(|share| view.fresh(share).is_some_and(|share| *share > 0.0));
    let mut known = [gpu, sm, mig].into_iter().flatten().peekable();
    known.peek()?;
    Some(!is_moving && known.all(|quiet| quiet))
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{START_MS, TestTimeline, event},
        *,
    };
    use crate::{
        derive::examples::{self, GIB},
        model::{Absence, GpuSample, MigInstance, MigSample, Process, Reading},
    };

    fn idle(processes: &[Process]) -> impl Fn(&mut GpuSample) {
        |sample| {
            examples::use_gpu(sample, 0.0, 0.0);
            sample.processes = Reading::Now(processes.to_vec());
        }
    }

    #[test]
    fn memory_is_held_idle_after_five_minutes_and_no_longer_when_something_runs() {
        let mut timeline = TestTimeline::new();
        let process = [examples::process(7, 12 * GIB)];
        timeline.show(10, |_| {}).show(420, idle(&process));
        assert_eq!(timeline.take_events(), [event(311, "+held_idle")]);
        let condition = timeline.only();
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
            "train.py (ana) idle, holding 12.0 GiB for 6 min."
        );
        timeline.show(1, |_| {}).show(299, idle(&process));
        assert_eq!(timeline.take_events(), [event(431, "-held_idle")]);
    }

    #[test]
    fn a_process_that_came_a_moment_ago_is_not_idle() {
        let mut timeline = TestTimeline::new();
        timeline.show(3_600, idle(&[]));
        timeline.show(299, idle(&[examples::process(7, GIB)]));
        assert_eq!(timeline.take_events(), []);
        let both = [examples::process(7, GIB), examples::process(8, 2 * GIB)];
        timeline.show(10, idle(&both));
        assert_eq!(timeline.take_events(), [event(3_901, "+held_idle")]);
        assert!(
            matches!(&timeline.only().kind, ConditionKind::HeldIdle { pids, .. } if *pids == [7])
        );
        timeline.show(300, idle(&both));
        assert!(
            matches!(&timeline.only().kind, ConditionKind::HeldIdle { pids, .. } if *pids == [8, 7])
        );
        timeline.show(1, idle(&[]));
        assert_eq!(timeline.take_events(), [event(4_210, "-held_idle")]);
    }

    #[test]
    fn little_memory_and_memory_of_unknown_size_and_screens_are_not_held() {
        let mut unknown = examples::process(1, 0);
        unknown.memory_bytes = Reading::Absent(Absence::Unknown);
        let mut screen = examples::process(2, GIB);
        screen.kind = ProcessKind::Graphics;
        let mut timeline = TestTimeline::new();
        timeline.show(
            1_000,
            idle(&[unknown, screen, examples::process(3, 255 << 20)]),
        );
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn whatever_engine_works_the_gpu_is_not_idle() {
        let works: [fn(&mut GpuSample); 4] = [
            |sample| sample.activity = Reading::Now(examples::activity(0.6, 0.0)),
            |sample| sample.utilization.decoder_percent = Reading::Now(3.0),
            |sample| sample.utilization.memory_percent = Reading::Now(1.0),
            |sample| {
                let mut process = examples::process(7, GIB);
                process.sm_percent = Reading::Now(1.0);
                sample.processes = Reading::Now(vec![process]);
            },
        ];
        for (number, work) in works.iter().enumerate() {
            let mut timeline = TestTimeline::new();
            timeline.show(1_000, |sample| {
                idle(&[examples::process(7, GIB)])(sample);
                work(sample);
            });
            assert_eq!(timeline.take_events(), [], "{number}");
        }
    }

    #[test]
    fn idle_needs_to_be_known() {
        let mut timeline = TestTimeline::new();
        let unknown = |sample: &mut GpuSample| {
            idle(&[examples::process(7, GIB)])(sample);
            sample.utilization.gpu_percent = Reading::Absent(Absence::NoAnswer);
            sample.activity = Reading::Absent(Absence::NoAnswer);
        };
        timeline.show(1_000, unknown);
        assert_eq!(timeline.take_events(), []);
        // A few missing answers are not counted as work.
        let held = [examples::process(7, GIB)];
        timeline
            .show(200, idle(&held))
            .show(5, unknown)
            .show(100, idle(&held));
        assert_eq!(timeline.take_events(), [event(1_301, "+held_idle")]);
    }

    #[test]
    fn a_gpu_with_mig_is_idle_when_all_its_instances_are() {
        let mig = |sm_percent| MigSample {
            uuid: "MIG-0".into(),
            instance: MigInstance {
                gpu_instance: 1,
                compute_instance: 0,
            },
            memory: examples::sample(0).memory,
            activity: Reading::Now(examples::activity(sm_percent, 0.0)),
            allocated_to: Vec::new(),
        };
        for (second, expected) in [(0.0, 1), (40.0, 0)] {
            let mut timeline = TestTimeline::new();
            timeline.show(400, |sample| {
                idle(&[examples::process(7, GIB)])(sample);
                sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
                sample.activity = Reading::Absent(Absence::NotSupported);
                sample.mig_devices = Reading::Now(vec![mig(0.0), mig(second)]);
            });
            assert_eq!(timeline.take_events().len(), expected, "{second}");
        }
    }
}
