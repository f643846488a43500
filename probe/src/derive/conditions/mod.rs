//! The conditions of a GPU: one rule per kind, each with hysteresis, so that none flaps.
//!
//! The rules count in time and not in samples, and look at readings alone: an absent reading, or one that is older than
//! a minute, begins nothing.

use std::cmp::Reverse;

use crate::{
    benchmarks::BelowBaseline,
    model::{Board, Condition, ConditionKind, EventKind, GpuDetails, GpuSample, Health, XidReport},
    vendor::ErrorInfo,
};

mod baseline;
mod below_baseline;
mod clock;
mod driver_errors;
mod ecc_uncorrected;
mod found_after;
mod hardly_used;
mod held_by_nobody;
mod held_idle;
mod hysteresis;
mod idle_power;
mod memory_filling;
mod memory_nearly_full;
mod nvlink_down;
mod page_retirement;
mod pcie_degraded;
mod recovery_needed;
mod row_remap;
mod rule;
mod slower_than_itself;
mod suspected_hang;
mod text;
mod throttled;

pub use baseline::Baseline;
#[cfg(test)]
pub(crate) use baseline::learned_baseline;
pub use clock::{Clock, Moment};
pub use found_after::found_after_ms;
pub use held_by_nobody::unlisted_bytes;
pub use hysteresis::{Hysteresis, Observation};
pub use memory_filling::memory_forecast;
pub use memory_nearly_full::is_memory_nearly_full;
pub use suspected_hang::could_hang;

use driver_errors::DriverErrors;
use rule::{Rule, View};

/// What can be set about conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionSettings {
    /// For how long nothing must have run before memory is held idle, in milliseconds.
    pub held_idle_after_ms: u64,
}

impl Default for ConditionSettings {
    fn default() -> Self {
        Self {
            held_idle_after_ms: 5 * 60_000,
        }
    }
}

/// The conditions of one GPU.
pub struct ConditionTracker {
    clock: Clock,
    rules: Vec<RuleState>,
    errors: DriverErrors,
    /// What a benchmark has shown of it, where that is below its baseline.
    below_baseline: Option<BelowBaseline>,
    /// The time of the last evaluated sample: a GPU that has not answered since shows it again.
    evaluated_ms: Option<u64>,
    /// Whether it was lost or has failed, and has not come back.
    was_lost: bool,
}

struct RuleState {
    rule: Box<dyn Rule>,
    current: Option<Condition>,
}

impl ConditionTracker {
    /// A GPU without a sample so far.
    pub fn new(settings: &ConditionSettings) -> Self {
        let rules: [Box<dyn Rule>; 15] = [
            Box::new(suspected_hang::SuspectedHang::new()),
            Box::new(held_by_nobody::HeldByNobody::new()),
            Box::new(throttled::Throttled::new()),
            Box::new(held_idle::HeldIdle::new(settings.held_idle_after_ms)),
            Box::new(hardly_used::HardlyUsed::new()),
            Box::new(slower_than_itself::SlowerThanItself::new()),
            Box::new(below_baseline::rule()),
            Box::new(memory_filling::MemoryFilling::new()),
            Box::new(memory_nearly_full::rule()),
            Box::new(ecc_uncorrected::rule()),
            Box::new(row_remap::rule()),
            Box::new(page_retirement::rule()),
            Box::new(recovery_needed::rule()),
            Box::new(nvlink_down::NvLinkDown::new()),
            Box::new(pcie_degraded::rule()),
        ];
        let rules = rules
            .into_iter()
            .map(|rule| RuleState {
                rule,
                current: None,
            })
            .collect();
        Self {
            clock: Clock::default(),
            rules,
            errors: DriverErrors::default(),
            below_baseline: None,
            evaluated_ms: None,
            was_lost: false,
        }
    }

    /// Fills in the conditions of the sample with this number, the worst first and then the oldest, and returns which began
    /// and ended. `samples` are those of all GPUs of the machine. Call it at every tick, after [`sanity_check::check`](super::sanity_check::check), with the latest details.
    ///
    /// While the GPU hangs, its conditions stay as they are. When it is lost, has failed or sleeps, those of its readings
    /// end; its driver errors last until it comes back.
    pub fn update(
        &mut self,
        samples: &mut [GpuSample],
        number: usize,
        board: &Board,
        details: Option<&GpuDetails>,
        now_ms: u64,
    ) -> Vec<EventKind> {
        let mut events = Vec::new();
        let is_watched = matches!(samples[number].health, Health::Ok | Health::Asleep { .. });
        let now = self.clock.advance(now_ms, is_watched);
        let view = View {
            sample: &samples[number],
            machine: samples,
            board,
            details,
            below_baseline: self.below_baseline.as_ref(),
            now,
        };
        match view.sample.health {
            Health::Ok => {
                let is_new =
                    self.evaluated_ms.replace(view.sample.at_ms) != Some(view.sample.at_ms);
                let mut hangs = false;
                for state in self.rules.iter_mut().filter(|_| is_new) {
                    let latest = state.rule.evaluate(&view);
                    let is = |is_it: fn(&ConditionKind) -> bool| {
                        latest.as_ref().is_some_and(|latest| is_it(&latest.kind))
                    };
                    hangs |= is(|kind| matches!(kind, ConditionKind::SuspectedHang { .. }));
                    // Kernels that hang use little of the GPU, too, and that says less.
                    let says_less =
                        hangs && is(|kind| matches!(kind, ConditionKind::HardlyUsed { .. }));
                    if says_less {
                        state.rule.forget();
                    }
                    state.update(latest.filter(|_| !says_less), &mut events);
                }
            }
            Health::Hung { .. } => {}
            Health::Asleep { .. } | Health::Lost { .. } | Health::Failed { .. } => {
                for state in &mut self.rules {
                    state.rule.forget();
                    state.update(None, &mut events);
                }
            }
        }
        let over = match view.sample.health {
            Health::Ok if std::mem::take(&mut self.was_lost) => self.errors.end_all(),
            Health::Ok | Health::Asleep { .. } => self
                .errors
                .end_quiet(now, recovery_needed::is_needed(&view).unwrap_or(false)),
            Health::Lost { .. } | Health::Failed { .. } => {
                self.was_lost = true;
                Vec::new()
            }
            Health::Hung { .. } => Vec::new(),
        };
        events.extend(over.into_iter().map(EventKind::ConditionEnded));
        let sample = &mut samples[number];
        let derived = self.rules.iter().filter_map(|state| state.current.as_ref());
        sample.conditions = derived.chain(self.errors.conditions()).cloned().collect();
        sample
            .conditions
            .sort_by_key(|condition| (Reverse(condition.severity), condition.since_ms));
        events
    }

    /// What this GPU usually does, as far as it has been learned.
    pub fn baseline(&self) -> Baseline {
        self.rules
            .iter()
            .find_map(|state| state.rule.baseline())
            .cloned()
            .unwrap_or_default()
    }

    /// Goes on with what was learned of this GPU before, unless something has been learned since.
    pub fn restore(&mut self, baseline: &Baseline) {
        if self.baseline().is_empty() {
            self.rules
                .iter_mut()
                .for_each(|state| state.rule.restore(baseline));
        }
    }

    /// Takes what a benchmark has shown of this GPU, where that is below its baseline.
    pub fn set_below_baseline(&mut self, below: Option<BelowBaseline>) {
        self.below_baseline = below;
    }

    /// Applies a driver error of this GPU, which shows in the next sample: the first with a code begins a condition,
    /// later ones renew it. The event of the report itself is the caller's.
    ///
    /// It ends a minute after the last of its code where a program caused it, else after ten minutes, unless the driver
    /// asks for a recovery or the GPU is lost; and at once when a lost GPU comes back.
    pub fn on_error(
        &mut self,
        report: &XidReport,
        info: &ErrorInfo,
        now_ms: u64,
    ) -> Vec<EventKind> {
        let (began, dropped) = self.errors.raise(report, info, self.clock.at(now_ms));
        dropped
            .map(EventKind::ConditionEnded)
            .into_iter()
            .chain(began.map(EventKind::ConditionBegan))
            .collect()
    }
}

impl std::fmt::Debug for ConditionTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let current: Vec<_> = self
            .rules
            .iter()
            .filter_map(|state| state.current.as_ref())
            .collect();
        f.debug_struct("ConditionTracker")
            .field("current", &current)
            .field("errors", &self.errors)
            .finish_non_exhaustive()
    }
}

impl RuleState {
    fn update(&mut self, latest: Option<Condition>, events: &mut Vec<EventKind>) {
        match (std::mem::replace(&mut self.current, latest.clone()), latest) {
            (None, Some(began)) => events.push(EventKind::ConditionBegan(began)),
            (Some(ended), None) => events.push(EventKind::ConditionEnded(ended)),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

#[cfg(test)]
mod test_timeline;

#[cfg(test)]
mod tests;
