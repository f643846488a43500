//! The conditions of a GPU: one rule per kind, each with hysteresis, so that none flaps.
//!
//! The rules count in time and not in samples, and look at readings alone: an absent reading, or one that is older than
//! a minute, begins nothing.

use std::cmp::Reverse;

use crate::{
    benchmarks::BelowBaseline,
    model::{
        Board, Condition, ConditionKind, EventKind, GpuDetails, GpuSample, Health, RecoveryAction,
        XidReport,
    },
    vendor::ErrorInfo,
};

mod baseline;
mod below_baseline;
mod clock;
mod details;
mod driver_errors;
mod found_after;
mod hardly_used;
mod held_by_nobody;
mod held_idle;
mod hysteresis;
mod idle_power;
mod memory_filling;
mod memory_nearly_full;
mod nvlink_down;
mod pcie_degraded;
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
pub use memory_nearly_full::is_memory_nearly_full;
pub use suspected_hang::could_hang;

use driver_errors::DriverErrors;
use rule::{Rule, View};

const PCIE_DEGRADED_AFTER_MS: u64 = 10_000;

/// The delay after which most conditions end, so that they do not flap.
const END_AFTER_MS: u64 = 10_000;

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
    hysteresis: Hysteresis<Condition>,
    current: Option<Condition>,
}

/// Returns every rule, with the delays after which its condition begins and ends, in milliseconds.
fn all_rules(settings: &ConditionSettings) -> [(Box<dyn Rule>, u64, u64); 15] {
    let idle_after_ms = settings.held_idle_after_ms;
    let fills_after_ms = memory_nearly_full::BEGIN_AFTER_MS;
    [
        (
            Box::<suspected_hang::SuspectedHang>::default(),
            0,
            END_AFTER_MS,
        ),
        (
            Box::<held_by_nobody::HeldByNobody>::default(),
            held_by_nobody::BEGIN_AFTER_MS,
            END_AFTER_MS,
        ),
        // Each of its reasons has delays of its own.
        (Box::<throttled::Throttled>::default(), 0, 0),
        (Box::new(held_idle::HeldIdle::new(idle_after_ms)), 0, 0),
        // Its average is slow.
        (Box::<hardly_used::HardlyUsed>::default(), 0, 0),
        (
            Box::<slower_than_itself::SlowerThanItself>::default(),
            0,
            60_000,
        ),
        (Box::new(below_baseline::observe), 0, 0),
        // A forecast that is gone for less may be back with the next sample.
        (
            Box::<memory_filling::MemoryFilling>::default(),
            0,
            END_AFTER_MS,
        ),
        // Near its bounds, memory is given back and taken again.
        (
            Box::new(memory_nearly_full::observe),
            fills_after_ms,
            END_AFTER_MS,
        ),
        (Box::new(details::observe_ecc), 0, 0),
        (Box::new(details::observe_rows), 0, 0),
        (Box::new(details::observe_pages), 0, 0),
        (Box::new(details::observe_recovery), 0, 0),
        (
            Box::<nvlink_down::NvLinkDown>::default(),
            nvlink_down::BEGIN_AFTER_MS,
            END_AFTER_MS,
        ),
        (
            Box::new(pcie_degraded::observe),
            PCIE_DEGRADED_AFTER_MS,
            END_AFTER_MS,
        ),
    ]
}

impl ConditionTracker {
    /// A GPU without a sample so far.
    pub fn new(settings: &ConditionSettings) -> Self {
        let state = |(rule, begin_after_ms, end_after_ms)| RuleState {
            rule,
            hysteresis: Hysteresis::new(begin_after_ms, end_after_ms),
            current: None,
        };
        let rules = all_rules(settings).into_iter().map(state).collect();
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
                    let mut latest = state.evaluate(&view);
                    let kind = latest.as_ref().map(|latest| &latest.kind);
                    hangs |= matches!(kind, Some(ConditionKind::SuspectedHang { .. }));
                    // Kernels that hang use little of the GPU, too: the hang explains it.
                    if hangs && matches!(kind, Some(ConditionKind::HardlyUsed { .. })) {
                        state.forget();
                        latest = None;
                    }
                    state.update(latest, &mut events);
                }
            }
            Health::Hung { .. } => {}
            Health::Asleep { .. } | Health::Lost { .. } | Health::Failed { .. } => {
                for state in &mut self.rules {
                    state.forget();
                    state.update(None, &mut events);
                }
            }
        }
        let over = match view.sample.health {
            Health::Ok if std::mem::take(&mut self.was_lost) => self.errors.end_all(),
            Health::Ok | Health::Asleep { .. } => {
                let action = view.detail(|details| &details.recovery_action);
                let needs_recovery = action.is_some_and(|it| *it != RecoveryAction::None);
                self.errors.end_quiet(now, needs_recovery)
            }
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
    /// Evaluates one sample, and returns the condition as it is now, while it lasts.
    fn evaluate(&mut self, view: &View<'_>) -> Option<Condition> {
        let observation = self.rule.observe(view, self.hysteresis.lasts());
        // Processes are named as long as they are known.
        let described = observation.map(|kind| Condition {
            since_ms: 0,
            severity: kind.severity(),
            text: kind.text(&|pid| view.name_process(pid)),
            kind,
        });
        let (since, latest) = self.hysteresis.update(described, view.now)?;
        Some(Condition {
            since_ms: self.rule.began_at().unwrap_or(since).wall_ms,
            ..latest.clone()
        })
    }

    fn forget(&mut self) {
        self.hysteresis.forget();
        self.rule.forget();
    }

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
