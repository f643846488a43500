//! The recent activity of each GPU in periods of 200 ms. The real driver also measures in periods,
//! so its utilization changes in steps.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use gpumon_probe::vendor::sim::Machine;

use crate::done::{ActivityRates, TotalActivity};

/// The length of a period in milliseconds.
pub(crate) const PERIOD_MS: u64 = 200;
/// The maximum number of periods that are kept for a GPU.
const MAX_PERIODS: usize = 71;

/// The activity of one GPU in one period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PeriodActivity {
    /// The end of the period on the scenario's timeline.
    pub(crate) at_ms: u64,
    /// The share of time in which a kernel or a copy ran, in percent.
    pub(crate) gpu_percent: u32,
    /// The used share of the memory bandwidth.
    pub(crate) memory_percent: u32,
    /// The busy processes, each with its PID and the percentage of time in which it was busy.
    pub(crate) busy: Vec<(u32, u32)>,
}

/// The recorded periods of all GPUs, the oldest first. A GPU has none before its first activity.
#[derive(Debug)]
pub(crate) struct ActivityHistory(Vec<Mutex<VecDeque<PeriodActivity>>>);

impl ActivityHistory {
    /// Starts a thread that records the activity in this folder. The thread runs as long as the
    /// library is loaded.
    pub(crate) fn start(folder: PathBuf, machine: &Machine) -> Arc<Self> {
        let gpus: Vec<_> = (0..machine.world.gpu_count())
            .map(|gpu| machine.world.gpu_identity(gpu).clone())
            .collect();
        let notes = Arc::new(Self(gpus.iter().map(|_| Mutex::default()).collect()));
        let (shared, timeline) = (Arc::clone(&notes), machine.timeline.clone());
        let take = move || {
            let look = || {
                gpus.iter()
                    .map(|gpu| TotalActivity::read_now(&folder, gpu))
                    .collect::<Vec<_>>()
            };
            let mut before = look();
            loop {
                let at_ms = (timeline.elapsed_ms() / PERIOD_MS + 1) * PERIOD_MS;
                thread::sleep(Duration::from_millis(
                    at_ms.saturating_sub(timeline.elapsed_ms()),
                ));
                let now = look();
                for ((gpu, now), before) in now.iter().enumerate().zip(&before) {
                    if let Some(between) = now.activity_since(before) {
                        shared.add_period(gpu, PeriodActivity::new(at_ms, &between));
                    }
                }
                before = now;
            }
        };
        thread::Builder::new()
            .name("fake-notes".into())
            .spawn(take)
            .expect("the thread must start");
        notes
    }

    /// Returns the latest recorded period of a GPU.
    pub(crate) fn last_period(&self, gpu: u32) -> Option<PeriodActivity> {
        self.lock_periods(gpu as usize).back().cloned()
    }

    /// Returns all recorded periods of a GPU.
    pub(crate) fn all_periods(&self, gpu: u32) -> Vec<PeriodActivity> {
        self.lock_periods(gpu as usize).iter().cloned().collect()
    }

    fn add_period(&self, gpu: usize, note: PeriodActivity) {
        let mut notes = self.lock_periods(gpu);
        if notes.len() == MAX_PERIODS {
            notes.pop_front();
        }
        notes.push_back(note);
    }

    fn lock_periods(&self, gpu: usize) -> std::sync::MutexGuard<'_, VecDeque<PeriodActivity>> {
        self.0[gpu].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeriodActivity {
    fn new(at_ms: u64, between: &ActivityRates) -> Self {
        let whole = |percent: f64| percent.round() as u32;
        let busy = between
            .by_pid
            .iter()
            .map(|(pid, percent)| (*pid, whole(*percent)));
        Self {
            at_ms,
            gpu_percent: whole(between.busy_percent),
            memory_percent: whole(between.counters.dram_bandwidth_percent),
            busy: busy.filter(|(_, percent)| *percent > 0).collect(),
        }
    }
}
