//! What the sampler remembers of one GPU between beats: who it is, how it last was, whether an answer is awaited.

use std::time::{Duration, Instant};

use super::gpu_worker::{Answer, Outcome};
use crate::{
    model::{Absence, Board, Event, EventKind, Gpu, GpuRef, GpuSample, Health, Reading, now_ms},
    source::DeviceError,
};

/// A driver that is busy with something else can be this slow without being hung.
const SLOW: Duration = Duration::from_millis(150);

/// A driver without persistence mode takes this long to open its GPUs.
const OPENING: Duration = Duration::from_secs(30);

/// One GPU over time.
pub(super) struct Track {
    gpu: Gpu,
    /// What it answered last.
    last: GpuSample,
    /// The question it has not answered yet.
    awaited: Option<Awaited>,
    /// Whether it has ever answered.
    opened: bool,
    /// The health that was last shown, so that a change of it becomes an event.
    shown: Health,
}

struct Awaited {
    since: Instant,
    since_ms: u64,
}

impl Track {
    /// A GPU of which only the index is known.
    pub(super) fn new(index: u32) -> Self {
        let reason = Absence::NoAnswer;
        Self {
            gpu: Gpu {
                index,
                uuid: None,
                name: Reading::Absent(reason.clone()),
                pci_bus_id: Reading::Absent(reason.clone()),
                board: Board::absent(&reason),
                mig_devices: Vec::new(),
            },
            last: GpuSample::absent(index, None, now_ms(), Health::Ok, &reason),
            awaited: None,
            opened: false,
            shown: Health::Ok,
        }
    }

    pub(super) fn gpu(&self) -> Gpu {
        self.gpu.clone()
    }

    /// Whether it still owes the answer to an earlier beat.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    pub(super) fn asked(&mut self) {
        self.awaited = Some(Awaited { since: Instant::now(), since_ms: now_ms() });
    }

    /// Takes in an answer; true where it changed the inventory.
    pub(super) fn take_in(&mut self, answer: Answer) -> bool {
        self.awaited = None;
        self.opened = true;
        match answer.outcome {
            Outcome::Read(identity, sample) => {
                self.last = *sample;
                match identity {
                    Some(gpu) if gpu != self.gpu => {
                        self.gpu = gpu;
                        true
                    }
                    _ => false,
                }
            }
            Outcome::Failed(error) => {
                let at_ms = now_ms();
                let (health, reason) = self.failure(error, at_ms);
                let gone = GpuSample::absent(self.gpu.index, self.gpu.uuid.clone(), at_ms, health, &reason);
                let known = std::mem::replace(&mut self.last, gone);
                // How large it was does not change with it, and tells what its past readings were out of.
                if known.memory.total_bytes.value().is_some() {
                    self.last.memory.total_bytes = known.memory.total_bytes.dated(known.at_ms);
                }
                if known.power.limit_watts.value().is_some() {
                    self.last.power.limit_watts = known.power.limit_watts.dated(known.at_ms);
                }
                false
            }
        }
    }

    /// How the GPU is after `error`: since now, or since the same error was first seen.
    fn failure(&self, error: DeviceError, at_ms: u64) -> (Health, Absence) {
        match (error, &self.last.health) {
            (DeviceError::Lost, Health::Lost { since_ms }) => (Health::Lost { since_ms: *since_ms }, Absence::GpuLost),
            (DeviceError::Lost, _) => (Health::Lost { since_ms: at_ms }, Absence::GpuLost),
            (DeviceError::Failed(reason), known) => {
                let since_ms = if let Health::Failed { since_ms, .. } = known { *since_ms } else { at_ms };
                (Health::Failed { since_ms, reason: reason.clone() }, reason)
            }
        }
    }

    /// The GPU as the sample of this beat shows it; a change of its health becomes an event.
    pub(super) fn compose(&mut self, interval: Duration, now_ms: u64, events: &mut Vec<Event>) -> GpuSample {
        let mut sample = self.last.clone();
        // One interval without an answer, less what the threads' waking takes.
        let patience = if self.opened { interval.mul_f64(0.9).max(SLOW) } else { OPENING };
        if let Some(awaited) = self.awaited.as_ref().filter(|awaited| awaited.since.elapsed() >= patience) {
            sample.health = Health::Hung { since_ms: awaited.since_ms };
        }
        if std::mem::discriminant(&self.shown) != std::mem::discriminant(&sample.health) {
            let gpu = GpuRef { index: self.gpu.index, uuid: self.gpu.uuid.clone() };
            events.push(Event { at_ms: now_ms, gpu: Some(gpu), what: event_of(&sample.health) });
        }
        self.shown = sample.health.clone();
        sample
    }
}

fn event_of(health: &Health) -> EventKind {
    match health {
        Health::Ok => EventKind::GpuBack,
        Health::Hung { .. } => EventKind::GpuHung,
        Health::Lost { .. } => EventKind::GpuLost,
        Health::Failed { .. } => EventKind::GpuFailed,
        Health::Asleep { .. } => EventKind::GpuAsleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    fn lost(track: &mut Track) {
        track.take_in(Answer { index: 3, outcome: Outcome::Failed(DeviceError::Lost) });
    }

    fn answers(track: &mut Track) {
        let mut sample = GpuSample::absent(3, Some("GPU-3".into()), now_ms(), Health::Ok, &Absence::Unknown);
        sample.memory.total_bytes = Reading::Now(7);
        track.take_in(Answer { index: 3, outcome: Outcome::Read(None, Box::new(sample)) });
    }

    #[test]
    fn a_lost_gpu_keeps_its_index_and_the_time_it_was_lost() {
        let mut track = Track::new(3);
        let mut events = Vec::new();
        answers(&mut track);
        assert_eq!(track.compose(INTERVAL, 1, &mut events).health, Health::Ok);
        lost(&mut track);
        let first = track.compose(INTERVAL, 2, &mut events);
        std::thread::sleep(Duration::from_millis(3));
        lost(&mut track);
        let second = track.compose(INTERVAL, 3, &mut events);
        assert!(matches!(first.health, Health::Lost { .. }));
        assert_eq!(first.health, second.health);
        assert_eq!(second.index, 3);
        assert_eq!(second.power.draw_watts, Reading::Absent(Absence::GpuLost));
        assert!(matches!(second.memory.total_bytes, Reading::Earlier { value: 7, .. }), "how large it was stays");
        answers(&mut track);
        track.compose(INTERVAL, 4, &mut events);
        let kinds: Vec<_> = events.iter().map(|event| (event.at_ms, event.what.clone())).collect();
        assert_eq!(kinds, [(2, EventKind::GpuLost), (4, EventKind::GpuBack)]);
    }

    #[test]
    fn a_gpu_that_takes_long_to_open_does_not_hang_yet() {
        let mut track = Track::new(3);
        let mut events = Vec::new();
        track.asked();
        track.awaited.as_mut().unwrap().since -= 5 * INTERVAL;
        let sample = track.compose(INTERVAL, 1, &mut events);
        assert_eq!(sample.health, Health::Ok);
        assert_eq!(sample.power.draw_watts, Reading::Absent(Absence::NoAnswer));
        track.awaited.as_mut().unwrap().since -= OPENING;
        assert!(matches!(track.compose(INTERVAL, 2, &mut events).health, Health::Hung { .. }));
    }

    #[test]
    fn a_gpu_hangs_after_an_interval_without_an_answer_and_shows_its_last_readings() {
        let mut track = Track::new(3);
        let mut events = Vec::new();
        answers(&mut track);
        track.asked();
        assert_eq!(track.compose(INTERVAL, 1, &mut events).health, Health::Ok);
        track.awaited.as_mut().unwrap().since -= INTERVAL;
        let sample = track.compose(INTERVAL, 2, &mut events);
        assert!(matches!(sample.health, Health::Hung { .. }));
        assert_eq!(sample.uuid.as_deref(), Some("GPU-3"));
        assert_eq!(events.len(), 1);
        answers(&mut track);
        assert_eq!(track.compose(INTERVAL, 3, &mut events).health, Health::Ok);
        assert_eq!(events[1].what, EventKind::GpuBack);
    }
}
