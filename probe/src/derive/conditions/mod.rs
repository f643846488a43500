//! The conditions of a GPU, with one rule per kind. Hysteresis keeps conditions from flapping.
//!
//! The rules measure time instead of counting samples. An absent reading, or a reading older than a
//! minute, never starts a condition.

mod baseline;
mod errors;
mod free_memory;
mod hardly_used;
mod held_by_nobody;
mod held_idle;
mod links;
mod rule;
mod slower_than_itself;
mod suspected_hang;
#[cfg(test)]
mod test_timeline;
#[cfg(test)]
mod tests;
mod throttled;

use std::{cmp::Reverse, sync::LazyLock};

use self::{
    errors::DriverErrors,
    free_memory::MemoryFilling,
    hardly_used::HardlyUsed,
    held_by_nobody::HeldByNobody,
    held_idle::HeldIdle,
    links::NvLinkDown,
    rule::{Rule, View},
    slower_than_itself::SlowerThanItself,
    suspected_hang::SuspectedHang,
    throttled::Throttled,
};
use crate::{
    benchmarks::BelowBaseline,
    model::{
        Board, Condition, EventKind, GpuDetails, GpuSample, Health, RecoveryAction, XidReport,
    },
    vendor::ErrorInfo,
};

pub use baseline::Baseline;
#[cfg(test)]
pub(crate) use baseline::tests::make_learned_baseline;
pub use free_memory::is_memory_nearly_full;
pub use held_by_nobody::unlisted_bytes;
pub use rule::{Clock, Hysteresis, Moment, Observation};
pub(super) use suspected_hang::is_same_job;
pub use suspected_hang::may_be_hung;

/// The maximum time from the start of a collector until the first details are available. Details
/// are read every ten seconds.
const FIRST_DETAILS_MS: u64 = 15_000;

/// The settings of conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionSettings {
    /// The idle time after which memory counts as held idle, in milliseconds.
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
    /// The latest benchmark result, if it is slower than its baseline.
    below_baseline: Option<BelowBaseline>,
    /// The time of the last evaluated sample. While a GPU does not respond, its last sample is
    /// repeated and must not be evaluated twice.
    evaluated_ms: Option<u64>,
    /// Whether the GPU was lost or failed, and has not yet recovered.
    was_lost: bool,
}

/// A rule with the hysteresis of its condition.
struct RuleState {
    /// The condition's tag in JSON.
    tag: &'static str,
    rule: Box<dyn Rule>,
    hysteresis: Hysteresis<Condition>,
    /// How long a newly started collector needs to detect this condition, if the condition already
    /// existed before the collector started.
    found_after_ms: u64,
}

/// Returns all rules, each with the tag of its condition, the start and end delays, and the time
/// that a newly started collector needs to detect it. Times are in milliseconds.
fn all_rules(settings: &ConditionSettings) -> Vec<RuleState> {
    let idle_ms = settings.held_idle_after_ms;
    let slow_ms = baseline::EVIDENCE_MS.saturating_add(slower_than_itself::BEGIN_ALONE_AFTER_MS);
    let hang_ms = suspected_hang::BEGIN_WITH_WORK_AFTER_MS;
    let full_ms = free_memory::NEARLY_FULL_AFTER_MS;
    let rules: [(_, Box<dyn Rule>, [u64; 3]); 15] = [
        (
            "suspected_hang",
            Box::<SuspectedHang>::default(),
            [0, 10_000, hang_ms],
        ),
        // A delay is needed, because processes disappear from the driver's list before their memory
        // is freed.
        (
            "held_by_nobody",
            Box::<HeldByNobody>::default(),
            [30_000, 10_000, 30_000],
        ),
        // Each throttle reason has its own delays.
        (
            "throttled",
            Box::<Throttled>::default(),
            [0, 0, throttled::BEGIN_AFTER_MS],
        ),
        (
            "held_idle",
            Box::new(HeldIdle::new(idle_ms)),
            [0, 0, idle_ms],
        ),
        // No delay is needed, because this rule uses averages that change slowly.
        (
            "hardly_used",
            Box::<HardlyUsed>::default(),
            [0, 0, hardly_used::WINDOW_MS],
        ),
        (
            "slower_than_itself",
            Box::<SlowerThanItself>::default(),
            [0, 60_000, slow_ms],
        ),
        (
            "below_baseline",
            Box::new(slower_than_itself::observe_below_baseline),
            [0, 0, 0],
        ),
        // The end delay bridges a few samples without a forecast.
        (
            "memory_filling",
            Box::<MemoryFilling>::default(),
            [0, 10_000, free_memory::TREND_MS],
        ),
        // The delays bridge short allocations near the thresholds.
        (
            "memory_nearly_full",
            Box::new(free_memory::observe_nearly_full),
            [full_ms, 10_000, full_ms],
        ),
        ("ecc_uncorrected", Box::new(errors::observe_ecc), [0, 0, 0]),
        (
            "row_remap",
            Box::new(errors::observe_row_remapping),
            [0, 0, 0],
        ),
        (
            "page_retirement_pending",
            Box::new(errors::observe_page_retirement),
            [0, 0, 0],
        ),
        (
            "recovery_needed",
            Box::new(errors::observe_recovery_action),
            [0, 0, 0],
        ),
        // The delay ignores links that are briefly down during link training.
        (
            "nv_link_down",
            Box::<NvLinkDown>::default(),
            [5_000, 10_000, 5_000],
        ),
        (
            "pcie_degraded",
            Box::new(links::observe_pcie_lanes),
            [10_000, 10_000, 10_000],
        ),
    ];
    let rules = rules.into_iter();
    rules
        .map(
            |(tag, rule, [begin_after_ms, end_after_ms, found_after_ms])| RuleState {
                tag,
                rule,
                hysteresis: Hysteresis::new(begin_after_ms, end_after_ms),
                found_after_ms,
            },
        )
        .collect()
}

/// Returns the time in milliseconds that a newly started collector needs to detect a condition that
/// was already present on a responding GPU. `tag` is the condition's tag in JSON; for `None`, the
/// maximum over all conditions is returned. A new collector never detects driver errors from before
/// its start. For the condition of such an error, the function returns the time after which the
/// condition would have ended.
pub fn detection_time_ms(tag: Option<&str>, settings: &ConditionSettings) -> u64 {
    // The times are cached, because alerts need them for every rule and sample.
    static TIMES: LazyLock<Vec<(&str, u64)>> = LazyLock::new(|| {
        let rules = all_rules(&ConditionSettings::default()).into_iter();
        let times = rules.map(|state| (state.tag, state.found_after_ms));
        times.chain([("xid", errors::OTHER_ERROR_MS)]).collect()
    });
    let times = TIMES.iter().map(|(tag, found_after_ms)| match *tag {
        "held_idle" => (*tag, settings.held_idle_after_ms),
        _ => (*tag, *found_after_ms),
    });
    let found = times.filter(|(known, _)| tag.is_none_or(|tag| tag == *known));
    let longest = found.map(|(_, found_after_ms)| found_after_ms).max();
    longest.unwrap_or(0).saturating_add(FIRST_DETAILS_MS)
}

impl ConditionTracker {
    /// Creates the tracker for a GPU without samples.
    pub fn new(settings: &ConditionSettings) -> Self {
        Self {
            clock: Clock::default(),
            rules: all_rules(settings),
            errors: DriverErrors::default(),
            below_baseline: None,
            evaluated_ms: None,
            was_lost: false,
        }
    }

    /// Fills in the conditions of the sample at index `number`, the most severe first and then the
    /// oldest. Returns events for conditions that started or ended. `samples` contains all GPUs of
    /// the machine. Must be called at every tick, after
    /// [`discard_impossible_readings`](super::sanity_check::discard_impossible_readings), with the
    /// latest details.
    ///
    /// While the GPU hangs, its conditions do not change. When the GPU is lost, failed or asleep,
    /// conditions based on readings end; driver errors last until the GPU recovers.
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
                    let before = state.current_condition();
                    state.observe(&view);
                    hangs |= state.tag == "suspected_hang" && state.hysteresis.is_ongoing();
                    // A GPU that hangs is also hardly used. Only the hang is reported, because the
                    // hang is the cause.
                    if hangs && state.tag == "hardly_used" {
                        state.forget();
                    }
                    events.extend(state.start_or_end_event(before));
                }
            }
            Health::Hung { .. } => {}
            Health::Asleep { .. } | Health::Lost { .. } | Health::Failed { .. } => {
                for state in &mut self.rules {
                    let before = state.current_condition();
                    state.forget();
                    events.extend(state.start_or_end_event(before));
                }
            }
        }
        let over = match view.sample.health {
            Health::Ok if std::mem::take(&mut self.was_lost) => self.errors.end_all(),
            Health::Ok | Health::Asleep { .. } => {
                let action = view.fresh_detail(|details| &details.recovery_action);
                let needs_recovery = action.is_some_and(|it| *it != RecoveryAction::None);
                self.errors.end_expired(now, needs_recovery)
            }
            Health::Lost { .. } | Health::Failed { .. } => {
                self.was_lost = true;
                Vec::new()
            }
            Health::Hung { .. } => Vec::new(),
        };
        events.extend(over.into_iter().map(EventKind::ConditionEnded));
        let sample = &mut samples[number];
        let derived = self.rules.iter().filter_map(RuleState::current_condition);
        let errors = self.errors.conditions().cloned();
        sample.conditions = derived.chain(errors).collect();
        sample
            .conditions
            .sort_by_key(|condition| (Reverse(condition.severity), condition.since_ms));
        events
    }

    /// Returns the learned baseline of this GPU, which may be empty.
    pub fn baseline(&self) -> Baseline {
        self.rules
            .iter()
            .find_map(|state| state.rule.baseline())
            .cloned()
            .unwrap_or_default()
    }

    /// Restores a previously learned baseline, unless this tracker has already learned one.
    pub fn restore(&mut self, baseline: &Baseline) {
        if self.baseline().is_empty() {
            self.rules
                .iter_mut()
                .for_each(|state| state.rule.restore(baseline));
        }
    }

    /// Sets the latest benchmark result that is slower than its baseline, or `None`.
    pub fn set_below_baseline(&mut self, below: Option<BelowBaseline>) {
        self.below_baseline = below;
    }

    /// Applies a driver error of this GPU. The first error with a code starts a condition, and
    /// later errors renew it; the condition appears in the next sample. The caller must send the
    /// event for the error itself.
    ///
    /// If a program caused the error, the condition ends one minute after the last error with this
    /// code. Otherwise, it ends after ten minutes, unless the driver requests a recovery or the GPU
    /// is lost. When a lost GPU returns, the condition ends immediately.
    pub fn apply_driver_error(
        &mut self,
        report: &XidReport,
        info: &ErrorInfo,
        now_ms: u64,
    ) -> Vec<EventKind> {
        let (began, dropped) =
            self.errors
                .start_or_renew(report, info, self.clock.moment_at(now_ms));
        dropped
            .map(EventKind::ConditionEnded)
            .into_iter()
            .chain(began.map(EventKind::ConditionBegan))
            .collect()
    }
}

impl RuleState {
    fn observe(&mut self, view: &View<'_>) {
        let observation = self.rule.observe(view, self.hysteresis.is_ongoing());
        // The text is created at this point, with process names, because processes can end before
        // the condition does.
        let described = observation.map(|kind| Condition {
            since_ms: 0,
            severity: kind.severity(),
            text: kind.text(&|pid| view.process_name(pid)),
            kind,
        });
        self.hysteresis.update(described, view.now);
    }

    fn forget(&mut self) {
        self.hysteresis.reset();
        self.rule.forget();
    }

    fn current_condition(&self) -> Option<Condition> {
        let (since, latest) = self.hysteresis.ongoing_start_and_value()?;
        Some(Condition {
            since_ms: self.rule.earlier_start().unwrap_or(since).wall_ms,
            ..latest.clone()
        })
    }

    fn start_or_end_event(&self, before: Option<Condition>) -> Option<EventKind> {
        match (before, self.current_condition()) {
            (None, Some(began)) => Some(EventKind::ConditionBegan(began)),
            (Some(ended), None) => Some(EventKind::ConditionEnded(ended)),
            _ => None,
        }
    }
}
