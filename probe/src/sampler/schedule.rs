//! The schedule of the sampler: when samples are taken, how long a tick waits for the GPUs, and how
//! much is read.

use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::{model::now_ms, vendor::ReadDepth};

/// The minimum time between two samples after the interval was changed.
const MIN_CHANGED_INTERVAL: Duration = Duration::from_millis(100);

/// A clock whose ticks are at fixed times, so that a sample that takes long does not delay the next
/// one.
#[derive(Debug)]
pub(super) struct Ticker {
    interval: Duration,
    next: Instant,
}

impl Ticker {
    /// Returns a ticker that starts now.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Instant::now() + interval,
        }
    }

    /// Returns a ticker whose first tick is one interval after `last`, or now if that time has
    /// passed.
    pub(super) fn new_after(last: Instant, interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            next: (last + interval.max(MIN_CHANGED_INTERVAL)).max(now),
        }
    }

    /// Returns the time until the next tick. Ticks that were missed, for example while the machine
    /// was suspended or overloaded, are skipped.
    pub(super) fn time_until_next_tick(&mut self, now: Instant) -> Duration {
        while self.next < now {
            let missed = (now - self.next).as_nanos() / self.interval.as_nanos().max(1) + 1;
            self.next += self.interval * u32::try_from(missed).unwrap_or(u32::MAX);
        }
        let wait = self.next - now;
        self.next += self.interval;
        wait
    }
}

/// The sampling interval, shared by the sampler and the code that changes it.
#[derive(Debug)]
pub struct SharedInterval {
    interval: Mutex<Duration>,
    changed: Condvar,
}

impl SharedInterval {
    pub fn new(interval: Duration) -> Self {
        Self {
            interval: Mutex::new(interval),
            changed: Condvar::new(),
        }
    }

    /// Returns the current interval.
    pub fn get(&self) -> Duration {
        *self.interval.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the interval, and wakes the sampler if it is sleeping.
    pub fn set(&self, interval: Duration) {
        *self.interval.lock().unwrap_or_else(PoisonError::into_inner) = interval;
        self.changed.notify_all();
    }

    /// Sleeps for `wait`, or until the interval differs from `known`. Returns `true` if the full
    /// time has passed.
    pub(super) fn sleep_unless_changed(&self, known: Duration, wait: Duration) -> bool {
        let interval = self.interval.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self
            .changed
            .wait_timeout_while(interval, wait, |interval| *interval == known);
        woken.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// The minimum change of the system clock that is reported. Time synchronization constantly causes
/// smaller changes.
const MIN_CLOCK_CHANGE_MS: u64 = 10_000;

/// Detects changes of the system clock, by comparison with the time since boot at every tick.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    /// The system clock minus the time since boot, in milliseconds.
    ahead_ms: Option<i64>,
}

impl ClockWatch {
    /// Returns how far the system clock was set since the previous call, in milliseconds, or `None`
    /// if it was not set. The time since boot includes suspended time.
    pub(super) fn detect_clock_change(&mut self, now_ms: u64) -> Option<i64> {
        let since_start = clock_gettime(ClockId::Boottime);
        self.compare_clocks(
            now_ms,
            since_start.tv_sec as u64 * 1000 + since_start.tv_nsec as u64 / 1_000_000,
        )
    }

    fn compare_clocks(&mut self, now_ms: u64, since_start_ms: u64) -> Option<i64> {
        let ahead_ms = now_ms.cast_signed() - since_start_ms.cast_signed();
        let by_ms = ahead_ms - self.ahead_ms.replace(ahead_ms)?;
        (by_ms.unsigned_abs() >= MIN_CLOCK_CHANGE_MS).then_some(by_ms)
    }
}

/// All GPUs that the driver keeps open can be read within this time.
const KEPT_OPEN_TIME: Duration = Duration::from_millis(300);

/// After a GPU's first reading, a tick waits for the other GPUs for at least this long. GPUs that
/// are read at the same time wait for the same driver locks.
const MIN_QUIET_TIME: Duration = Duration::from_millis(150);

/// The maximum total wait for threads that are ready to run but get no CPU.
pub(super) const MAX_STARVED_TIME: Duration = Duration::from_secs(2);
const STARVED_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The time that the driver needs to open a GPU. Without persistence mode, a GPU is opened at its
/// first use.
pub const OPENING_TIME: Duration = Duration::from_secs(2);

/// The maximum wait of a one-shot command if no GPU responds. It is long because the command has
/// nothing else to show.
pub const ONE_SHOT_OPENING_TIME: Duration = Duration::from_secs(10);

/// The time at which a tick stops waiting for the GPUs, adjusted according to the responses so far.
pub(super) struct Deadline {
    begun: Instant,
    latest: Instant,
    at: Instant,
    first_read: Option<Duration>,
    opens_slowly: bool,
}

impl Deadline {
    pub(super) fn with_patience(patience: Duration) -> Self {
        let begun = Instant::now();
        let latest = begun + patience;
        Self {
            begun,
            latest,
            at: latest,
            first_read: None,
            opens_slowly: false,
        }
    }

    pub(super) fn instant(&self) -> Instant {
        self.at
    }

    /// Extends the deadline for threads that are ready to run but get no CPU. Returns `false` if
    /// the maximum time is over.
    pub(super) fn extend_for_starved_threads(&mut self, now: Instant) -> bool {
        let is_extended = now < (self.begun + MAX_STARVED_TIME).min(self.latest);
        if is_extended {
            self.at = (now + STARVED_CHECK_INTERVAL).min(self.latest);
        }
        is_extended
    }

    /// Adjusts the deadline after a GPU's first reading. Other GPUs are expected to open within the
    /// same time, unless they hang.
    pub(super) fn adjust_after_first_read(&mut self, stays_open: bool, now: Instant) {
        let first_read = *self.first_read.get_or_insert(now - self.begun);
        self.opens_slowly |= !stays_open;
        let quiet = if self.opens_slowly {
            OPENING_TIME
        } else {
            first_read.max(MIN_QUIET_TIME)
        };
        self.at = (now + quiet)
            .max(self.begun + KEPT_OPEN_TIME)
            .min(self.latest);
    }
}

// The amount to read at a tick: everything while somebody watches; otherwise, expensive readings
// only as often as the history needs them.

/// The length of the history's time steps.
const HISTORY_STEP_MS: u64 = 10_000;

/// The interval between readings of the host while nobody watches. The host is cheaper to read, so
/// it is read twice per history step.
pub(super) const HOST_STEP_MS: u64 = 5_000;

/// Whether somebody watches. The code that sets the flag shares it with the sampler.
#[derive(Debug)]
pub struct WatchFlag(AtomicBool);

impl WatchFlag {
    /// Sets whether somebody watches, with effect from the next sample.
    pub fn set(&self, is_watched: bool) {
        self.0.store(is_watched, Ordering::Relaxed);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for WatchFlag {
    /// Returns a flag that is set: somebody watches.
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

/// Divides time into steps and detects the last sample of each step. Averages read with that sample
/// cover exactly one step.
#[derive(Debug)]
pub(super) struct TimeSteps {
    length_ms: u64,
    /// The number of the step that follows the last closed step.
    next: u64,
}

impl TimeSteps {
    /// Returns steps with the length used by the history.
    pub(super) fn new_for_history() -> Self {
        Self::new(HISTORY_STEP_MS)
    }

    pub(super) fn new(length_ms: u64) -> Self {
        Self { length_ms, next: 0 }
    }

    /// Returns `true` if the current sample closes a step: if it is the very first sample, or
    /// probably the last sample of its step. Whether it is the last can only be estimated, because
    /// the next tick may be slightly late.
    pub(super) fn closes_step(&mut self, interval: Duration) -> bool {
        self.closes_step_at(now_ms(), interval)
    }

    fn closes_step_at(&mut self, now_ms: u64, interval: Duration) -> bool {
        let next = (now_ms + interval.as_millis() as u64 * 5 / 4) / self.length_ms;
        std::mem::replace(&mut self.next, next) != next
    }

    /// Returns how much to read now: `depth`, or less if nobody watches.
    pub(super) fn choose_depth(
        &mut self,
        depth: ReadDepth,
        watched: &WatchFlag,
        interval: Duration,
    ) -> ReadDepth {
        if depth == ReadDepth::Full && !watched.is_watched() {
            ReadDepth::Unwatched {
                closes_step: self.closes_step(interval),
            }
        } else {
            depth
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_sample_does_not_delay_ticks() {
        let interval = Duration::from_millis(100);
        let start = Instant::now();
        let mut ticker = Ticker {
            interval,
            next: start + interval,
        };
        assert_eq!(
            ticker.time_until_next_tick(start + Duration::from_millis(30)),
            Duration::from_millis(70)
        );
        assert_eq!(
            ticker.time_until_next_tick(start + Duration::from_millis(160)),
            Duration::from_millis(40)
        );
        assert_eq!(
            ticker.time_until_next_tick(start + Duration::from_millis(1_250)),
            Duration::from_millis(50)
        );
    }

    #[test]
    fn new_interval_starts_at_last_tick() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let wait = |interval, now| {
            Ticker::new_after(start, ms(interval), start + ms(now))
                .time_until_next_tick(start + ms(now))
        };
        assert_eq!(
            (wait(1_000, 300), wait(10, 30), wait(200, 900)),
            (ms(700), ms(70), ms(0))
        );
    }
}

#[cfg(test)]
mod shared_interval_tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn interval_change_wakes_sleeping_sampler() {
        let (slow, fast) = (Duration::from_mins(1), Duration::from_millis(100));
        let interval = Arc::new(SharedInterval::new(slow));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| interval.sleep_unless_changed(slow, slow));
            interval.set(fast);
            assert!(!sleeper.join().unwrap());
        });
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(interval.get(), fast);
        assert!(interval.sleep_unless_changed(fast, Duration::from_millis(1)));
    }
}

#[cfg(test)]
mod clock_watch_tests {
    use super::*;

    #[test]
    fn clock_change_is_reported_once() {
        let mut watch = ClockWatch::default();
        let changes = [
            (1_000_000, 1000),
            (1_001_000, 2000),
            (9_002_000, 3000),
            (9_003_000, 4000),
            (1_004_000, 5000),
        ];
        let found: Vec<_> = changes
            .map(|(now_ms, since_start_ms)| watch.compare_clocks(now_ms, since_start_ms))
            .into();
        assert_eq!(found, [None, None, Some(8_000_000), None, Some(-8_000_000)]);
    }

    #[test]
    fn slow_clock_correction_is_not_reported() {
        let mut watch = ClockWatch::default();
        let found = (0..1000)
            .find_map(|second| watch.compare_clocks(1_000_000 + second * 1500, second * 1000));
        assert_eq!(found, None);
    }
}

#[cfg(test)]
mod deadline_tests {
    use super::*;

    /// Returns the deadline in milliseconds, given the times of the GPUs' first readings.
    fn deadline_ms(reads: &[u64], stays_open: bool) -> u128 {
        let mut deadline = Deadline::with_patience(Duration::from_secs(10));
        for at_ms in reads {
            deadline.adjust_after_first_read(
                stays_open,
                deadline.begun + Duration::from_millis(*at_ms),
            );
        }
        (deadline.instant() - deadline.begun).as_millis()
    }

    #[test]
    fn sample_deadline_depends_on_first_read_times() {
        assert_eq!(deadline_ms(&[], true), 10_000, "nothing is known yet");
        assert_eq!(deadline_ms(&[20, 40], true), 300);
        assert_eq!(deadline_ms(&[20, 200], true), 350, "a driver that is busy");
        assert_eq!(
            deadline_ms(&[1_500], true),
            3_000,
            "all of them are opened slowly"
        );
        assert_eq!(deadline_ms(&[1_500, 2_900], true), 4_400);
        assert_eq!(
            deadline_ms(&[20], false),
            2_020,
            "one is in use, and the driver opens the rest now"
        );
        assert_eq!(deadline_ms(&[9_000], true), 10_000);
    }

    #[test]
    fn deadline_is_extended_for_threads_without_cpu() {
        let mut deadline = Deadline::with_patience(Duration::from_secs(10));
        let begun = deadline.begun;
        deadline.adjust_after_first_read(true, begun);
        let mut seconds = [0.3, 1.9, 2.0].map(|seconds| begun + Duration::from_secs_f64(seconds));
        assert_eq!(
            seconds.map(|now| deadline.extend_for_starved_threads(now)),
            [true, true, false]
        );
        seconds[1] += STARVED_CHECK_INTERVAL;
        assert_eq!(deadline.instant(), seconds[1]);
    }
}

#[cfg(test)]
mod time_steps_tests {
    use super::*;

    /// Returns the seconds of the ticks that close a step. Ticks are one second apart, start at
    /// `first_ms` and are up to 3 ms late.
    fn closing_seconds(first_ms: u64) -> Vec<u64> {
        let mut steps = TimeSteps::new_for_history();
        let ticks = (0..60).filter(|tick| {
            steps.closes_step_at(first_ms + tick * 1000 + tick % 4, Duration::from_secs(1))
        });
        ticks
            .map(|tick| (first_ms + tick * 1000 + tick % 4) / 1000)
            .collect()
    }

    #[test]
    fn exactly_one_sample_closes_each_history_step() {
        for phase_ms in [0, 1, 300, 740, 748, 750, 900, 997, 998, 999] {
            let closing = closing_seconds(100_000 + phase_ms);
            let steps: Vec<_> = closing.iter().skip(1).map(|second| second / 10).collect();
            assert_eq!(
                steps,
                (10..16).collect::<Vec<_>>()[..steps.len()],
                "{phase_ms}: {closing:?}"
            );
            assert!(
                closing.iter().skip(1).all(|second| second % 10 >= 8),
                "{phase_ms}: {closing:?}"
            );
            assert!(steps.len() >= 5, "{phase_ms}: {closing:?}");
        }
    }

    #[test]
    fn each_sample_closes_step_if_interval_exceeds_step() {
        let mut steps = TimeSteps::new(HOST_STEP_MS);
        assert!((0..9).all(|tick| steps.closes_step_at(tick * 60_000, Duration::from_mins(1))));
    }

    #[test]
    fn watched_sampler_reads_all_fields_again() {
        let (watched, second) = (WatchFlag::default(), Duration::from_secs(1));
        let mut steps = TimeSteps::new_for_history();
        assert_eq!(
            steps.choose_depth(ReadDepth::Full, &watched, second),
            ReadDepth::Full
        );
        watched.set(false);
        assert_eq!(
            steps.choose_depth(ReadDepth::Full, &watched, second),
            ReadDepth::Unwatched { closes_step: true }
        );
        assert_eq!(
            steps.choose_depth(ReadDepth::Metered, &watched, second),
            ReadDepth::Metered
        );
        watched.set(true);
        assert_eq!(
            steps.choose_depth(ReadDepth::Full, &watched, second),
            ReadDepth::Full
        );
    }
}
