//! What the driver notes of each GPU once in 200 ms, and keeps for a while: how much of that time
//! it was in use, and by whom. So does the real one, which is why its utilization moves in steps.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use gpumon_probe::vendor::sim::Machine;

use crate::done::{Between, Moment};

/// How far apart the notes are.
pub(crate) const PERIOD_MS: u64 = 200;
/// How many of them are kept.
const DEPTH: usize = 71;

/// What was noted of one GPU at the end of a period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    /// When it ended, on the scenario's timeline.
    pub(crate) at_ms: u64,
    /// Time in which a kernel or a copy ran.
    pub(crate) gpu_percent: u32,
    /// Bandwidth of the memory.
    pub(crate) memory_percent: u32,
    /// The processes that were busy, by PID, each with its share of the time in percent.
    pub(crate) busy: Vec<(u32, u32)>,
}

/// What is noted of all GPUs, the oldest first; nothing of those on which nobody has ever done
/// anything.
#[derive(Debug)]
pub(crate) struct Notes(Vec<Mutex<VecDeque<Note>>>);

impl Notes {
    /// Starts to take notes of what stands in this folder, on a thread that lasts as long as the
    /// library.
    pub(crate) fn start(folder: PathBuf, machine: &Machine) -> Arc<Self> {
        let gpus: Vec<_> = (0..machine.world.gpu_count())
            .map(|gpu| machine.world.identity(gpu).clone())
            .collect();
        let notes = Arc::new(Self(gpus.iter().map(|_| Mutex::default()).collect()));
        let (shared, timeline) = (Arc::clone(&notes), machine.timeline.clone());
        let take = move || {
            let look = || {
                gpus.iter()
                    .map(|gpu| Moment::now(&folder, gpu))
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
                    if let Some(between) = now.since(before) {
                        shared.add(gpu, Note::new(at_ms, &between));
                    }
                }
                before = now;
            }
        };
        thread::Builder::new()
            .name("fake-notes".into())
            .spawn(take)
            .expect("a thread can be started");
        notes
    }

    /// What was noted of a GPU last.
    pub(crate) fn newest(&self, gpu: u32) -> Option<Note> {
        self.of(gpu as usize).back().cloned()
    }

    /// All that is kept of a GPU.
    pub(crate) fn all(&self, gpu: u32) -> Vec<Note> {
        self.of(gpu as usize).iter().cloned().collect()
    }

    fn add(&self, gpu: usize, note: Note) {
        let mut notes = self.of(gpu);
        if notes.len() == DEPTH {
            notes.pop_front();
        }
        notes.push_back(note);
    }

    fn of(&self, gpu: usize) -> std::sync::MutexGuard<'_, VecDeque<Note>> {
        self.0[gpu].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Note {
    fn new(at_ms: u64, between: &Between) -> Self {
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
