//! Memory in use that no process is listed for: of a container whose processes cannot be seen from here, or of one that
//! has ended and was not waited for.
//!
//! While a process is listed, nothing begins: memory that the driver manages (`cudaMallocManaged`) counts as used and
//! not as the process's, 4 GiB of it as 5.5 GiB used and 1.5 GiB listed on an H200.

use super::{
    hysteresis::{Hysteresis, Observation},
    rule::{Finding, Rule, View},
};
use crate::{
    model::{Condition, ConditionKind, Severity},
    units::byte_size,
};

/// Beyond what the driver holds by itself; a context alone takes more on a large board.
const LEAST_BYTES: u64 = 256 << 20;

/// Where the driver counts what it keeps as used (before 510), that is up to this share of the memory.
const RESERVED_SHARE: f64 = 0.02;

/// The list of processes is shorter before their memory is free.
const BEGIN_AFTER_MS: u64 = 30_000;

const END_AFTER_MS: u64 = 10_000;

pub(super) struct HeldByNobody {
    hysteresis: Hysteresis<Finding>,
    /// What was held when no process was listed.
    bytes: u64,
}

impl HeldByNobody {
    pub(super) fn new() -> Self {
        Self { hysteresis: Hysteresis::new(BEGIN_AFTER_MS, END_AFTER_MS), bytes: 0 }
    }

    fn observe(&mut self, view: &View<'_>) -> Observation<Finding> {
        let memory = &view.sample.memory;
        let known = view.fresh(&memory.used_bytes).zip(view.fresh(&view.sample.processes));
        let Some((&used_bytes, processes)) = known else { return Observation::Unknown };
        // What a divided GPU lists depends on who asks.
        if view.fresh(&view.sample.mig_devices).is_some_and(|devices| !devices.is_empty()) {
            return Observation::Ended;
        }
        if processes.is_empty() && view.sample.processes_omitted == 0 {
            let reserved = match (memory.reserved_bytes.value(), memory.total_bytes.value()) {
                (None, Some(total)) => (*total as f64 * RESERVED_SHARE) as u64,
                _ => 0,
            };
            if used_bytes <= LEAST_BYTES + reserved {
                return Observation::Inactive;
            }
            self.bytes = used_bytes;
            return Observation::Active(finding(used_bytes));
        }
        if !self.hysteresis.lasts() {
            return Observation::Inactive;
        }
        // A process that has come since only adds to it, but for what is rounded.
        let listed = processes.iter().filter_map(|process| process.memory_bytes.value());
        let rest = used_bytes.saturating_sub(listed.fold(0_u64, |sum, bytes| sum.saturating_add(*bytes)));
        if rest >= self.bytes / 10 * 9 { Observation::Active(finding(self.bytes)) } else { Observation::Inactive }
    }
}

impl Rule for HeldByNobody {
    fn evaluate(&mut self, view: &View<'_>) -> Option<Condition> {
        let observation = self.observe(view);
        self.hysteresis.condition(observation, view.now)
    }

    fn forget(&mut self) {
        *self = Self::new();
    }
}

fn finding(bytes: u64) -> Finding {
    Finding {
        severity: Severity::Notice,
        text: format!(
            "{} in use, and no process is listed: it is of a container that cannot be seen from here, or of a process that \
             has ended and was not waited for. `sudo fuser -v /dev/nvidia*` on the host lists who has the GPU open.",
            byte_size(bytes as f64)
        ),
        kind: ConditionKind::HeldByNobody { bytes },
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{START_MS, TestTimeline, event};
    use super::*;
    use crate::{
        derive::examples::{self, GIB},
        model::{Absence, GpuSample, MigInstance, MigSample, Process, Reading},
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
            (&ConditionKind::HeldByNobody { bytes: 12 * GIB }, START_MS + 1_000)
        );
        assert!(condition.text.starts_with("12.0 GiB in use, and no process is listed"), "{}", condition.text);
        timeline.show(60, used(4, &[]));
        assert_eq!(timeline.take_events(), [event(71, "-held_by_nobody")]);
    }

    #[test]
    fn a_process_that_comes_does_not_explain_what_was_held_before() {
        let mut timeline = TestTimeline::new();
        let process = [examples::process(7, 2 * GIB)];
        timeline.show(60, used(12 << 10, &[])).show(200, used(14 << 10, &process));
        assert_eq!(timeline.take_events(), [event(31, "+held_by_nobody")]);
        assert_eq!(timeline.only().kind, ConditionKind::HeldByNobody { bytes: 12 * GIB });
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
    fn a_process_that_ends_leaves_its_memory_for_a_moment_and_a_divided_gpu_tells_nothing() {
        let mut timeline = TestTimeline::new();
        timeline.show(60, used(12 << 10, &[examples::process(7, 12 * GIB)])).show(20, used(12 << 10, &[]));
        timeline.show(60, used(4, &[]));
        let mig = MigSample {
            uuid: "MIG-0".into(),
            instance: MigInstance { gpu_instance: 1, compute_instance: 0 },
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
