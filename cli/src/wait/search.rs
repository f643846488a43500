//! The search for devices: reading, evaluating, locking, and checking again, with progress
//! messages.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use gpumon_probe::{
    model::{Vendor, now_ms},
    units::format_short_duration,
};
use unicode_width::UnicodeWidthStr;

use super::{
    candidate::{Candidate, DeviceSelection, list_candidates},
    condition::{Conditions, IdleClocks, Verdict, format_gib},
    lock::{Lock, Locks},
    reader::{ReadResult, Reader},
};
use crate::{
    exit::{Failure, Result, print_message, usage},
    snapshot::DriverAnswer,
    terminal::output::StatusLine,
};

/// The exit code after a timeout, the same as that of timeout(1).
const TIMED_OUT: u8 = 124;

/// The exit code if no device is available and `--now` is given.
const NOT_AVAILABLE: u8 = 1;

/// The options of a search for devices.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) conditions: Conditions,
    pub(crate) choice: DeviceSelection,
    /// The number of devices to take. Either all of them are taken or none.
    pub(crate) count: usize,
    pub(crate) locks: Locks,
    pub(crate) patience: Patience,
}

/// The maximum duration of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    Endless,
    Until(Duration),
    /// Check once without waiting.
    Now,
}

/// A device that was found. The device stays locked while this value exists.
#[derive(Debug)]
pub(crate) struct LockedDevice {
    pub(super) candidate: Candidate,
    pub(super) uuid: String,
    pub(super) lock: Lock,
}

struct RatedCandidate {
    candidate: Candidate,
    verdict: Verdict,
    /// Whether the device can never be locked.
    is_locked_out: bool,
}

impl RatedCandidate {
    fn to_state(&self) -> CandidateState {
        CandidateState::from_verdict(&self.candidate.name(), &self.verdict)
    }
}

/// Waits until enough candidates meet the conditions at the same time. Takes these candidates and
/// returns them in the driver's order.
pub(crate) fn wait_and_lock_devices(
    search: &Search,
    reader: &mut Reader,
    progress: &mut Progress,
) -> Result<Vec<LockedDevice>> {
    let deadline = match search.patience {
        Patience::Until(timeout) => Some(Instant::now() + timeout),
        Patience::Endless | Patience::Now => None,
    };
    let mut noun = "GPU";
    let (mut held, mut clocks, mut parts) = (Vec::new(), IdleClocks::default(), Vec::new());
    loop {
        let look = reader
            .read(!held.is_empty(), deadline)
            .inspect_err(|_| progress.clear())?;
        let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
        match look {
            // The last attempt had less time than earlier attempts, so its failure may not be
            // meaningful. The state from earlier attempts is reported instead.
            ReadResult::Unavailable(_) if is_over && !parts.is_empty() => {}
            ReadResult::Unavailable(why) => {
                held.clear();
                parts = vec![CandidateState::from_reason(why)];
            }
            ReadResult::Available(view) => {
                noun = if view.inventory.platform.is_simulated {
                    "simulated GPU"
                } else {
                    "GPU"
                };
                let judged = search.rate_candidates(&view, &mut clocks, reader.interval());
                let mut judged = judged.inspect_err(|_| progress.clear())?;
                if search.lock_and_check(&mut held, &mut judged) {
                    held.sort_by_key(|held| (held.candidate.gpu, held.candidate.mig));
                    let indices = held.iter().map(|held| held.candidate.index_label());
                    progress.report_found(
                        &indices
                            .map(|index| format!("{noun} {index}"))
                            .collect::<Vec<_>>(),
                    );
                    return Ok(held);
                }
                parts = judged.iter().map(RatedCandidate::to_state).collect();
            }
        }
        let goal = search.conditions.describe_goal(search.count, noun);
        let given_up = match search.patience {
            Patience::Until(timeout) if is_over => Some((
                format!(
                    "gave up after {} of waiting for {goal}: {}",
                    format_short_duration(timeout),
                    CandidateState::join_all(&parts)
                ),
                TIMED_OUT,
            )),
            // With `--now`, the search gives up at once if no device is locked. Locked devices are
            // checked once more first.
            Patience::Now if held.is_empty() => Some((
                format!(
                    "did not find {goal}: {}; omit --now to wait",
                    CandidateState::join_all(&parts)
                ),
                NOT_AVAILABLE,
            )),
            Patience::Endless | Patience::Until(_) | Patience::Now => None,
        };
        if let Some((why, code)) = given_up {
            progress.clear();
            return Err(Failure::with_code(anyhow!(why), code));
        }
        if held.is_empty() {
            progress.report_waiting(&goal, &parts);
        }
    }
}

impl Search {
    /// Returns all candidates that may be taken, each with the result of checking the conditions.
    fn rate_candidates(
        &self,
        view: &DriverAnswer,
        clocks: &mut IdleClocks,
        interval: Duration,
    ) -> Result<Vec<RatedCandidate>> {
        let mut all = list_candidates(view);
        self.choice.retain_selected(&view.inventory, &mut all)?;
        if self.count > 1 {
            // A program can use only a single NVIDIA MIG device, but several partitions of other
            // vendors' GPUs.
            all.retain(|candidate| candidate.mig.is_none() || candidate.vendor != Vendor::Nvidia);
        }
        let judged: Vec<_> = all
            .into_iter()
            .map(|candidate| {
                let idle = clocks.update(&candidate, interval);
                let obstacle = candidate
                    .uuid
                    .as_ref()
                    .and_then(|uuid| self.locks.find_permanent_obstacle(uuid));
                let is_locked_out = obstacle.is_some();
                let verdict = obstacle.map_or_else(
                    || self.conditions.evaluate(&candidate, idle),
                    Verdict::Never,
                );
                RatedCandidate {
                    candidate,
                    verdict,
                    is_locked_out,
                }
            })
            .collect();
        self.check_enough_possible_candidates(&judged)
            .map_err(|why| usage!(why))?;
        Ok(judged)
    }

    fn check_enough_possible_candidates(&self, judged: &[RatedCandidate]) -> Result<(), String> {
        let possible = judged
            .iter()
            .filter(|judged| !matches!(judged.verdict, Verdict::Never(_)))
            .count();
        if possible >= self.count {
            return Ok(());
        }
        if judged.len() < self.count {
            let there = judged.len();
            return Err(format!(
                "--gpus {} exceeds the number of candidate GPUs ({there}): request fewer GPUs",
                self.count
            ));
        }
        let is_locked_out = judged.iter().any(|judged| judged.is_locked_out);
        let free = self
            .conditions
            .free
            .map(|amount| format!("{amount} free"))
            .unwrap_or_default();
        let largest = judged
            .iter()
            .filter_map(|judged| Some((judged.candidate.capacity_bytes.value()?, judged)));
        if let (true, Some((&capacity, largest))) = (
            self.conditions.free.is_some() && !is_locked_out,
            largest.max_by_key(|(capacity, _)| *capacity),
        ) {
            let name = largest.candidate.name();
            let ask = if possible == 0 {
                format!("no GPU can ever have {free}")
            } else {
                format!(
                    "only {possible} of the {} requested GPUs can ever have {free}",
                    self.count
                )
            };
            return Err(format!(
                "{ask}: the largest, {name}, has {} available to programs; request less memory",
                format_gib(capacity)
            ));
        }
        let why: Vec<_> = judged.iter().map(RatedCandidate::to_state).collect();
        Err(format!(
            "the candidate GPUs can never provide {}: {}",
            self.conditions.describe_goal(self.count, "GPU"),
            CandidateState::join_all(&why)
        ))
    }

    /// Locks candidates that meet the conditions, and checks locked candidates again. Returns
    /// `true` when enough candidates have passed the second check.
    ///
    /// Either all needed devices are locked or none, so that two processes that each need several
    /// GPUs never wait for each other.
    fn lock_and_check(&self, held: &mut Vec<LockedDevice>, judged: &mut [RatedCandidate]) -> bool {
        let is_met = |judged: &RatedCandidate| judged.verdict == Verdict::Met;
        held.retain_mut(|held| {
            let found = judged
                .iter()
                .find(|judged| judged.candidate.uuid.as_ref() == Some(&held.uuid));
            found.filter(|judged| is_met(judged)).is_some_and(|judged| {
                held.candidate = judged.candidate.clone();
                // If the clock was set back, the time of the lock is in the future, and all
                // readings would seem older than the lock. The time of the lock is therefore
                // limited to the current time.
                held.lock.since_ms = held.lock.since_ms.min(now_ms());
                true
            })
        });
        if held.len() == self.count {
            // Another process may have used the device between the reading and the locking, so a
            // reading after the locking is required.
            return held
                .iter()
                .all(|held| held.candidate.at_ms >= held.lock.since_ms);
        }
        let mut met: Vec<_> = judged.iter_mut().filter(|judged| is_met(judged)).collect();
        if met.len() < self.count {
            held.clear();
            return false;
        }
        // Devices with the most free memory are taken first.
        met.sort_by_key(|judged| {
            let free = judged
                .candidate
                .state
                .as_ref()
                .ok()
                .and_then(|state| state.free_bytes.value().copied());
            (Reverse(free), judged.candidate.gpu, judged.candidate.mig)
        });
        for judged in met {
            let Some(uuid) = judged.candidate.uuid.clone() else {
                continue;
            };
            if held.len() == self.count || held.iter().any(|held| held.uuid == uuid) {
                continue;
            }
            match self.locks.try_lock(&uuid) {
                Ok(lock) => held.push(LockedDevice {
                    candidate: judged.candidate.clone(),
                    uuid,
                    lock,
                }),
                Err(why) => judged.verdict = Verdict::Out(why),
            }
        }
        if held.len() < self.count {
            held.clear();
        }
        false
    }
}

// Progress messages on standard error. A terminal shows the goal, followed by a status line that is
// updated in place. Other outputs get a line with the goal and the status at long intervals.

/// The interval between lines if the output is not a terminal.
const PROGRESS_LINE_INTERVAL: Duration = Duration::from_mins(10);

/// Reports the progress of a wait.
#[derive(Debug)]
pub(crate) struct Progress {
    output: ProgressOutput,
    begun: Instant,
    last: Option<Instant>,
    shown: StatusLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgressOutput {
    None,
    Lines,
    Terminal,
}

/// A description of a candidate's state, and the candidate's distance from the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CandidateState {
    text: String,
    distance: usize,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let output = match (quiet, StatusLine::can_be_shown()) {
            (true, _) => ProgressOutput::None,
            (false, true) => ProgressOutput::Terminal,
            (false, false) => ProgressOutput::Lines,
        };
        Self {
            output,
            begun: Instant::now(),
            last: None,
            shown: StatusLine::default(),
        }
    }

    /// Reports the goal and each candidate's state.
    fn report_waiting(&mut self, goal: &str, parts: &[CandidateState]) {
        match self.output {
            ProgressOutput::None => {}
            ProgressOutput::Lines
                if self
                    .last
                    .is_some_and(|last| last.elapsed() < PROGRESS_LINE_INTERVAL) => {}
            ProgressOutput::Lines => {
                self.last = Some(Instant::now());
                print_message(&format!(
                    "waiting for {goal}: {}",
                    CandidateState::join_all(parts)
                ));
            }
            ProgressOutput::Terminal => {
                if self.last.replace(Instant::now()).is_none() {
                    print_message(&format!("waiting for {goal}"));
                }
                let head = format!("{:>7}  ", format_short_duration(self.begun.elapsed()));
                self.shown
                    .show(&fit_states(&head, parts, StatusLine::columns()));
            }
        }
    }

    /// Reports the devices that were taken, and removes the status line.
    fn report_found(&mut self, names: &[String]) {
        self.clear();
        if self.output != ProgressOutput::None {
            print_message(&format!(
                "took {} after {}",
                names.join(", "),
                format_short_duration(self.begun.elapsed())
            ));
        }
    }

    pub(super) fn clear(&mut self) {
        self.shown.clear();
    }
}

impl CandidateState {
    fn from_verdict(name: &str, verdict: &Verdict) -> Self {
        let text = match verdict {
            Verdict::Met => format!("{name} ready"),
            Verdict::NotYet(how) | Verdict::Out(how) => format!("{name} {how}"),
            Verdict::Never(why) => format!("{name} can never be ready: {why}"),
        };
        Self {
            text,
            distance: verdict.distance_from_meeting_conditions(),
        }
    }

    fn from_reason(why: String) -> Self {
        Self {
            text: why,
            distance: 0,
        }
    }

    /// Joins the descriptions of all candidates in the driver's order.
    fn join_all(parts: &[Self]) -> String {
        parts
            .iter()
            .map(|part| part.text.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Joins the descriptions of all candidates in the driver's order. If they do not fit, lists those
/// nearest to the goal, followed by the number of other candidates.
fn fit_states(head: &str, parts: &[CandidateState], width: usize) -> String {
    let all = format!("{head}{}", CandidateState::join_all(parts));
    if all.width() <= width {
        return all;
    }
    let mut nearest: Vec<_> = parts.iter().collect();
    nearest.sort_by_key(|part| part.distance);
    for shown in (1..parts.len()).rev() {
        let texts: Vec<_> = nearest[..shown]
            .iter()
            .map(|part| part.text.as_str())
            .collect();
        let line = format!("{head}{}, +{} more", texts.join(", "), parts.len() - shown);
        if line.width() <= width {
            return line;
        }
    }
    let nearest = nearest.first().map_or("", |part| part.text.as_str());
    // The text is cut after `width` characters. It contains no wide characters, so it then fits
    // into `width` columns.
    format!("{head}{nearest}").chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use super::{super::candidate::DeviceState, *};

    /// Returns a candidate with a reading at `at_ms`.
    fn make_rated_candidate(
        index: u32,
        at_ms: u64,
        free_bytes: u64,
        verdict: Verdict,
    ) -> RatedCandidate {
        let state = Ok(DeviceState {
            free_bytes: Reading::Now(free_bytes),
            busy_percent: Reading::Absent(Absence::Unknown),
            users: Reading::Absent(Absence::Unknown),
        });
        let (uuid, capacity_bytes) = (Some(format!("GPU-{index}")), Reading::Now(free_bytes));
        RatedCandidate {
            candidate: Candidate {
                gpu: index,
                mig: None,
                uuid,
                vendor: Vendor::Nvidia,
                visible_as: None,
                at_ms,
                capacity_bytes,
                state,
            },
            verdict,
            is_locked_out: false,
        }
    }

    fn make_search(folder: &tempfile::TempDir, count: usize) -> Search {
        Search {
            conditions: Conditions {
                free: None,
                idle: None,
                empty: true,
            },
            choice: DeviceSelection::new(Vec::new()),
            count,
            locks: Locks::new(Some(folder.path())).unwrap(),
            patience: Patience::Endless,
        }
    }

    fn list_indices(held: &[LockedDevice]) -> Vec<u32> {
        held.iter().map(|held| held.candidate.gpu).collect()
    }

    #[test]
    fn locked_devices_need_readings_newer_than_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (search, mut held) = (make_search(&folder, 1), Vec::new());
        let before = now_ms() - 1_000;
        assert!(!search.lock_and_check(
            &mut held,
            &mut [make_rated_candidate(0, before, 1, Verdict::Met)]
        ));
        assert_eq!(list_indices(&held), [0]);
        assert!(
            !search.lock_and_check(
                &mut held,
                &mut [make_rated_candidate(0, before, 1, Verdict::Met)]
            ),
            "read before the lock"
        );
        let used = || Verdict::NotYet("1 process".to_owned());
        assert!(!search.lock_and_check(
            &mut held,
            &mut [make_rated_candidate(0, now_ms(), 1, used())]
        ));
        assert!(
            held.is_empty() && search.locks.try_lock("GPU-0").is_ok(),
            "it is let go"
        );
        assert!(!search.lock_and_check(
            &mut held,
            &mut [make_rated_candidate(0, now_ms(), 1, Verdict::Met)]
        ));
        assert!(search.lock_and_check(
            &mut held,
            &mut [make_rated_candidate(0, now_ms(), 1, Verdict::Met)]
        ));
    }

    #[test]
    fn devices_with_most_free_memory_are_taken_first() {
        let folder = tempfile::tempdir().unwrap();
        let (search, mut held) = (make_search(&folder, 2), Vec::new());
        let all = || {
            [(0, 5), (1, 9), (2, 7), (3, 9)]
                .map(|(index, free)| make_rated_candidate(index, 1, free, Verdict::Met))
        };
        search.lock_and_check(&mut held, &mut all());
        assert_eq!(list_indices(&held), [1, 3]);
        let mut others = Vec::new();
        search.lock_and_check(&mut others, &mut all());
        assert_eq!(list_indices(&others), [2, 0]);
        let (mut late, mut seen) = (Vec::new(), all());
        assert!(!search.lock_and_check(&mut late, &mut seen) && late.is_empty());
        assert!(
            seen.iter()
                .all(|judged| judged.verdict == Verdict::Out("taken".to_owned()))
        );
    }
}

#[cfg(test)]
mod progress_tests {
    use super::*;

    #[test]
    fn status_line_fits_terminal_and_keeps_nearest_candidates() {
        let parts = [
            CandidateState::from_verdict(
                "GPU 0",
                &Verdict::NotYet("1.0 GiB free + 90 % busy".to_owned()),
            ),
            CandidateState::from_verdict("GPU 1", &Verdict::Out("taken".to_owned())),
            CandidateState::from_verdict("GPU 2", &Verdict::NotYet("idle 3s".to_owned())),
        ];
        for (width, line) in [
            (
                80,
                " 1s  GPU 0 1.0 GiB free + 90 % busy, GPU 1 taken, GPU 2 idle 3s",
            ),
            (
                62,
                " 1s  GPU 2 idle 3s, GPU 0 1.0 GiB free + 90 % busy, +1 more",
            ),
            (50, " 1s  GPU 2 idle 3s, +2 more"),
            (20, " 1s  GPU 2 idle 3s"),
            (5, " 1s  "),
            (0, ""),
        ] {
            assert_eq!(fit_states(" 1s  ", &parts, width), line);
        }
    }
}
