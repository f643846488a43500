//! The trait for condition rules, and the tools that all rules share: the observed readings, a
//! clock, hysteresis, and the names of processes.

use super::baseline::Baseline;
use crate::{
    benchmarks::BelowBaseline,
    model::{Activity, Board, ConditionKind, GpuDetails, GpuSample, Health, Process, Reading},
};

/// The maximum age of a reading that rules use.
const MAX_READING_AGE_MS: u64 = 60_000;

/// A process's identity: its PID and start time.
pub(super) type ProcessKey = (u32, Option<u64>);

pub(super) fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.started_ms.value().copied())
}

/// The rule for one condition. The tracker is responsible for hysteresis, severity and texts.
pub(super) trait Rule: Send {
    /// Observes one sample. `lasts` is `true` while the condition lasts, so that the end threshold
    /// can differ from the start threshold.
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind>;

    /// Returns the time at which the condition started, if that was before the first observation.
    fn earlier_start(&self) -> Option<Moment> {
        None
    }

    /// Forgets earlier samples when the GPU is lost, failed or asleep.
    fn forget(&mut self) {}

    /// Returns the learned baseline of this GPU, if the rule has one.
    fn baseline(&self) -> Option<&Baseline> {
        None
    }

    /// Replaces the learned baseline.
    fn restore(&mut self, _baseline: &Baseline) {}
}

/// A rule without state can be a function.
impl<F> Rule for F
where
    F: Fn(&View<'_>, bool) -> Observation<ConditionKind> + Send,
{
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        self(view, lasts)
    }
}

pub(super) struct View<'a> {
    pub(super) sample: &'a GpuSample,
    /// All GPUs of the machine, including the observed GPU.
    pub(super) machine: &'a [GpuSample],
    pub(super) board: &'a Board,
    pub(super) details: Option<&'a GpuDetails>,
    pub(super) below_baseline: Option<&'a BelowBaseline>,
    pub(super) now: Moment,
}

impl<'a> View<'a> {
    /// Returns the other GPUs of the machine that currently respond.
    pub(super) fn other_responding_gpus(&self) -> impl Iterator<Item = &'a GpuSample> {
        let own = self.sample.index;
        let machine = self.machine.iter();
        machine.filter(move |gpu| gpu.index != own && gpu.health == Health::Ok)
    }

    /// Returns the value of a reading if it is at most a minute old.
    pub(super) fn fresh_value<'r, T>(&self, reading: &'r Reading<T>) -> Option<&'r T> {
        match reading {
            Reading::Now(value) => Some(value),
            Reading::Earlier { value, at_ms } if self.is_fresh(*at_ms) => Some(value),
            Reading::Earlier { .. } | Reading::Absent(_) => None,
        }
    }

    /// Returns a value from the details if it is at most a minute old.
    pub(super) fn fresh_detail<T>(
        &self,
        take: impl FnOnce(&'a GpuDetails) -> &'a Reading<T>,
    ) -> Option<&'a T> {
        let details = self
            .details
            .filter(|details| self.is_fresh(details.at_ms))?;
        self.fresh_value(take(details))
    }

    /// Returns the utilization of a GPU and of its memory controller in percent, if both are at
    /// most a minute old.
    pub(super) fn fresh_utilization(&self, gpu: &GpuSample) -> Option<(f64, f64)> {
        let gpu_percent = self.fresh_value(&gpu.utilization.gpu_percent)?;
        let memory_percent = self.fresh_value(&gpu.utilization.memory_percent)?;
        Some((*gpu_percent, *memory_percent))
    }

    /// Returns a value from the hardware counters if it is at most a minute old.
    pub(super) fn fresh_activity(
        &self,
        take: impl FnOnce(&Activity) -> &Reading<f64>,
    ) -> Option<f64> {
        self.fresh_value(take(self.fresh_value(&self.sample.activity)?))
            .copied()
    }

    /// Returns the display name of one of this GPU's processes.
    pub(super) fn process_name(&self, pid: u32) -> String {
        let mut processes = self.sample.processes.items().iter();
        let process = processes.find(|process| process.pid == pid);
        process.map_or_else(|| format!("process {pid}"), process_name)
    }

    fn is_fresh(&self, at_ms: u64) -> bool {
        self.now.wall_ms.abs_diff(at_ms) <= MAX_READING_AGE_MS
    }
}

/// The maximum time that one call adds to the observed time. If more time has passed since the last
/// call, the clock was set or the machine was suspended, so the GPU was not observed for the rest
/// of the time.
const MAX_CLOCK_STEP_MS: u64 = 60_000;

/// A point in time, with the wall clock for display and a counter for measuring durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// The total time for which the GPU has been observed, in milliseconds.
    ticks_ms: u64,
}

impl Moment {
    /// Returns the observed time since `earlier`, in milliseconds.
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.ticks_ms.saturating_sub(earlier.ticks_ms)
    }
}

/// A clock that returns moments based on the wall clock. It never runs backward, and can be paused.
#[derive(Debug, Default)]
pub struct Clock {
    wall_ms: Option<u64>,
    ticks_ms: u64,
}

impl Clock {
    /// Returns the current moment. The time since the previous call counts as observed if
    /// `is_watched` is `true`.
    pub fn advance(&mut self, wall_ms: u64, is_watched: bool) -> Moment {
        let step_ms = self.wall_ms.map_or(0, |before| {
            wall_ms.saturating_sub(before).min(MAX_CLOCK_STEP_MS)
        });
        if is_watched {
            self.ticks_ms = self.ticks_ms.saturating_add(step_ms);
        }
        self.wall_ms = Some(wall_ms);
        self.moment_at(wall_ms)
    }

    /// Returns the moment for a wall-clock time after the latest call of
    /// [`advance`](Self::advance), without advancing the clock.
    pub fn moment_at(&self, wall_ms: u64) -> Moment {
        Moment {
            wall_ms,
            ticks_ms: self.ticks_ms,
        }
    }
}

/// A pending condition is dropped after this many milliseconds without readings.
const UNKNOWN_BEFORE_MS: u64 = 10_000;

/// An active condition ends after this many milliseconds without readings.
const UNKNOWN_DURING_MS: u64 = 60_000;

/// The state of a condition in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation<T> {
    /// The condition is present, with this value.
    Active(T),
    /// The condition is absent.
    Inactive,
    /// The condition counts as absent, but keeps this value until its end delay has passed.
    Weakening(T),
    /// The condition is absent and will not return soon, so it ends without delay.
    Ended,
    /// The condition neither starts nor ends, because the value is between the two thresholds.
    Inconclusive,
    /// The sample has no reading.
    Unknown,
}

impl<T> Observation<T> {
    /// Converts the value, if any.
    pub(super) fn map<U>(self, with: impl FnOnce(T) -> U) -> Observation<U> {
        match self {
            Self::Active(value) => Observation::Active(with(value)),
            Self::Weakening(value) => Observation::Weakening(with(value)),
            Self::Inactive => Observation::Inactive,
            Self::Ended => Observation::Ended,
            Self::Inconclusive => Observation::Inconclusive,
            Self::Unknown => Observation::Unknown,
        }
    }
}

/// A condition with delays, so that it does not flap. It starts after it has been observed without
/// interruption for some time, and ends after it has been absent for some time.
#[derive(Debug)]
pub struct Hysteresis<T> {
    begin_after_ms: u64,
    end_after_ms: u64,
    since: Option<Moment>,
    latest: Option<T>,
    has_begun: bool,
    clear_since: Option<Moment>,
    unknown_since: Option<Moment>,
}

impl<T> Hysteresis<T> {
    /// Creates a condition with delays for its start and its end, in milliseconds.
    pub fn new(begin_after_ms: u64, end_after_ms: u64) -> Self {
        Self {
            begin_after_ms,
            end_after_ms,
            since: None,
            latest: None,
            has_begun: false,
            clear_since: None,
            unknown_since: None,
        }
    }

    /// Applies an observation. Returns the start and the latest value while the condition lasts.
    pub fn update(&mut self, observation: Observation<T>, now: Moment) -> Option<(Moment, &T)> {
        if !matches!(observation, Observation::Unknown) {
            self.unknown_since = None;
        }
        match observation {
            Observation::Active(seen) => {
                self.latest = Some(seen);
                self.clear_since = None;
                let since = *self.since.get_or_insert(now);
                self.has_begun |= now.ms_since(since) >= self.begin_after_ms;
            }
            Observation::Inactive => self.observe_inactive(now),
            Observation::Weakening(seen) => {
                self.latest = Some(seen);
                self.observe_inactive(now);
            }
            Observation::Inconclusive if self.has_begun => {}
            Observation::Inconclusive | Observation::Ended => self.reset(),
            Observation::Unknown => {
                let since = *self.unknown_since.get_or_insert(now);
                if now.ms_since(since)
                    >= if self.has_begun {
                        UNKNOWN_DURING_MS
                    } else {
                        UNKNOWN_BEFORE_MS
                    }
                {
                    self.reset();
                }
            }
        }
        self.ongoing_start_and_value()
    }

    /// Returns the start and the latest value while the condition lasts.
    pub fn ongoing_start_and_value(&self) -> Option<(Moment, &T)> {
        let since = self.since.filter(|_| self.has_begun)?;
        Some((since, self.latest.as_ref()?))
    }

    fn observe_inactive(&mut self, now: Moment) {
        let since = *self.clear_since.get_or_insert(now);
        if !self.has_begun || now.ms_since(since) >= self.end_after_ms {
            self.reset();
        }
    }

    /// Resumes a condition that started before the program did.
    pub fn resume(&mut self, since: Moment, latest: T) {
        self.reset();
        self.since = Some(since);
        self.latest = Some(latest);
        self.has_begun = true;
    }

    /// Returns `true` if the condition has started and has not ended.
    pub fn is_ongoing(&self) -> bool {
        self.has_begun
    }

    /// Returns the start and the latest value of a pending condition: one that is observed, but not
    /// yet for long enough to count as started.
    pub fn pending_start_and_value(&self) -> Option<(Moment, &T)> {
        Some((
            self.since.filter(|_| !self.has_begun)?,
            self.latest.as_ref()?,
        ))
    }

    /// Resets the condition to its initial state.
    pub fn reset(&mut self) {
        *self = Self::new(self.begin_after_ms, self.end_after_ms);
    }
}

/// The maximum length of a process name in a condition text.
const MAX_NAME_CHARS: usize = 60;

/// Returns the name of the notebook or program and its user, such as `train.ipynb (ana)`.
pub(super) fn process_name(process: &Process) -> String {
    let notebook = process
        .owner
        .value()
        .and_then(|owner| owner.notebook.as_ref()?.path.value());
    // The notebook's folders are omitted, because this text is also visible to users who may not
    // see command lines.
    let notebook = notebook.and_then(|path| path.rsplit('/').next());
    let program = notebook.or(process.name.value().map(String::as_str));
    let program = program.map_or_else(|| format!("process {}", process.pid), clean_process_name);
    match process.user.value() {
        Some(user) => format!("{program} ({})", clean_process_name(user)),
        None => program,
    }
}

/// Removes control characters, because names are untrusted text, and truncates long names at the
/// start.
fn clean_process_name(name: &str) -> String {
    let letters: Vec<char> = name.chars().filter(|letter| !letter.is_control()).collect();
    match letters.len().checked_sub(MAX_NAME_CHARS) {
        None | Some(0) => letters.into_iter().collect(),
        Some(more) => std::iter::once('…')
            .chain(letters[more..].iter().copied())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, Notebook, Owner},
    };

    #[test]
    fn condition_clock_ignores_jumps_and_unwatched_time() {
        let mut clock = Clock::default();
        let first = clock.advance(1_000_000, true);
        assert_eq!(clock.advance(1_001_000, true).ms_since(first), 1_000);
        assert_eq!(
            clock.advance(500_000, true).ms_since(first),
            1_000,
            "set back"
        );
        assert_eq!(
            clock.advance(510_000, false).ms_since(first),
            1_000,
            "not watched"
        );
        assert_eq!(
            clock.advance(90_000_000, true).ms_since(first),
            61_000,
            "set forward"
        );
        assert_eq!(clock.moment_at(90_000_500).ms_since(first), 61_000);
    }

    #[test]
    fn process_name_is_notebook_or_program_with_user() {
        let mut notebook = examples::make_process(1, 0);
        notebook.owner = Reading::Now(Owner {
            notebook: Some(Notebook {
                kernel_id: "k".into(),
                kernel_name: None,
                path: Reading::Now("work/a.ipynb".into()),
                kernel_pid: 1,
            }),
            ..Owner::default()
        });
        let mut stranger = examples::make_process(2, 0);
        stranger.user = Reading::Absent(Absence::Hidden);
        let mut nameless = stranger.clone();
        nameless.name = Reading::Absent(Absence::NoPermission);
        assert_eq!(
            [&notebook, &stranger, &nameless].map(process_name),
            ["a.ipynb (ana)", "train.py", "process 2"]
        );
        stranger.name = Reading::Now(format!("\x1b[2J{}end", "x".repeat(500)));
        let name = process_name(&stranger);
        assert_eq!(name.chars().count(), MAX_NAME_CHARS + 1);
        assert!(name.ends_with("end") && !name.contains('\x1b'), "{name}");
    }
}

#[cfg(test)]
mod hysteresis_tests {
    use super::{Observation::*, *};

    /// Applies the observations at intervals of `step_ms` to a condition that starts after 3 s and
    /// ends after 10 s. Returns whether the condition lasts after each observation.
    fn observe_all(step_ms: u64, observations: &[Observation<u8>]) -> Vec<bool> {
        let mut clock = Clock::default();
        let mut hysteresis = Hysteresis::new(3_000, 10_000);
        let mut now_ms = 1_000_000;
        let mut observe = |observation: &Observation<u8>| {
            now_ms += step_ms;
            hysteresis
                .update(*observation, clock.advance(now_ms, true))
                .is_some()
        };
        observations.iter().map(&mut observe).collect()
    }

    /// Returns the indexes of the observations at which the condition starts and ends.
    fn find_transitions(
        step_ms: u64,
        observations: &[Observation<u8>],
    ) -> (Option<usize>, Option<usize>) {
        let lasting = observe_all(step_ms, observations);
        let begun = lasting.iter().position(|lasts| *lasts);
        let ended = begun.and_then(|begun| {
            lasting
                .iter()
                .skip(begun)
                .position(|lasts| !lasts)
                .map(|end| begun + end)
        });
        (begun, ended)
    }

    #[test]
    fn condition_delays_do_not_depend_on_sampling_interval() {
        for (step_ms, begins, ends) in [(1_000, 3, 110), (100, 30, 200), (10_000, 1, 101)] {
            let observations: Vec<_> = (0..300)
                .map(|at| if at < 100 { Active(0) } else { Inactive })
                .collect();
            assert_eq!(
                find_transitions(step_ms, &observations),
                (Some(begins), Some(ends)),
                "{step_ms}"
            );
        }
    }

    #[test]
    fn condition_does_not_flap() {
        let blinking: Vec<_> = (0..100)
            .map(|at| if at % 2 == 0 { Active(0) } else { Inactive })
            .collect();
        assert_eq!(
            find_transitions(1_000, &blinking),
            (None, None),
            "never active for long"
        );
        let rarely: Vec<_> = (0..100)
            .map(|at| {
                if at < 5 || at % 8 == 0 {
                    Active(0)
                } else {
                    Inactive
                }
            })
            .collect();
        assert_eq!(
            find_transitions(1_000, &rarely),
            (Some(3), None),
            "never inactive for long"
        );
    }

    #[test]
    fn missing_readings_end_condition_eventually() {
        assert_eq!(find_transitions(1_000, &[Unknown; 200]), (None, None));
        let lost: Vec<_> = (0..200)
            .map(|at| if at < 10 { Active(0) } else { Unknown })
            .collect();
        assert_eq!(find_transitions(1_000, &lost), (Some(3), Some(70)));
        let once = [Active(0), Active(0), Unknown, Active(0)];
        assert_eq!(
            observe_all(1_000, &once),
            [false, false, false, true],
            "a single miss is no break"
        );
        let long: Vec<_> = (0..14)
            .map(|at| {
                if (1..13).contains(&at) {
                    Unknown
                } else {
                    Active(0)
                }
            })
            .collect();
        assert_eq!(find_transitions(1_000, &long), (None, None));
    }

    #[test]
    fn inconclusive_observation_changes_nothing() {
        assert_eq!(
            observe_all(2_000, &[Active(0), Inconclusive, Active(0), Active(0)]),
            [false; 4]
        );
        let observations: Vec<_> = (0..100)
            .map(|at| if at < 5 { Active(0) } else { Inconclusive })
            .collect();
        assert_eq!(find_transitions(1_000, &observations), (Some(3), None));
    }

    #[test]
    fn ending_condition_returns_start_time_and_latest_value() {
        let mut clock = Clock::default();
        let mut hysteresis = Hysteresis::new(1_000, 10_000);
        let first = clock.advance(5_000, true);
        hysteresis.update(Active('a'), first);
        hysteresis.update(Active('b'), clock.advance(6_000, true));
        assert_eq!(
            hysteresis.update(Inactive, clock.advance(7_000, true)),
            Some((first, &'b'))
        );
    }
}
