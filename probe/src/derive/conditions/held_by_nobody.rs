//! The condition that memory in use belongs to no listed process. The memory may belong to a
//! container whose processes are not visible, or to a process that has ended but has not been
//! reaped. The driver may still list such a process, but `/proc` shows that it has ended.

use std::collections::BTreeMap;

use super::rule::{Clock, Moment, Observation, Rule, View};
use crate::model::{Absence, ConditionKind, GpuSample, MemorySample, Process};

/// Memory up to this amount is not reported, because the driver itself may use it. On a large
/// board, even a single context needs more.
const MIN_BYTES: u64 = 256 << 20;

/// While processes are listed, the condition starts only if more than this much memory belongs to
/// no process. Smaller amounts may be rounding errors, because the driver rounds each process's
/// memory.
const MIN_BYTES_WITH_OTHERS: u64 = 1 << 30;

/// While processes run that were already on the GPU at the first sample, up to this much memory
/// without an owner is not reported. It may be managed memory of these processes.
const MIN_FOUND_BYTES: u64 = 8 << 30;
const MIN_FOUND_SHARE: f64 = 0.1;

/// The share of memory that drivers before version 510 reserve and report as used.
const RESERVED_SHARE: f64 = 0.02;

#[derive(Default)]
pub(super) struct HeldByNobody {
    unlisted: UnlistedMemoryTracker,
}

impl Rule for HeldByNobody {
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        let memory = &view.sample.memory;
        let known = view
            .fresh_value(&memory.used_bytes)
            .zip(view.fresh_value(&view.sample.processes));
        let Some((&used_bytes, processes)) = known else {
            return Observation::Unknown;
        };
        if has_mig_devices(view.sample) {
            return Observation::Ended;
        }
        let is_whole = view.sample.processes_omitted == 0;
        let Some(unlisted) = self
            .unlisted
            .push(used_bytes, processes, view.now)
            .filter(|_| is_whole)
        else {
            return Observation::Inconclusive;
        };
        if unlisted.bytes <= tolerated_unlisted_bytes(unlisted, memory, lasts) {
            return Observation::Inactive;
        }
        Observation::Active(ConditionKind::HeldByNobody {
            bytes: unlisted.bytes,
        })
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Returns the memory in use that belongs to no listed process, in bytes, according to a single
/// sample. Returns `None` if the amount is unknown, or too small to belong to a process.
pub fn unlisted_bytes(sample: &GpuSample) -> Option<u64> {
    let (used_bytes, processes) = sample
        .memory
        .used_bytes
        .value()
        .zip(sample.processes.value())?;
    if has_mig_devices(sample) || sample.processes_omitted > 0 {
        return None;
    }
    let unlisted = UnlistedMemoryTracker::default().push(
        *used_bytes,
        processes,
        Clock::default().moment_at(sample.at_ms),
    )?;
    (unlisted.bytes > tolerated_unlisted_bytes(unlisted, &sample.memory, false))
        .then_some(unlisted.bytes)
}

/// Returns `true` if the GPU has MIG devices. Such a GPU lists different processes to different
/// users.
fn has_mig_devices(sample: &GpuSample) -> bool {
    !sample.mig_devices.items().is_empty()
}

/// Returns the amount of memory that may be in use without an owner, in bytes.
fn tolerated_unlisted_bytes(unlisted: UnlistedMemory, memory: &MemorySample, lasts: bool) -> u64 {
    let total_bytes = memory
        .total_bytes
        .value()
        .map_or(0.0, |bytes| *bytes as f64);
    let reserved_bytes = match memory.reserved_bytes.value() {
        None => (total_bytes * RESERVED_SHARE) as u64,
        Some(_) => 0,
    };
    let least_bytes = match unlisted {
        UnlistedMemory { is_found: true, .. } => {
            MIN_FOUND_BYTES.max((total_bytes * MIN_FOUND_SHARE) as u64)
        }
        UnlistedMemory {
            has_others: true, ..
        } if !lasts => MIN_BYTES_WITH_OTHERS,
        _ => MIN_BYTES,
    };
    least_bytes.saturating_add(reserved_bytes)
}

/// How long after the end of a process its memory is still expected to be freed. Processes
/// disappear from the driver's list before their memory is freed.
const SETTLED_AFTER_MS: u64 = 30_000;

/// Tracks the part of the used memory that belongs to no process, while at least one process is
/// listed.
///
/// Memory in use beyond the listed amounts normally belongs to the listed processes: managed memory
/// (`cudaMallocManaged`) counts as used, but not as the process's memory. On an H200, 4 GiB of
/// managed memory are reported as 5.5 GiB used and 1.5 GiB listed. However, if a process has ended,
/// and the memory that was listed for it is still in use, this memory belongs to no process.
#[derive(Debug, Default)]
struct UnlistedMemoryTracker {
    last: Option<LastSample>,
    /// Memory that belongs to no process.
    bytes: u64,
    /// Whether the memory was already in use at the first sample, so that its owner is unknown.
    is_found: bool,
    /// The memory of recently ended processes, and when the last of them ended.
    recent: Option<(Moment, u64)>,
}

/// The previous sample.
#[derive(Debug)]
struct LastSample {
    /// The memory of each running process in bytes, by PID.
    listed: BTreeMap<u32, u64>,
    /// The memory in use beyond the listed amounts.
    rest_bytes: u64,
}

/// The memory that belongs to no process, according to one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnlistedMemory {
    bytes: u64,
    /// Whether any running process is listed.
    has_others: bool,
    /// Whether the memory may be managed memory of running processes.
    is_found: bool,
}

impl UnlistedMemoryTracker {
    /// Updates the state with a sample. Returns `None` if any process's memory is unknown.
    fn push(
        &mut self,
        used_bytes: u64,
        processes: &[Process],
        now: Moment,
    ) -> Option<UnlistedMemory> {
        let (ended, running): (Vec<&Process>, Vec<&Process>) =
            processes.iter().partition(|process| has_ended(process));
        let listed = memory_by_pid(&running);
        // MPS lists its clients' memory under the MPS server, so the memory of each process is
        // unknown.
        let Some(listed) = listed.filter(|_| !running.iter().any(|process| process.mps)) else {
            *self = Self::default();
            return None;
        };
        let has_others = !running.is_empty();
        let rest_bytes = used_bytes.saturating_sub(saturating_sum(listed.values().copied()));
        match self.last.take() {
            _ if !has_others => {
                (self.bytes, self.is_found, self.recent) = (rest_bytes, false, None);
            }
            None => (self.bytes, self.is_found) = (rest_bytes, true),
            Some(last) => self.track_ended_processes(&last, &listed, rest_bytes, now),
        }
        self.last = Some(LastSample { listed, rest_bytes });
        let of_ended =
            memory_by_pid(&ended).map_or(0, |listed| saturating_sum(listed.into_values()));
        Some(if self.is_found && of_ended > 0 {
            UnlistedMemory {
                bytes: of_ended,
                has_others,
                is_found: false,
            }
        } else {
            UnlistedMemory {
                bytes: self.bytes,
                has_others,
                is_found: self.is_found,
            }
        })
    }

    fn track_ended_processes(
        &mut self,
        last: &LastSample,
        listed: &BTreeMap<u32, u64>,
        rest_bytes: u64,
        now: Moment,
    ) {
        let gone = last
            .listed
            .iter()
            .filter(|(pid, _)| !listed.contains_key(pid))
            .map(|(_, bytes)| *bytes);
        let gone_bytes = saturating_sum(gone).min(rest_bytes.saturating_sub(last.rest_bytes));
        if gone_bytes > 0 {
            let before = self.recent.map_or(0, |(_, bytes)| bytes);
            self.recent = Some((now, before.saturating_add(gone_bytes)));
        }
        // Freed memory is assumed to have belonged to the processes that ended last.
        let freed_bytes = last.rest_bytes.saturating_sub(rest_bytes);
        self.recent = self
            .recent
            .map(|(since, bytes)| (since, bytes.saturating_sub(freed_bytes)));
        if let Some((_, bytes)) = self
            .recent
            .take_if(|(since, _)| now.ms_since(*since) >= SETTLED_AFTER_MS)
        {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.bytes = self.bytes.min(rest_bytes);
    }
}

/// Returns `true` if `/proc` shows that the process has ended, see [`Absence::Ended`]. The driver
/// may still list the process.
fn has_ended(process: &Process) -> bool {
    process.host_memory_bytes.absence() == Some(&Absence::Ended)
}

/// Returns the memory of each process by PID, or `None` if any process's memory is unknown.
fn memory_by_pid(processes: &[&Process]) -> Option<BTreeMap<u32, u64>> {
    let mut all = BTreeMap::new();
    for process in processes {
        let bytes = process.memory_bytes.value()?;
        let sum: &mut u64 = all.entry(process.pid).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    Some(all)
}

/// Returns the sum, saturating on overflow, because the driver can report any number.
fn saturating_sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::super::test_timeline::{START_MS, TestTimeline, expected_event};
    use super::*;
    use crate::{
        derive::examples::{self, GIB},
        model::{MigInstance, MigSample, Reading},
    };

    fn set_used_memory(mib: u64, processes: &[Process]) -> impl Fn(&mut GpuSample) {
        move |sample| {
            examples::set_gpu_use(sample, 0.0, 0.0);
            sample.memory.used_bytes = Reading::Now(mib << 20);
            sample.memory.reserved_bytes = Reading::Now(600 << 20);
            sample.processes = Reading::Now(processes.to_vec());
        }
    }

    #[test]
    fn memory_without_listed_process_is_reported_until_freed() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(60, set_used_memory(12 << 10, &[]));
        assert_eq!(
            timeline.take_events(),
            [expected_event(31, "+held_by_nobody")]
        );
        let condition = timeline.only_condition();
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
                .starts_with("12.0 GiB used by no listed process"),
            "{}",
            condition.text
        );
        timeline.advance_with_sample(60, set_used_memory(4, &[]));
        assert_eq!(
            timeline.take_events(),
            [expected_event(71, "-held_by_nobody")]
        );
    }

    #[test]
    fn unlisted_memory_is_computed_from_one_sample() {
        let of = |mib, processes: &[Process]| {
            let mut sample = examples::make_sample(0);
            set_used_memory(mib, processes)(&mut sample);
            unlisted_bytes(&sample)
        };
        assert_eq!(of(1_100, &[]), Some(1_100 << 20));
        assert_eq!(of(200, &[]), None, "the driver's own memory");
        assert_eq!(
            of(9 << 10, &[examples::make_process(7, GIB)]),
            None,
            "managed memory"
        );
        assert_eq!(
            of(30 << 10, &[examples::make_process(7, GIB)]),
            Some(29 * GIB)
        );
        let unknown = Process {
            memory_bytes: Reading::Absent(Absence::Unknown),
            ..examples::make_process(7, 0)
        };
        assert_eq!(of(30 << 10, &[unknown]), None);
        let mut crowded = examples::make_sample(0);
        set_used_memory(30 << 10, &[])(&mut crowded);
        crowded.processes_omitted = 3;
        assert_eq!(unlisted_bytes(&crowded), None);
    }

    #[test]
    fn later_process_does_not_account_for_earlier_memory() {
        let mut timeline = TestTimeline::new();
        let process = [examples::make_process(7, 2 * GIB)];
        timeline
            .advance_with_sample(60, set_used_memory(12 << 10, &[]))
            .advance_with_sample(200, set_used_memory(14 << 10, &process));
        assert_eq!(
            timeline.take_events(),
            [expected_event(31, "+held_by_nobody")]
        );
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::HeldByNobody { bytes: 12 * GIB }
        );
        timeline.advance_with_sample(60, set_used_memory(2 << 10, &process));
        assert_eq!(
            timeline.take_events(),
            [expected_event(271, "-held_by_nobody")]
        );
    }

    #[test]
    fn managed_and_driver_memory_is_not_unlisted_memory() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(
            200,
            set_used_memory(5_651, &[examples::make_process(7, 1_546 << 20)]),
        );
        timeline.advance_with_sample(600, set_used_memory(200, &[]));
        timeline.advance_with_sample(600, |sample| {
            set_used_memory(1_500, &[])(sample);
            sample.memory.reserved_bytes = Reading::Absent(Absence::NotSupported);
        });
        timeline.advance_with_sample(600, |sample| {
            set_used_memory(12 << 10, &[])(sample);
            sample.processes_omitted = 3;
        });
        timeline.advance_with_sample(600, |sample| {
            set_used_memory(12 << 10, &[])(sample);
            sample.processes = Reading::Absent(Absence::NoPermission);
        });
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn memory_still_used_after_process_end_is_reported() {
        let (large, small) = (
            examples::make_process(7, 20 * GIB),
            examples::make_process(8, GIB),
        );
        let mut timeline = TestTimeline::new();
        let reported = |timeline: &mut TestTimeline| {
            let events = timeline.take_events().into_iter();
            events
                .filter(|(_, word)| word.ends_with("held_by_nobody"))
                .collect::<Vec<_>>()
        };
        timeline
            .advance_with_sample(60, set_used_memory(4, &[]))
            .advance_with_sample(
                60,
                set_used_memory(21 << 10, &[large.clone(), small.clone()]),
            );
        // A process's memory is freed some seconds after the process has disappeared from the
        // driver's list.
        timeline
            .advance_with_sample(20, set_used_memory(21 << 10, slice::from_ref(&small)))
            .advance_with_sample(300, set_used_memory(1 << 10, slice::from_ref(&small)));
        timeline.advance_with_sample(300, set_used_memory(25 << 10, slice::from_ref(&small)));
        assert_eq!(
            reported(&mut timeline),
            [],
            "24 GiB are managed memory of the other"
        );
        timeline
            .advance_with_sample(60, set_used_memory(45 << 10, &[large, small.clone()]))
            .advance_with_sample(200, set_used_memory(45 << 10, slice::from_ref(&small)));
        assert_eq!(
            reported(&mut timeline),
            [expected_event(861, "+held_by_nobody")]
        );
        let bytes = 20 * GIB;
        assert!(
            timeline
                .last
                .conditions
                .iter()
                .any(|now| now.kind == ConditionKind::HeldByNobody { bytes })
        );
        timeline.advance_with_sample(60, set_used_memory(1 << 10, &[small]));
        assert_eq!(
            reported(&mut timeline),
            [expected_event(1_011, "-held_by_nobody")]
        );
    }

    #[test]
    fn large_unlisted_memory_is_reported_at_once() {
        for (mib, is_reported) in [(9 << 10, false), (30 << 10, true)] {
            let mut timeline = TestTimeline::new();
            timeline
                .advance_with_sample(60, set_used_memory(mib, &[examples::make_process(7, GIB)]));
            assert_eq!(
                timeline.take_events().len(),
                usize::from(is_reported),
                "{mib}"
            );
        }
        let mut timeline = TestTimeline::new();
        let untold = Process {
            memory_bytes: Reading::Absent(Absence::Unknown),
            ..examples::make_process(7, 0)
        };
        timeline.advance_with_sample(300, set_used_memory(30 << 10, &[untold]));
        timeline.advance_with_sample(
            300,
            set_used_memory(
                30 << 10,
                &[Process {
                    mps: true,
                    ..examples::make_process(7, GIB)
                }],
            ),
        );
        assert_eq!(timeline.take_events(), [], "what they hold is not told");
    }

    #[test]
    fn ended_process_does_not_account_for_used_memory() {
        let ended = |pid| Process {
            host_memory_bytes: Reading::Absent(Absence::Ended),
            ..examples::make_process(pid, 6 * GIB)
        };
        for others in [None, Some(examples::make_process(8, 2 * GIB))] {
            let mut timeline = TestTimeline::new();
            let used_mib = if others.is_some() { 8 << 10 } else { 6 << 10 };
            let processes: Vec<_> = others.into_iter().chain([ended(7)]).collect();
            timeline.advance_with_sample(60, set_used_memory(used_mib, &processes));
            assert_eq!(
                timeline.take_events(),
                [expected_event(31, "+held_by_nobody")]
            );
            assert_eq!(
                timeline.only_condition().kind,
                ConditionKind::HeldByNobody { bytes: 6 * GIB }
            );
        }
        let mut timeline = TestTimeline::new();
        // Short-lived programs remain in the driver's list for a moment after they have ended.
        timeline.advance_with_sample(600, |sample| {
            let pid = (sample.at_ms / 5_000 % 1_000) as u32 + 10;
            let last = if sample.at_ms % 5_000 < 2_000 {
                ended(pid)
            } else {
                examples::make_process(pid, 6 * GIB)
            };
            set_used_memory(6 << 10, &[last])(sample);
        });
        let hidden = Process {
            host_memory_bytes: Reading::Absent(Absence::NotInProc),
            ..examples::make_process(7, 6 * GIB)
        };
        timeline.advance_with_sample(300, set_used_memory(6 << 10, &[hidden]));
        assert_eq!(
            timeline.take_events(),
            [],
            "who cannot see all processes knows nothing"
        );
    }

    #[test]
    fn freed_memory_and_mig_are_not_reported() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(
                60,
                set_used_memory(12 << 10, &[examples::make_process(7, 12 * GIB)]),
            )
            .advance_with_sample(20, set_used_memory(12 << 10, &[]));
        timeline.advance_with_sample(60, set_used_memory(4, &[]));
        let mig = MigSample {
            uuid: "MIG-0".into(),
            instance: MigInstance {
                gpu_instance: 1,
                compute_instance: 0,
            },
            memory: examples::make_sample(0).memory,
            activity: Reading::Absent(Absence::NotSupported),
            allocated_to: Vec::new(),
        };
        timeline.advance_with_sample(600, |sample| {
            set_used_memory(12 << 10, &[])(sample);
            sample.mig_devices = Reading::Now(vec![mig.clone()]);
        });
        assert_eq!(timeline.take_events(), []);
    }
}
