//! Memory in use that belongs to no listed process, but to a container whose processes are not
//! visible, or to a process that has ended and was not waited for. The driver can continue to list
//! such a process; `/proc` shows that it has ended.

mod left_behind;

use left_behind::{LeftBehind, Nobodys};

use super::{
    clock::Clock,
    hysteresis::Observation,
    rule::{Rule, View},
};
use crate::model::{ConditionKind, GpuSample, MemorySample};

/// The memory that the driver itself may use. A context alone needs more on a large board.
const LEAST_BYTES: u64 = 256 << 20;

/// The tolerated memory while other processes run, because the driver rounds their memory.
const LEAST_BESIDE_OTHERS_BYTES: u64 = 1 << 30;

/// The tolerated memory while processes run that were on the GPU before the first sample. The
/// memory may be managed memory of these processes, so that only large amounts are reported.
const LEAST_FOUND_BYTES: u64 = 8 << 30;
const LEAST_FOUND_SHARE: f64 = 0.1;

/// The share of the memory that drivers before 510 reserve and report as used.
const RESERVED_SHARE: f64 = 0.02;

#[derive(Default)]
pub(super) struct HeldByNobody {
    left_behind: LeftBehind,
}

impl Rule for HeldByNobody {
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        let memory = &view.sample.memory;
        let known = view
            .fresh(&memory.used_bytes)
            .zip(view.fresh(&view.sample.processes));
        let Some((&used_bytes, processes)) = known else {
            return Observation::Unknown;
        };
        if is_divided(view.sample) {
            return Observation::Ended;
        }
        let is_whole = view.sample.processes_omitted == 0;
        let Some(nobodys) = self
            .left_behind
            .push(used_bytes, processes, view.now)
            .filter(|_| is_whole)
        else {
            return Observation::Inconclusive;
        };
        if nobodys.bytes <= tolerated_bytes(nobodys, memory, lasts) {
            return Observation::Inactive;
        }
        Observation::Active(ConditionKind::HeldByNobody {
            bytes: nobodys.bytes,
        })
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Returns the memory in use that belongs to no listed process, in bytes, from a single sample.
/// Returns `None` if the amount is unknown, or too small to belong to a process.
pub fn unlisted_bytes(sample: &GpuSample) -> Option<u64> {
    let (used_bytes, processes) = sample
        .memory
        .used_bytes
        .value()
        .zip(sample.processes.value())?;
    if is_divided(sample) || sample.processes_omitted > 0 {
        return None;
    }
    let nobodys =
        LeftBehind::default().push(*used_bytes, processes, Clock::default().at(sample.at_ms))?;
    (nobodys.bytes > tolerated_bytes(nobodys, &sample.memory, false)).then_some(nobodys.bytes)
}

/// Returns `true` for a GPU with MIG devices, which lists different processes to different users.
fn is_divided(sample: &GpuSample) -> bool {
    sample
        .mig_devices
        .value()
        .is_some_and(|devices| !devices.is_empty())
}

/// Returns the amount of memory that may be in use without a process, in bytes.
fn tolerated_bytes(nobodys: Nobodys, memory: &MemorySample, lasts: bool) -> u64 {
    let total_bytes = memory
        .total_bytes
        .value()
        .map_or(0.0, |bytes| *bytes as f64);
    let reserved_bytes = match memory.reserved_bytes.value() {
        None => (total_bytes * RESERVED_SHARE) as u64,
        Some(_) => 0,
    };
    let least_bytes = match nobodys {
        Nobodys { is_found: true, .. } => {
            LEAST_FOUND_BYTES.max((total_bytes * LEAST_FOUND_SHARE) as u64)
        }
        Nobodys {
            beside_others: true,
            ..
        } if !lasts => LEAST_BESIDE_OTHERS_BYTES,
        _ => LEAST_BYTES,
    };
    least_bytes.saturating_add(reserved_bytes)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::super::test_timeline::{START_MS, TestTimeline, event};
    use super::*;
    use crate::{
        derive::examples::{self, GIB},
        model::{Absence, MigInstance, MigSample, Process, Reading},
    };

    fn used(mib: u64, processes: &[Process]) -> impl Fn(&mut GpuSample) {
        move |sample| {
            examples::use_gpu(sample, 0.0, 0.0);
            sample.memory.used_bytes = Reading::Now(mib << 20);
            sample.memory.reserved_bytes = Reading::Now(600 << 20);
            sample.processes = Reading::Now(processes.to_vec());
        }
    }

    #[test]
    fn memory_without_a_process_is_told_after_half_a_minute_and_until_it_is_free() {
        let mut timeline = TestTimeline::new();
        timeline.show(60, used(12 << 10, &[]));
        assert_eq!(timeline.take_events(), [event(31, "+held_by_nobody")]);
        let condition = timeline.only();
        assert_eq!(
            (&condition.kind, condition.since_ms),
            (
                &ConditionKind::HeldByNobody { bytes: 12 * GIB },
                START_MS + 1_000
            )
        );
        assert!(
            condition
                .text
                .starts_with("12.0 GiB in use that no listed process holds"),
            "{}",
            condition.text
        );
        timeline.show(60, used(4, &[]));
        assert_eq!(timeline.take_events(), [event(71, "-held_by_nobody")]);
    }

    #[test]
    fn unlisted_memory_of_one_sample_follows_condition() {
        let of = |mib, processes: &[Process]| {
            let mut sample = examples::sample(0);
            used(mib, processes)(&mut sample);
            unlisted_bytes(&sample)
        };
        assert_eq!(of(1_100, &[]), Some(1_100 << 20));
        assert_eq!(of(200, &[]), None, "the driver's own memory");
        assert_eq!(
            of(9 << 10, &[examples::process(7, GIB)]),
            None,
            "managed memory"
        );
        assert_eq!(of(30 << 10, &[examples::process(7, GIB)]), Some(29 * GIB));
        let unknown = Process {
            memory_bytes: Reading::Absent(Absence::Unknown),
            ..examples::process(7, 0)
        };
        assert_eq!(of(30 << 10, &[unknown]), None);
        let mut crowded = examples::sample(0);
        used(30 << 10, &[])(&mut crowded);
        crowded.processes_omitted = 3;
        assert_eq!(unlisted_bytes(&crowded), None);
    }

    #[test]
    fn a_process_that_comes_does_not_explain_what_was_held_before() {
        let mut timeline = TestTimeline::new();
        let process = [examples::process(7, 2 * GIB)];
        timeline
            .show(60, used(12 << 10, &[]))
            .show(200, used(14 << 10, &process));
        assert_eq!(timeline.take_events(), [event(31, "+held_by_nobody")]);
        assert_eq!(
            timeline.only().kind,
            ConditionKind::HeldByNobody { bytes: 12 * GIB }
        );
        timeline.show(60, used(2 << 10, &process));
        assert_eq!(timeline.take_events(), [event(271, "-held_by_nobody")]);
    }

    #[test]
    fn managed_memory_and_contexts_of_listed_processes_and_what_the_driver_keeps_are_somebodys() {
        let mut timeline = TestTimeline::new();
        timeline.show(200, used(5_651, &[examples::process(7, 1_546 << 20)]));
        timeline.show(600, used(200, &[]));
        timeline.show(600, |sample| {
            used(1_500, &[])(sample);
            sample.memory.reserved_bytes = Reading::Absent(Absence::NotSupported);
        });
        timeline.show(600, |sample| {
            used(12 << 10, &[])(sample);
            sample.processes_omitted = 3;
        });
        timeline.show(600, |sample| {
            used(12 << 10, &[])(sample);
            sample.processes = Reading::Absent(Absence::NoPermission);
        });
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn what_is_left_of_a_process_is_told_beside_others_and_what_they_manage_is_not() {
        let (large, small) = (examples::process(7, 20 * GIB), examples::process(8, GIB));
        let mut timeline = TestTimeline::new();
        let told = |timeline: &mut TestTimeline| {
            let events = timeline.take_events().into_iter();
            events
                .filter(|(_, word)| word.ends_with("held_by_nobody"))
                .collect::<Vec<_>>()
        };
        timeline
            .show(60, used(4, &[]))
            .show(60, used(21 << 10, &[large.clone(), small.clone()]));
        // The process's memory is freed some seconds after the process has left the list.
        timeline
            .show(20, used(21 << 10, slice::from_ref(&small)))
            .show(300, used(1 << 10, slice::from_ref(&small)));
        timeline.show(300, used(25 << 10, slice::from_ref(&small)));
        assert_eq!(
            told(&mut timeline),
            [],
            "24 GiB are managed memory of the other"
        );
        timeline
            .show(60, used(45 << 10, &[large, small.clone()]))
            .show(200, used(45 << 10, slice::from_ref(&small)));
        assert_eq!(told(&mut timeline), [event(861, "+held_by_nobody")]);
        let bytes = 20 * GIB;
        assert!(
            timeline
                .last
                .conditions
                .iter()
                .any(|now| now.kind == ConditionKind::HeldByNobody { bytes })
        );
        timeline.show(60, used(1 << 10, &[small]));
        assert_eq!(told(&mut timeline), [event(1_011, "-held_by_nobody")]);
    }

    #[test]
    fn much_memory_that_a_small_process_did_not_take_is_told_from_the_first_sample_on() {
        for (mib, is_told) in [(9 << 10, false), (30 << 10, true)] {
            let mut timeline = TestTimeline::new();
            timeline.show(60, used(mib, &[examples::process(7, GIB)]));
            assert_eq!(timeline.take_events().len(), usize::from(is_told), "{mib}");
        }
        let mut timeline = TestTimeline::new();
        let untold = Process {
            memory_bytes: Reading::Absent(Absence::Unknown),
            ..examples::process(7, 0)
        };
        timeline.show(300, used(30 << 10, &[untold]));
        timeline.show(
            300,
            used(
                30 << 10,
                &[Process {
                    mps: true,
                    ..examples::process(7, GIB)
                }],
            ),
        );
        assert_eq!(timeline.take_events(), [], "what they hold is not told");
    }

    #[test]
    fn a_process_that_has_ended_holds_nothing_though_it_is_listed() {
        let ended = |pid| Process {
            host_memory_bytes: Reading::Absent(Absence::Ended),
            ..examples::process(pid, 6 * GIB)
        };
        for others in [None, Some(examples::process(8, 2 * GIB))] {
            let mut timeline = TestTimeline::new();
            let used_mib = if others.is_some() { 8 << 10 } else { 6 << 10 };
            let processes: Vec<_> = others.into_iter().chain([ended(7)]).collect();
            timeline.show(60, used(used_mib, &processes));
            assert_eq!(timeline.take_events(), [event(31, "+held_by_nobody")]);
            assert_eq!(
                timeline.only().kind,
                ConditionKind::HeldByNobody { bytes: 6 * GIB }
            );
        }
        let mut timeline = TestTimeline::new();
        // Short-lived programs remain in the list for a moment after their end.
        timeline.show(600, |sample| {
            let pid = (sample.at_ms / 5_000 % 1_000) as u32 + 10;
            let last = if sample.at_ms % 5_000 < 2_000 {
                ended(pid)
            } else {
                examples::process(pid, 6 * GIB)
            };
            used(6 << 10, &[last])(sample);
        });
        let hidden = Process {
            host_memory_bytes: Reading::Absent(Absence::NotInProc),
            ..examples::process(7, 6 * GIB)
        };
        timeline.show(300, used(6 << 10, &[hidden]));
        assert_eq!(
            timeline.take_events(),
            [],
            "who cannot see all processes knows nothing"
        );
    }

    #[test]
    fn a_process_that_ends_leaves_its_memory_for_a_moment_and_a_divided_gpu_tells_nothing() {
        let mut timeline = TestTimeline::new();
        timeline
            .show(60, used(12 << 10, &[examples::process(7, 12 * GIB)]))
            .show(20, used(12 << 10, &[]));
        timeline.show(60, used(4, &[]));
        let mig = MigSample {
            uuid: "MIG-0".into(),
            instance: MigInstance {
                gpu_instance: 1,
                compute_instance: 0,
            },
            memory: examples::sample(0).memory,
            activity: Reading::Absent(Absence::NotSupported),
            allocated_to: Vec::new(),
        };
        timeline.show(600, |sample| {
            used(12 << 10, &[])(sample);
            sample.mig_devices = Reading::Now(vec![mig.clone()]);
        });
        assert_eq!(timeline.take_events(), []);
    }
}
