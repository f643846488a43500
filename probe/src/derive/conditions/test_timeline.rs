//! A simulated timeline of a GPU for tests, with one sample per tick.

use super::{ConditionSettings, ConditionTracker};
use crate::{
    cpu_use::CpuUse,
    derive::{LimitTracker, examples},
    model::{Board, Condition, ConditionKind, EventKind, GpuDetails, GpuSample, Health},
    vendor::{DriverError, nvml::xid},
};

/// The start of every timeline.
pub(super) const START_MS: u64 = 1_700_000_000_000;

pub(super) struct TestTimeline {
    pub(super) tracker: ConditionTracker,
    limits: LimitTracker,
    pub(super) board: Board,
    pub(super) details: Option<GpuDetails>,
    pub(super) step_ms: u64,
    pub(super) now_ms: u64,
    pub(super) last: GpuSample,
    /// The other GPUs of the machine.
    pub(super) others: Vec<GpuSample>,
    /// The conditions that started (`+`) or ended (`-`), each with the second of the change.
    pub(super) events: Vec<(u64, String)>,
}

impl TestTimeline {
    /// Creates a timeline with one tick per second.
    pub(super) fn new() -> Self {
        Self::with_step_ms(1_000)
    }

    pub(super) fn with_step_ms(step_ms: u64) -> Self {
        Self {
            tracker: ConditionTracker::new(&ConditionSettings::default()),
            limits: LimitTracker::default(),
            board: examples::make_board(),
            details: None,
            step_ms,
            now_ms: START_MS,
            last: examples::make_sample(START_MS),
            others: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Adds samples of the example GPU, modified by `change`, for the given number of seconds.
    pub(super) fn advance_with_sample(
        &mut self,
        seconds: u64,
        change: impl Fn(&mut GpuSample),
    ) -> &mut Self {
        for _ in 0..seconds * 1000 / self.step_ms {
            self.now_ms += self.step_ms;
            let mut sample = examples::make_sample(self.now_ms);
            change(&mut sample);
            self.tick(sample);
        }
        self
    }

    /// Adds samples with the example details, modified by `change`, for the given number of
    /// seconds. The details are new at every tick.
    pub(super) fn advance_with_details(
        &mut self,
        seconds: u64,
        change: impl Fn(&mut GpuDetails),
    ) -> &mut Self {
        for _ in 0..seconds * 1000 / self.step_ms {
            let mut details = examples::make_details(self.now_ms + self.step_ms);
            change(&mut details);
            self.details = Some(details);
            self.advance_with_sample(self.step_ms / 1000, |_| {});
        }
        self
    }

    pub(super) fn tick(&mut self, sample: GpuSample) {
        let mut machine = vec![sample];
        machine.extend(self.others.iter().cloned());
        let host = examples::make_host();
        self.limits
            .update(&mut machine, 0, &self.board, &CpuUse::default(), &host);
        let events = self.tracker.update(
            &mut machine,
            0,
            &self.board,
            self.details.as_ref(),
            self.now_ms,
        );
        self.last = machine.swap_remove(0);
        self.record(events);
    }

    /// Reports a driver error with NVIDIA's code.
    pub(super) fn report_xid(&mut self, code: u32, pid: Option<u32>) {
        let info = xid::describe_xid(code);
        let report = info.build_report(DriverError {
            code,
            pid,
            message: None,
        });
        let events = self.tracker.apply_driver_error(&report, &info, self.now_ms);
        self.record(events);
    }

    /// Returns the only condition of the last sample.
    pub(super) fn only_condition(&self) -> &Condition {
        assert_eq!(self.last.conditions.len(), 1, "{:?}", self.last.conditions);
        &self.last.conditions[0]
    }

    /// Returns the events since the last call, and removes them.
    pub(super) fn take_events(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.events)
    }

    fn record(&mut self, events: Vec<EventKind>) {
        for event in events {
            let word = match event {
                EventKind::ConditionBegan(condition) => format!("+{}", condition_name(&condition)),
                EventKind::ConditionEnded(condition) => format!("-{}", condition_name(&condition)),
                other => panic!("{other:?}"),
            };
            self.events
                .push((self.now_ms.saturating_sub(START_MS) / 1000, word));
        }
    }
}

/// Returns an event such as `+throttled` at second `at`.
pub(super) fn expected_event(at: u64, word: &str) -> (u64, String) {
    (at, word.to_owned())
}

pub(super) fn set_lost(sample: &mut GpuSample) {
    set_unreadable(sample, Health::Lost { since_ms: START_MS });
}

pub(super) fn set_hung(sample: &mut GpuSample) {
    sample.health = Health::Hung { since_ms: START_MS };
}

pub(super) fn set_unreadable(sample: &mut GpuSample, health: Health) {
    *sample = GpuSample::new_absent(
        0,
        None,
        sample.at_ms,
        health,
        &crate::model::Absence::GpuLost,
    );
}

/// Returns the condition's tag in JSON, or the number of an Xid.
pub(super) fn condition_name(condition: &Condition) -> String {
    if let ConditionKind::Xid { code, .. } = condition.kind {
        return format!("xid {code}");
    }
    let json = serde_json::to_value(&condition.kind).unwrap();
    json["condition"].as_str().unwrap().to_owned()
}
