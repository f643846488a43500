//! What the sampler remembers of one GPU between beats: who it is, how it last was, whether an answer is awaited.

use std::time::{Duration, Instant};

use super::message::{Outcome, Readings};
use crate::{
    derive::{ConditionSettings, ConditionTracker, EccTracker, ProcessTracker},
    model::{
        Absence, Board, EventKind, Gpu, GpuDetails, GpuRef, GpuSample, Health, ProcessRef, Reading, Trace, XidReport,
        normal_bus_id, now_ms,
    },
    vendor::DeviceError,
    vendor::nvml::query::DriverAnswers,
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
    /// The processes for which `last` has no room, until it has been looked through.
    omitted: Vec<ProcessRef>,
    /// What changes slowly, as it was read last.
    details: Option<GpuDetails>,
    /// Why it could not be read, where it could not.
    error: Option<DeviceError>,
    /// The query it has not answered yet.
    awaited: Option<Awaited>,
    /// Whether `last` has been looked through for what happened.
    derived: bool,
    /// Whether something says that what changes slowly has changed.
    details_wanted: bool,
    /// Whether it has ever answered.
    opened: bool,
    /// The health that was last shown, so that a change of it becomes an event.
    shown: Health,
    conditions: ConditionTracker,
    processes: ProcessTracker,
    ecc: EccTracker,
    /// What happened since the last beat.
    happened: Vec<EventKind>,
}

/// What an answer brought beside the readings.
#[derive(Default)]
pub(super) struct News {
    pub(super) identity_changed: bool,
    pub(super) mig_changed: bool,
    pub(super) details: Option<GpuDetails>,
    pub(super) answers: Option<DriverAnswers>,
    pub(super) traces: Vec<Trace>,
}

struct Awaited {
    since: Instant,
    since_ms: u64,
}

impl Track {
    /// A GPU of which only the index is known.
    pub(super) fn new(index: u32, settings: &ConditionSettings) -> Self {
        let reason = Absence::NoAnswer;
        Self {
            gpu: unknown(index, &reason),
            last: GpuSample::absent(index, None, now_ms(), Health::Ok, &reason),
            omitted: Vec::new(),
            details: None,
            error: None,
            awaited: None,
            derived: true,
            details_wanted: false,
            opened: false,
            shown: Health::Ok,
            conditions: ConditionTracker::new(settings),
            processes: ProcessTracker::default(),
            ecc: EccTracker::default(),
            happened: Vec::new(),
        }
    }

    pub(super) fn gpu(&self) -> Gpu {
        self.gpu.clone()
    }

    pub(super) fn gpu_ref(&self) -> GpuRef {
        GpuRef { index: self.gpu.index, uuid: self.gpu.uuid.clone() }
    }

    /// Its PCI bus id, as the kernel's log names it.
    pub(super) fn logged_as(&self) -> Option<String> {
        normal_bus_id(self.gpu.pci_bus_id.value()?)
    }

    /// What changes slowly, as it was read last.
    pub(super) fn details(&self) -> Option<&GpuDetails> {
        self.details.as_ref()
    }

    /// How it was at its last answer.
    pub(super) fn health(&self) -> &Health {
        &self.last.health
    }

    /// Whether it has ever answered.
    pub(super) fn has_answered(&self) -> bool {
        self.opened
    }

    /// Why it could not be read, where it could not.
    pub(super) fn error(&self) -> Option<&DeviceError> {
        self.error.as_ref()
    }

    /// Has what changes slowly read at the next beat.
    pub(super) fn want_details(&mut self) {
        self.details_wanted = true;
    }

    pub(super) fn take_details_wanted(&mut self) -> bool {
        std::mem::take(&mut self.details_wanted)
    }

    /// An Xid of this GPU, and what it makes happen.
    pub(super) fn xid(&mut self, report: &XidReport, now_ms: u64) -> Vec<EventKind> {
        self.conditions.xid(report, now_ms)
    }

    /// Whether it still owes the answer to an earlier beat.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    pub(super) fn asked(&mut self) {
        self.awaited = Some(Awaited { since: Instant::now(), since_ms: now_ms() });
    }

    /// Takes in an answer.
    pub(super) fn take_in(&mut self, outcome: Outcome) -> News {
        self.awaited = None;
        self.opened = true;
        self.derived = false;
        match outcome {
            Outcome::Read(readings) => self.take_in_readings(*readings),
            Outcome::Asleep => {
                let at_ms = now_ms();
                let since_ms = if let Health::Asleep { since_ms } = self.last.health { since_ms } else { at_ms };
                self.replace(Health::Asleep { since_ms }, &Absence::Asleep, at_ms);
                News { identity_changed: self.remains_unknown(&Absence::Asleep), ..News::default() }
            }
            Outcome::Failed(error) => {
                let at_ms = now_ms();
                let (health, reason) = self.failure(&error, at_ms);
                self.replace(health, &reason, at_ms);
                self.error = Some(error);
                News { identity_changed: self.remains_unknown(&reason), ..News::default() }
            }
        }
    }

    fn take_in_readings(&mut self, readings: Readings) -> News {
        let Readings { identity, sample, omitted, details, answers, traces } = readings;
        self.error = None;
        self.last = sample;
        self.omitted = omitted;
        let mut news = News { answers, traces, ..News::default() };
        if let Some(gpu) = identity {
            // A GPU that is seen for the first time has changed nothing.
            news.mig_changed = self.gpu.uuid.is_some() && gpu.mig_devices != self.gpu.mig_devices;
            news.identity_changed = gpu != self.gpu;
            self.gpu = gpu;
        }
        if let Some(details) = details {
            self.happened.extend(self.ecc.update(&details));
            self.details = Some(details.clone());
            news.details = Some(details);
        }
        news
    }

    /// Puts a GPU of which nothing can be read in the place of what was read last.
    fn replace(&mut self, health: Health, reason: &Absence, at_ms: u64) {
        let gone = GpuSample::absent(self.gpu.index, self.gpu.uuid.clone(), at_ms, health, reason);
        let known = std::mem::replace(&mut self.last, gone);
        // How large it was does not change with it, and tells what its past readings were out of.
        if known.memory.total_bytes.value().is_some() {
            self.last.memory.total_bytes = known.memory.total_bytes.dated(known.at_ms);
        }
        if known.power.limit_watts.value().is_some() {
            self.last.power.limit_watts = known.power.limit_watts.dated(known.at_ms);
        }
    }

    /// Says why it is not known who it is, where that is so; true where that is another reason than before.
    fn remains_unknown(&mut self, reason: &Absence) -> bool {
        let why = self.gpu.name.absence();
        let is_unknown = self.gpu.uuid.is_none() && self.gpu.pci_bus_id.value().is_none();
        let changed = is_unknown && why.is_some_and(|known| known != reason);
        if changed {
            self.gpu = unknown(self.gpu.index, reason);
        }
        changed
    }

    /// How the GPU is after `error`: since now, or since the same error was first seen.
    fn failure(&self, error: &DeviceError, at_ms: u64) -> (Health, Absence) {
        let reason = match error {
            DeviceError::Lost => {
                let since_ms = if let Health::Lost { since_ms } = self.last.health { since_ms } else { at_ms };
                return (Health::Lost { since_ms }, Absence::GpuLost);
            }
            DeviceError::DriverGone { code } => Absence::DriverError { code: *code },
            DeviceError::Failed(reason) => reason.clone(),
        };
        let since_ms = if let Health::Failed { since_ms, .. } = self.last.health { since_ms } else { at_ms };
        (Health::Failed { since_ms, reason: reason.clone() }, reason)
    }

    /// The GPU as the sample of this beat shows it, and what happened to it since the last.
    pub(super) fn compose(&mut self, interval: Duration, now_ms: u64) -> (GpuSample, Vec<EventKind>) {
        let mut sample = self.last.clone();
        // One interval without an answer, less what the threads' waking takes.
        let patience = if self.opened { interval.mul_f64(0.9).max(SLOW) } else { OPENING };
        if let Some(awaited) = self.awaited.as_ref().filter(|awaited| awaited.since.elapsed() >= patience) {
            sample.health = Health::Hung { since_ms: awaited.since_ms };
        }
        let mut happened = Vec::new();
        if std::mem::discriminant(&self.shown) != std::mem::discriminant(&sample.health) {
            happened.push(event_of(&sample.health));
        }
        self.shown = sample.health.clone();
        happened.append(&mut self.happened);
        if !std::mem::replace(&mut self.derived, true) {
            happened.extend(self.processes.update(&sample.processes, std::mem::take(&mut self.omitted)));
        }
        happened.extend(self.conditions.update(&mut sample, &self.gpu.board, self.details.as_ref(), now_ms));
        (sample, happened)
    }
}

/// A GPU of which only the index is known, for this reason.
fn unknown(index: u32, reason: &Absence) -> Gpu {
    Gpu {
        index,
        uuid: None,
        name: Reading::Absent(reason.clone()),
        pci_bus_id: Reading::Absent(reason.clone()),
        board: Board::absent(reason),
        mig_devices: Vec::new(),
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

    fn compose(track: &mut Track, now_ms: u64, events: &mut Vec<(u64, EventKind)>) -> GpuSample {
        let (sample, happened) = track.compose(INTERVAL, now_ms);
        events.extend(happened.into_iter().map(|what| (now_ms, what)));
        sample
    }

    fn lost(track: &mut Track) {
        track.take_in(Outcome::Failed(DeviceError::Lost));
    }

    fn answers(track: &mut Track) {
        let mut sample = GpuSample::absent(3, Some("GPU-3".into()), now_ms(), Health::Ok, &Absence::Unknown);
        sample.memory.total_bytes = Reading::Now(7);
        track.take_in(Outcome::Read(Box::new(Readings {
            identity: None,
            sample,
            omitted: Vec::new(),
            details: None,
            answers: None,
            traces: Vec::new(),
        })));
    }

    #[test]
    fn a_lost_gpu_keeps_its_index_and_the_time_it_was_lost() {
        let mut track = Track::new(3, &ConditionSettings::default());
        let mut events = Vec::new();
        answers(&mut track);
        assert_eq!(compose(&mut track, 1, &mut events).health, Health::Ok);
        lost(&mut track);
        let first = compose(&mut track, 2, &mut events);
        std::thread::sleep(Duration::from_millis(3));
        lost(&mut track);
        let second = compose(&mut track, 3, &mut events);
        assert!(matches!(first.health, Health::Lost { .. }));
        assert_eq!(first.health, second.health);
        assert_eq!(second.index, 3);
        assert_eq!(second.power.draw_watts, Reading::Absent(Absence::GpuLost));
        assert!(matches!(second.memory.total_bytes, Reading::Earlier { value: 7, .. }), "how large it was stays");
        answers(&mut track);
        compose(&mut track, 4, &mut events);
        assert_eq!(events, [(2, EventKind::GpuLost), (4, EventKind::GpuBack)]);
    }

    #[test]
    fn a_gpu_that_was_never_read_says_why_and_one_that_was_stays_who_it_is() {
        let mut track = Track::new(3, &ConditionSettings::default());
        let told = || Outcome::Failed(DeviceError::Failed(Absence::NoPermission));
        assert!(track.take_in(told()).identity_changed);
        assert_eq!(track.gpu().name, Reading::Absent(Absence::NoPermission));
        assert!(!track.take_in(told()).identity_changed, "the same reason is no news");
        track.gpu.uuid = Some("GPU-3".into());
        assert!(!track.take_in(Outcome::Asleep).identity_changed);
        assert_eq!(track.gpu().uuid.as_deref(), Some("GPU-3"));
    }

    #[test]
    fn a_gpu_that_takes_long_to_open_does_not_hang_yet() {
        let mut track = Track::new(3, &ConditionSettings::default());
        let mut events = Vec::new();
        track.asked();
        track.awaited.as_mut().unwrap().since -= 5 * INTERVAL;
        let sample = compose(&mut track, 1, &mut events);
        assert_eq!(sample.health, Health::Ok);
        assert_eq!(sample.power.draw_watts, Reading::Absent(Absence::NoAnswer));
        track.awaited.as_mut().unwrap().since -= OPENING;
        assert!(matches!(compose(&mut track, 2, &mut events).health, Health::Hung { .. }));
    }

    #[test]
    fn a_gpu_hangs_after_an_interval_without_an_answer_and_shows_its_last_readings() {
        let mut track = Track::new(3, &ConditionSettings::default());
        let mut events = Vec::new();
        answers(&mut track);
        track.asked();
        assert_eq!(compose(&mut track, 1, &mut events).health, Health::Ok);
        track.awaited.as_mut().unwrap().since -= INTERVAL;
        let sample = compose(&mut track, 2, &mut events);
        assert!(matches!(sample.health, Health::Hung { .. }));
        assert_eq!(sample.uuid.as_deref(), Some("GPU-3"));
        assert_eq!(events.len(), 1);
        answers(&mut track);
        assert_eq!(compose(&mut track, 3, &mut events).health, Health::Ok);
        assert_eq!(events[1].1, EventKind::GpuBack);
    }
}
