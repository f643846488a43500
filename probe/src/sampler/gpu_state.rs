//! The state of one GPU between ticks: its identity, its latest readings, and its pending query.

use std::time::{Duration, Instant};

use super::{
    schedule::MAX_STARVED_TIME,
    threads::{Outcome, Readings},
};
use crate::{
    cpu_use::CpuUse,
    derive::{ConditionSettings, ConditionTracker, EccTracker, LimitTracker, ProcessTracker},
    model::{
        Absence, EventKind, Gpu, GpuDetails, GpuRef, GpuSample, Health, HostSample, KnownGpu,
        ProcessRef, Trace, normalize_bus_id, now_ms,
    },
    vendor::{DeviceError, DriverError, SourceError},
};

/// The minimum wait before a driver call counts as hung. Calls to a busy driver can take this long.
const MIN_PATIENCE: Duration = Duration::from_millis(150);

/// The time after which a GPU that has never responded counts as hung. A driver without persistence
/// mode may take this long to open its GPUs.
const MAX_OPENING_TIME: Duration = Duration::from_secs(30);

pub(super) struct GpuState {
    pub(super) gpu: Gpu,
    /// The latest sample.
    last: GpuSample,
    /// The processes that do not fit into `last`, kept until events have been derived.
    omitted: Vec<ProcessRef>,
    /// The CPU use of the processes in `last`, if it is known.
    cpu_use: CpuUse,
    /// The latest details.
    pub(super) details: Option<GpuDetails>,
    /// The error of the latest reading, if it failed.
    error: Option<DeviceError>,
    /// The query that the GPU's thread has not answered yet.
    pending: Option<PendingQuery>,
    /// Whether events have been derived from `last`.
    derived: bool,
    /// Whether the details have probably changed and should be read at the next tick.
    details_requested: bool,
    /// Whether the GPU has ever answered.
    opened: bool,
    /// The event for an added GPU, kept until its UUID is known.
    added: Option<EventKind>,
    /// The health in the latest sample, for detecting changes.
    shown: Health,
    pub(super) conditions: ConditionTracker,
    limits: LimitTracker,
    processes: ProcessTracker,
    ecc: EccTracker,
    /// Events since the previous tick.
    events: Vec<EventKind>,
}

/// The changes that result from a response, apart from the sample.
#[derive(Default)]
pub(super) struct Update {
    pub(super) identity_changed: bool,
    pub(super) mig_changed: bool,
    pub(super) details: Option<GpuDetails>,
    pub(super) traces: Vec<Trace>,
    pub(super) errors: Vec<DriverError>,
}

struct PendingQuery {
    since: Instant,
    since_ms: u64,
    is_given_up: bool,
}

impl GpuState {
    /// Creates the state of a GPU that has not responded yet.
    pub(super) fn new(gpu: Gpu, settings: &ConditionSettings) -> Self {
        let (index, uuid) = (gpu.index, gpu.uuid.clone());
        Self {
            gpu,
            last: GpuSample::new_absent(index, uuid, now_ms(), Health::Ok, &Absence::NoAnswer),
            omitted: Vec::new(),
            cpu_use: CpuUse::default(),
            details: None,
            error: None,
            pending: None,
            derived: true,
            details_requested: false,
            opened: false,
            added: None,
            shown: Health::Ok,
            conditions: ConditionTracker::new(settings),
            limits: LimitTracker::default(),
            processes: ProcessTracker::default(),
            ecc: EccTracker::default(),
            events: Vec::new(),
        }
    }

    /// Sets the identity and health that an earlier collector recorded.
    pub(super) fn with_known_identity(self, known: KnownGpu) -> Self {
        let KnownGpu { gpu, health } = known;
        let Gpu { index, uuid, .. } = gpu.clone();
        let last = GpuSample::new_absent(index, uuid, now_ms(), health.clone(), &Absence::NoAnswer);
        Self {
            gpu: Gpu {
                // The vendor index is the one that the driver reports now, not the one recorded
                // earlier: the driver may have renumbered its GPUs, and does not list missing GPUs.
                vendor_index: self.gpu.vendor_index,
                ..gpu
            },
            last,
            shown: health,
            ..self
        }
    }

    /// Marks the GPU as added to the running machine.
    pub(super) fn with_added_event(self) -> Self {
        Self {
            added: Some(EventKind::GpuAdded),
            ..self
        }
    }

    pub(super) fn gpu_ref(&self) -> GpuRef {
        GpuRef {
            index: self.gpu.index,
            uuid: self.gpu.uuid.clone(),
        }
    }

    /// Returns the PCI bus ID in the format used by the kernel log.
    pub(super) fn log_bus_id(&self) -> Option<String> {
        normalize_bus_id(self.gpu.pci_bus_id.value()?)
    }

    /// Returns `true` if the latest response was successful.
    pub(super) fn is_responding(&self) -> bool {
        self.last.health == Health::Ok && self.opened
    }

    /// Returns the error of the latest reading if the driver was replaced.
    pub(super) fn replacement_error(&self) -> Option<SourceError> {
        match &self.error {
            Some(DeviceError::DriverReplaced { cause, .. }) => Some(cause.clone()),
            _ => None,
        }
    }

    /// Requests that the details be read at the next tick.
    pub(super) fn request_details(&mut self) {
        self.details_requested = true;
    }

    pub(super) fn take_details_request(&mut self) -> bool {
        std::mem::take(&mut self.details_requested)
    }

    /// Returns `true` if an earlier query has not been answered yet.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn mark_pending(&mut self) {
        self.pending = Some(PendingQuery {
            since: Instant::now(),
            since_ms: now_ms(),
            is_given_up: false,
        });
    }

    /// Marks the pending query as hung.
    pub(super) fn mark_query_hung(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.is_given_up = true;
        }
    }

    /// Applies the response to a query.
    pub(super) fn ingest(&mut self, outcome: Outcome) -> Update {
        self.pending = None;
        self.opened = true;
        self.derived = false;
        match outcome {
            Outcome::Read(readings) => self.ingest_readings(*readings),
            Outcome::Asleep(identity) => {
                let at_ms = now_ms();
                let identity_changed = match identity {
                    Some(gpu) => self.set_identity(*gpu),
                    None => self.update_unknown_reason(&Absence::Asleep),
                };
                let since_ms = if let Health::Asleep { since_ms } = self.last.health {
                    since_ms
                } else {
                    at_ms
                };
                self.clear_sample_readings(Health::Asleep { since_ms }, &Absence::Asleep, at_ms);
                Update {
                    identity_changed,
                    ..Update::default()
                }
            }
            Outcome::Failed(error) => {
                let at_ms = now_ms();
                let (health, reason) = self.health_after_error(&error, at_ms);
                self.clear_sample_readings(health, &reason, at_ms);
                self.error = Some(error);
                Update {
                    identity_changed: self.update_unknown_reason(&reason),
                    ..Update::default()
                }
            }
        }
    }

    fn ingest_readings(&mut self, readings: Readings) -> Update {
        let Readings {
            identity,
            sample,
            omitted,
            cpu_use,
            details,
            traces,
            errors,
        } = readings;
        self.error = None;
        self.last = sample;
        self.omitted = omitted;
        self.cpu_use = cpu_use;
        let mut update = Update {
            traces,
            errors,
            ..Update::default()
        };
        if let Some(gpu) = identity {
            // A GPU's first identification does not count as a change of its MIG devices.
            update.mig_changed = self.gpu.uuid.is_some() && gpu.mig_devices != self.gpu.mig_devices;
            update.identity_changed = self.set_identity(gpu);
        }
        if let Some(details) = details {
            self.events.extend(self.ecc.update(&details));
            self.details = Some(details.clone());
            update.details = Some(details);
        }
        update
    }

    /// Sets the identity, and returns `true` if it has changed.
    fn set_identity(&mut self, gpu: Gpu) -> bool {
        if gpu.uuid.is_some() {
            self.events.extend(self.added.take());
        }
        let is_changed = gpu != self.gpu;
        self.gpu = gpu;
        is_changed
    }

    /// Replaces the latest sample with a sample without readings.
    fn clear_sample_readings(&mut self, health: Health, reason: &Absence, at_ms: u64) {
        let absent =
            GpuSample::new_absent(self.gpu.index, self.gpu.uuid.clone(), at_ms, health, reason);
        let known = std::mem::replace(&mut self.last, absent);
        // The allocation is kept, because it is important to know who uses a failed GPU.
        self.last.allocated_to = known.allocated_to;
        // Memory size and power limit are kept: they do not change, and earlier readings are
        // displayed as shares of them.
        if known.memory.total_bytes.value().is_some() {
            self.last.memory.total_bytes = known.memory.total_bytes.with_time(known.at_ms);
        }
        if known.power.limit_watts.value().is_some() {
            self.last.power.limit_watts = known.power.limit_watts.with_time(known.at_ms);
        }
    }

    /// Updates the reason why the GPU is not identified. Returns `true` if the reason has changed.
    fn update_unknown_reason(&mut self, reason: &Absence) -> bool {
        let why = self.gpu.name.absence();
        let is_unknown = self.gpu.uuid.is_none() && self.gpu.pci_bus_id.value().is_none();
        let changed = is_unknown && why.is_some_and(|known| known != reason);
        if changed {
            self.gpu = Gpu {
                vendor: self.gpu.vendor,
                vendor_index: self.gpu.vendor_index,
                ..Gpu::new_unidentified(self.gpu.index, reason)
            };
        }
        changed
    }

    /// Returns the health and the reason for absent readings after an error. If the same error
    /// occurred before, the time of its first occurrence is kept.
    fn health_after_error(&self, error: &DeviceError, at_ms: u64) -> (Health, Absence) {
        let (reason, meaning, advice) = match error {
            DeviceError::Lost => {
                let since_ms = if let Health::Lost { since_ms } = self.last.health {
                    since_ms
                } else {
                    at_ms
                };
                return (Health::Lost { since_ms }, Absence::GpuLost);
            }
            DeviceError::Asleep => (Absence::Asleep, error.to_string(), String::new()),
            DeviceError::DriverReplaced { code, cause } => (
                Absence::DriverError { code: *code },
                cause.to_string(),
                String::new(),
            ),
            DeviceError::Failed {
                reason,
                meaning,
                advice,
            } => (reason.clone(), meaning.clone(), advice.clone()),
        };
        let since_ms = if let Health::Failed { since_ms, .. } = self.last.health {
            since_ms
        } else {
            at_ms
        };
        (
            Health::Failed {
                since_ms,
                reason: reason.clone(),
                meaning,
                advice,
            },
            reason,
        )
    }

    /// Returns this tick's sample, in which the conditions are not filled in yet, and the events
    /// since the previous tick. `is_runnable` returns whether the GPU's thread runs or waits for a
    /// CPU.
    pub(super) fn compose_sample(
        &mut self,
        interval: Duration,
        is_runnable: impl FnOnce() -> bool,
    ) -> (GpuSample, Vec<EventKind>) {
        let mut sample = self.last.clone();
        // A GPU counts as hung after slightly less than one interval, which leaves time to wake the
        // threads.
        let patience = if self.opened {
            interval.mul_f64(0.9).max(MIN_PATIENCE)
        } else {
            MAX_OPENING_TIME
        };
        let is_hung = |pending: &&PendingQuery| {
            let waited = pending.since.elapsed();
            pending.is_given_up
                || waited >= patience && (waited >= MAX_STARVED_TIME || !is_runnable())
        };
        if let Some(pending) = self.pending.as_ref().filter(is_hung) {
            sample.health = Health::Hung {
                since_ms: pending.since_ms,
            };
        }
        let mut events = Vec::new();
        if std::mem::discriminant(&self.shown) != std::mem::discriminant(&sample.health) {
            events.push(EventKind::from(&sample.health));
        }
        self.shown = sample.health.clone();
        events.append(&mut self.events);
        if !std::mem::replace(&mut self.derived, true) {
            events.extend(
                self.processes
                    .update(&sample.processes, std::mem::take(&mut self.omitted)),
            );
        }
        (sample, events)
    }

    /// Fills in what limits the GPU, given the samples of all GPUs.
    pub(super) fn derive_limits(
        &mut self,
        samples: &mut [GpuSample],
        number: usize,
        host: &HostSample,
    ) {
        self.limits
            .update(samples, number, &self.gpu.board, &self.cpu_use, host);
    }

    /// Fills in the conditions, given the samples of all GPUs. Returns events for conditions that
    /// started or ended.
    pub(super) fn derive_conditions(
        &mut self,
        samples: &mut [GpuSample],
        number: usize,
        now_ms: u64,
    ) -> Vec<EventKind> {
        self.conditions.update(
            samples,
            number,
            &self.gpu.board,
            self.details.as_ref(),
            now_ms,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reading;

    const INTERVAL: Duration = Duration::from_secs(1);

    fn new_state() -> GpuState {
        let gpu = Gpu::new_unidentified(3, &Absence::NoAnswer);
        GpuState::new(gpu, &ConditionSettings::default())
    }

    fn compose_and_collect(
        state: &mut GpuState,
        now_ms: u64,
        events: &mut Vec<(u64, EventKind)>,
    ) -> GpuSample {
        let (sample, new) = state.compose_sample(INTERVAL, || false);
        events.extend(new.into_iter().map(|what| (now_ms, what)));
        sample
    }

    fn report_lost(state: &mut GpuState) {
        state.ingest(Outcome::Failed(DeviceError::Lost));
    }

    fn report_readings(state: &mut GpuState) {
        let mut sample = GpuSample::new_absent(
            3,
            Some("GPU-3".into()),
            now_ms(),
            Health::Ok,
            &Absence::Unknown,
        );
        sample.memory.total_bytes = Reading::Now(7);
        state.ingest(Outcome::Read(Box::new(Readings {
            identity: None,
            sample,
            omitted: Vec::new(),
            cpu_use: CpuUse::default(),
            details: None,
            traces: Vec::new(),
            errors: Vec::new(),
        })));
    }

    #[test]
    fn lost_gpu_keeps_index_and_time_of_loss() {
        let mut state = new_state();
        let mut events = Vec::new();
        report_readings(&mut state);
        assert_eq!(
            compose_and_collect(&mut state, 1, &mut events).health,
            Health::Ok
        );
        report_lost(&mut state);
        let first = compose_and_collect(&mut state, 2, &mut events);
        std::thread::sleep(Duration::from_millis(3));
        report_lost(&mut state);
        let second = compose_and_collect(&mut state, 3, &mut events);
        assert!(matches!(first.health, Health::Lost { .. }));
        assert_eq!(first.health, second.health);
        assert_eq!(second.index, 3);
        assert_eq!(second.power.draw_watts, Reading::Absent(Absence::GpuLost));
        assert!(
            matches!(second.memory.total_bytes, Reading::Earlier { value: 7, .. }),
            "how large it was stays"
        );
        report_readings(&mut state);
        compose_and_collect(&mut state, 4, &mut events);
        assert_eq!(events, [(2, EventKind::GpuLost), (4, EventKind::GpuBack)]);
    }

    #[test]
    fn failed_gpu_has_reason_and_keeps_identity() {
        let mut state = new_state();
        let refused = || {
            let (meaning, advice) = ("refused".to_owned(), "ask".to_owned());
            Outcome::Failed(DeviceError::Failed {
                reason: Absence::NoPermission,
                meaning,
                advice,
            })
        };
        assert!(state.ingest(refused()).identity_changed);
        assert_eq!(state.gpu.name, Reading::Absent(Absence::NoPermission));
        assert!(
            !state.ingest(refused()).identity_changed,
            "the same reason is no change"
        );
        state.gpu.uuid = Some("GPU-3".into());
        assert!(!state.ingest(Outcome::Asleep(None)).identity_changed);
        assert_eq!(state.gpu.uuid.as_deref(), Some("GPU-3"));
        let other = Gpu {
            uuid: Some("GPU-4".into()),
            ..Gpu::new_unidentified(3, &Absence::Asleep)
        };
        let asleep = Outcome::Asleep(Some(Box::new(other)));
        assert!(state.ingest(asleep).identity_changed);
        assert_eq!(state.last.uuid.as_deref(), Some("GPU-4"));
    }

    #[test]
    fn lost_gpu_of_previous_collector_is_reported_once() {
        let gpu = Gpu {
            uuid: Some("GPU-3".into()),
            ..Gpu::new_unidentified(3, &Absence::Unknown)
        };
        let known = KnownGpu {
            gpu,
            health: Health::Lost { since_ms: 7 },
        };
        let mut state = new_state().with_known_identity(known);
        let mut events = Vec::new();
        report_lost(&mut state);
        let sample = compose_and_collect(&mut state, 1, &mut events);
        assert_eq!(
            (sample.health, sample.uuid.as_deref()),
            (Health::Lost { since_ms: 7 }, Some("GPU-3"))
        );
        report_readings(&mut state);
        compose_and_collect(&mut state, 2, &mut events);
        assert_eq!(events, [(2, EventKind::GpuBack)]);
    }

    #[test]
    fn gpu_that_opens_slowly_is_not_hung() {
        let mut state = new_state();
        let mut events = Vec::new();
        state.mark_pending();
        state.pending.as_mut().unwrap().since -= 5 * INTERVAL;
        let sample = compose_and_collect(&mut state, 1, &mut events);
        assert_eq!(sample.health, Health::Ok);
        assert_eq!(sample.power.draw_watts, Reading::Absent(Absence::NoAnswer));
        state.pending.as_mut().unwrap().since -= MAX_OPENING_TIME;
        assert!(matches!(
            compose_and_collect(&mut state, 2, &mut events).health,
            Health::Hung { .. }
        ));
    }

    #[test]
    fn gpu_without_answer_for_one_interval_is_hung() {
        let mut state = new_state();
        let mut events = Vec::new();
        report_readings(&mut state);
        state.mark_pending();
        assert_eq!(
            compose_and_collect(&mut state, 1, &mut events).health,
            Health::Ok
        );
        state.pending.as_mut().unwrap().since -= INTERVAL;
        let sample = compose_and_collect(&mut state, 2, &mut events);
        assert!(matches!(sample.health, Health::Hung { .. }));
        assert_eq!(sample.uuid.as_deref(), Some("GPU-3"));
        assert_eq!(events.len(), 1);
        report_readings(&mut state);
        assert_eq!(
            compose_and_collect(&mut state, 3, &mut events).health,
            Health::Ok
        );
        assert_eq!(events[1].1, EventKind::GpuBack);
    }

    #[test]
    fn gpu_thread_without_cpu_hangs_after_two_seconds() {
        let mut state = new_state();
        report_readings(&mut state);
        state.mark_pending();
        state.pending.as_mut().unwrap().since -= INTERVAL;
        assert_eq!(state.compose_sample(INTERVAL, || true).0.health, Health::Ok);
        state.pending.as_mut().unwrap().since -= INTERVAL;
        assert!(matches!(
            state.compose_sample(INTERVAL, || true).0.health,
            Health::Hung { .. }
        ));
    }
}
