//! The search for devices: read, judge, lock, and check again.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use gpumon_probe::{
    model::{Vendor, now_ms},
    units::short_duration,
};

use super::{
    candidate::{Candidate, Choice, View, candidates},
    condition::{Conditions, IdleClocks, Verdict, gib},
    lock::{Lock, Locks},
    progress::{Part, Progress},
    reader::{ReadResult, Reader},
};
use crate::exit::{Failure, Result, usage};

/// The exit code after a timeout, the same as that of timeout(1).
const TIMED_OUT: u8 = 124;

/// The exit code if no device is available and waiting was not requested.
const NOT_NOW: u8 = 1;

/// The options of a search.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) conditions: Conditions,
    pub(crate) choice: Choice,
    /// The number of devices to take at once. Fewer are never taken.
    pub(crate) count: usize,
    pub(crate) locks: Locks,
    pub(crate) patience: Patience,
}

/// How long to search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    Endless,
    Until(Duration),
    /// A single check without waiting.
    Now,
}

/// A device that was found. It stays locked while this value exists.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) candidate: Candidate,
    pub(super) uuid: String,
    pub(super) lock: Lock,
}

struct Judged {
    candidate: Candidate,
    verdict: Verdict,
    /// Whether its lock can never be taken.
    is_locked_out: bool,
}

impl Judged {
    fn part(&self) -> Part {
        Part::of(&self.candidate.name(), &self.verdict)
    }
}

/// Waits until enough candidates meet the conditions at the same time, and takes them, in the
/// driver's order.
pub(crate) fn find(
    search: &Search,
    reader: &mut Reader,
    progress: &mut Progress,
) -> Result<Vec<Held>> {
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
            // The last attempt had less time than the others, so the state seen before is more
            // meaningful.
            ReadResult::Unavailable(_) if is_over && !parts.is_empty() => {}
            ReadResult::Unavailable(why) => {
                held.clear();
                parts = vec![Part::alone(why)];
            }
            ReadResult::Available(view) => {
                noun = if view.inventory.platform.is_simulated {
                    "simulated GPU"
                } else {
                    "GPU"
                };
                let judged = search.judge(&view, &mut clocks, reader.interval());
                let mut judged = judged.inspect_err(|_| progress.clear())?;
                if search.take(&mut held, &mut judged) {
                    held.sort_by_key(|held| (held.candidate.gpu, held.candidate.mig));
                    let indices = held.iter().map(|held| held.candidate.index());
                    progress.found(
                        &indices
                            .map(|index| format!("{noun} {index}"))
                            .collect::<Vec<_>>(),
                    );
                    return Ok(held);
                }
                parts = judged.iter().map(Judged::part).collect();
            }
        }
        let goal = search.conditions.goal(search.count, noun);
        let given_up = match search.patience {
            Patience::Until(timeout) if is_over => Some((
                format!(
                    "gave up after {} of waiting for {goal}: {}",
                    short_duration(timeout),
                    Part::all(&parts)
                ),
                TIMED_OUT,
            )),
            // Devices that are locked at this point are checked once more.
            Patience::Now if held.is_empty() => Some((
                format!(
                    "did not find {goal}: {}; omit --now to wait",
                    Part::all(&parts)
                ),
                NOT_NOW,
            )),
            Patience::Endless | Patience::Until(_) | Patience::Now => None,
        };
        if let Some((why, code)) = given_up {
            progress.clear();
            return Err(Failure::with_code(anyhow!(why), code));
        }
        if held.is_empty() {
            progress.waiting(&goal, &parts);
        }
    }
}

impl Search {
    /// Returns all candidates that may be taken, each with its distance from the conditions.
    fn judge(
        &self,
        view: &View,
        clocks: &mut IdleClocks,
        interval: Duration,
    ) -> Result<Vec<Judged>> {
        let mut all = candidates(view);
        self.choice.retain(&view.inventory, &mut all)?;
        if self.count > 1 {
            // A program can use only one NVIDIA MIG device, but all partitions of other vendors.
            all.retain(|candidate| candidate.mig.is_none() || candidate.vendor != Vendor::Nvidia);
        }
        let judged: Vec<_> = all
            .into_iter()
            .map(|candidate| {
                let idle = clocks.update(&candidate, interval);
                let obstacle = candidate
                    .uuid
                    .as_ref()
                    .and_then(|uuid| self.locks.obstacle(uuid));
                let is_locked_out = obstacle.is_some();
                let verdict = obstacle
                    .map_or_else(|| self.conditions.judge(&candidate, idle), Verdict::Never);
                Judged {
                    candidate,
                    verdict,
                    is_locked_out,
                }
            })
            .collect();
        self.check_possible(&judged).map_err(|why| usage!(why))?;
        Ok(judged)
    }

    fn check_possible(&self, judged: &[Judged]) -> Result<(), String> {
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
                "--gpus {} is more than the number of candidates, {there}: ask for fewer",
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
                    "only {possible} of the {} GPUs asked for can ever have {free}",
                    self.count
                )
            };
            return Err(format!(
                "{ask}: the largest, {name}, has {} for programs; ask for less",
                gib(capacity)
            ));
        }
        let why: Vec<_> = judged.iter().map(Judged::part).collect();
        Err(format!(
            "nothing here can ever be {}: {}",
            self.conditions.goal(self.count, "GPU"),
            Part::all(&why)
        ))
    }

    /// Locks candidates that meet the conditions, and checks locked ones again. Returns `true` when
    /// enough have passed.
    ///
    /// The lock is held on all needed devices or on none, so that two processes waiting for several
    /// GPUs never wait for each other.
    fn take(&self, held: &mut Vec<Held>, judged: &mut [Judged]) -> bool {
        let is_met = |judged: &Judged| judged.verdict == Verdict::Met;
        held.retain_mut(|held| {
            let found = judged
                .iter()
                .find(|judged| judged.candidate.uuid.as_ref() == Some(&held.uuid));
            found.filter(|judged| is_met(judged)).is_some_and(|judged| {
                held.candidate = judged.candidate.clone();
                // After the clock was set back, all readings would seem older than the lock.
                held.lock.since_ms = held.lock.since_ms.min(now_ms());
                true
            })
        });
        if held.len() == self.count {
            // Another process may have used the device between the reading and the lock.
            return held
                .iter()
                .all(|held| held.candidate.at_ms >= held.lock.since_ms);
        }
        let mut met: Vec<_> = judged.iter_mut().filter(|judged| is_met(judged)).collect();
        if met.len() < self.count {
            held.clear();
            return false;
        }
        // The devices with the most free memory are taken first.
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
            match self.locks.take(&uuid) {
                Ok(lock) => held.push(Held {
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

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use super::{super::candidate::State, *};

    /// Returns a candidate with a reading of this time.
    fn judged(index: u32, at_ms: u64, free_bytes: u64, verdict: Verdict) -> Judged {
        let state = Ok(State {
            free_bytes: Reading::Now(free_bytes),
            busy_percent: Reading::Absent(Absence::Unknown),
            users: Reading::Absent(Absence::Unknown),
        });
        let (uuid, capacity_bytes) = (Some(format!("GPU-{index}")), Reading::Now(free_bytes));
        Judged {
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

    fn search(folder: &tempfile::TempDir, count: usize) -> Search {
        Search {
            conditions: Conditions {
                free: None,
                idle: None,
                empty: true,
            },
            choice: Choice::new(Vec::new()),
            count,
            locks: Locks::new(Some(folder.path())).unwrap(),
            patience: Patience::Endless,
        }
    }

    fn indices(held: &[Held]) -> Vec<u32> {
        held.iter().map(|held| held.candidate.gpu).collect()
    }

    #[test]
    fn what_was_taken_is_looked_at_once_more() {
        let folder = tempfile::tempdir().unwrap();
        let (search, mut held) = (search(&folder, 1), Vec::new());
        let before = now_ms() - 1_000;
        assert!(!search.take(&mut held, &mut [judged(0, before, 1, Verdict::Met)]));
        assert_eq!(indices(&held), [0]);
        assert!(
            !search.take(&mut held, &mut [judged(0, before, 1, Verdict::Met)]),
            "read before the lock"
        );
        let used = || Verdict::NotYet("1 process".to_owned());
        assert!(!search.take(&mut held, &mut [judged(0, now_ms(), 1, used())]));
        assert!(
            held.is_empty() && search.locks.take("GPU-0").is_ok(),
            "it is let go"
        );
        assert!(!search.take(&mut held, &mut [judged(0, now_ms(), 1, Verdict::Met)]));
        assert!(search.take(&mut held, &mut [judged(0, now_ms(), 1, Verdict::Met)]));
    }

    #[test]
    fn the_emptiest_are_taken_and_one_that_is_taken_is_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let (search, mut held) = (search(&folder, 2), Vec::new());
        let all = || {
            [(0, 5), (1, 9), (2, 7), (3, 9)]
                .map(|(index, free)| judged(index, 1, free, Verdict::Met))
        };
        search.take(&mut held, &mut all());
        assert_eq!(indices(&held), [1, 3]);
        let mut others = Vec::new();
        search.take(&mut others, &mut all());
        assert_eq!(indices(&others), [2, 0]);
        let (mut late, mut seen) = (Vec::new(), all());
        assert!(!search.take(&mut late, &mut seen) && late.is_empty());
        assert!(
            seen.iter()
                .all(|judged| judged.verdict == Verdict::Out("taken".to_owned()))
        );
    }
}
