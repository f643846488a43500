//! The state between two samples, and the creation of records at a tick.

use std::{
    mem,
    sync::{Arc, mpsc::Sender},
    time::{Duration, Instant},
};

use super::{
    Learned, Options,
    clock_watch::ClockWatch,
    gpu_state::GpuState,
    message::{Message, Query},
    placed,
    threads::{find_links, follow_driver, follow_log},
    workers::Workers,
};
use crate::{
    benchmarks::BelowBaselines,
    derive::{ErrorFilter, HostRates},
    model::{
        Absence, Event, EventKind, GpuDetails, GpuLink, Health, Inventory, Platform, Record,
        Sample, now_ms,
    },
    vendor::{DeviceError, DriverError, Notice, Source, SourceError, describe_error},
};

/// The maximum time that a sample waits for a late GPU, regardless of the interval.
const LATEST: Duration = Duration::from_millis(500);

/// The interval between two updates of the learned baselines.
const KEEP_INTERVAL: Duration = Duration::from_secs(10);

/// The tick at which the links between GPUs are read if some GPUs are still not open.
const LINKS_AT_TICK: u64 = 10;

/// The state of the sampler.
pub(super) struct Sampling {
    source: Arc<dyn Source>,
    platform: Platform,
    workers: Workers,
    states: Vec<GpuState>,
    links: Links,
    /// The channel for GPUs that were opened and whose events should be reported, or `None` if
    /// events are not wanted.
    opened: Option<Sender<u32>>,
    errors: ErrorFilter,
    host_rates: HostRates,
    clock: ClockWatch,
    below_baselines: Option<Arc<BelowBaselines>>,
    learned: Option<Arc<Learned>>,
    /// The time of the latest update of the learned baselines.
    kept: Instant,
    seq: u64,
    inventory_changed: bool,
    /// Events since the previous sample.
    events: Vec<Event>,
    /// Records that precede the sample.
    records: Vec<Record>,
}

/// The state of the links between GPUs.
enum Links {
    /// The links are not wanted, or have been requested.
    Settled(Vec<GpuLink>),
    Wanted,
}

impl Sampling {
    /// Starts the workers, and waits for their first answers, but at most for `patience`.
    pub(super) fn start(
        source: &Arc<dyn Source>,
        options: &Options,
        patience: Duration,
    ) -> Result<Self, SourceError> {
        let source = &placed::at_known_indices(source, options)?;
        let count = source.device_count()?;
        // The platform is read only once, because this thread must not wait for the driver later.
        let platform = source.platform();
        let state = |index| {
            let gpu = source.identify_closed(index, &Absence::NoAnswer);
            let state = GpuState::new(gpu, &options.conditions);
            match options.known_gpus.get(index as usize) {
                Some(known) => state.continued(known.clone()),
                None if options.known_gpus.is_empty() => state,
                None => state.added(),
            }
        };
        let workers = Workers::start(source, platform.is_simulated, count, options)?;
        let log_is_read = follow_log(
            source.as_ref(),
            options.kernel_log.as_ref(),
            &workers.sender(),
        );
        let mut sampling = Self {
            source: Arc::clone(source),
            platform,
            opened: options
                .events
                .then(|| follow_driver(source, workers.sender())),
            workers,
            states: (0..count).map(state).collect(),
            links: if options.events && count > 1 {
                Links::Wanted
            } else {
                Links::Settled(Vec::new())
            },
            errors: ErrorFilter::new(log_is_read),
            host_rates: HostRates::default(),
            clock: ClockWatch::default(),
            below_baselines: options.below_baselines.clone(),
            learned: options.learned.clone(),
            kept: Instant::now(),
            seq: 0,
            inventory_changed: false,
            events: Vec::new(),
            records: Vec::new(),
        };
        sampling.ask_and_collect(patience);
        sampling.inventory_changed = false;
        Ok(sampling)
    }

    /// Returns the inventory.
    pub(super) fn inventory(&self) -> Inventory {
        Inventory {
            at_ms: now_ms(),
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            platform: self.platform.clone(),
            gpus: self.states.iter().map(GpuState::gpu).collect(),
            playback: None,
            topology: match &self.links {
                Links::Settled(links) => links.clone(),
                Links::Wanted => Vec::new(),
            },
        }
    }

    /// Returns the newest details of all GPUs that have any.
    pub(super) fn details(&self) -> Vec<GpuDetails> {
        self.states
            .iter()
            .filter_map(GpuState::details)
            .cloned()
            .collect()
    }

    /// Runs one tick, and returns all records, with the sample at the end.
    ///
    /// # Errors
    /// Returns an error if the driver was replaced after its library was loaded, so that another
    /// process has to load the new library.
    pub(super) fn tick(&mut self, interval: Duration) -> Result<Vec<Record>, SourceError> {
        // The first sample uses the answers from the start of the workers.
        if self.seq > 0 {
            self.ask_and_collect((interval / 2).min(LATEST));
        }
        self.check_driver()?;
        let sample = self.compose(interval);
        self.keep_learned(KEEP_INTERVAL);
        let mut records = Vec::new();
        if mem::take(&mut self.inventory_changed) {
            records.push(Record::Inventory(self.inventory()));
        }
        records.extend(self.events.drain(..).map(Record::Event));
        records.append(&mut self.records);
        records.push(Record::Sample(sample));
        Ok(records)
    }

    /// Returns the sample of this tick. Its events are added to those of the tick.
    pub(super) fn compose(&mut self, interval: Duration) -> Sample {
        let now = now_ms();
        if let Some(by_ms) = self.clock.update(now) {
            self.events.push(Event {
                at_ms: now,
                gpu: None,
                what: EventKind::ClockChanged { by_ms },
            });
        }
        for (gpu, error) in self.errors.due(now) {
            self.on_error(gpu as usize, error, now);
        }
        let composed = self.states.iter_mut().map(|state| state.compose(interval));
        let (mut gpus, mut events): (Vec<_>, Vec<_>) = composed.unzip();
        let below = self.below_baselines.as_ref().map(|below| below.get());
        for (number, state) in self.states.iter_mut().enumerate() {
            if let Some(below) = &below {
                let uuid = state.gpu_ref().uuid;
                state.set_below_baseline(uuid.and_then(|uuid| below.get(&uuid).cloned()));
            }
            events[number].extend(state.derive_conditions(&mut gpus, number, now));
        }
        for (gpu, events) in events.into_iter().enumerate() {
            for what in events {
                self.add_event(gpu, what, now);
            }
        }
        let mut host = self.workers.host();
        self.host_rates.fill(&mut host);
        let seq = self.seq;
        self.seq += 1;
        Sample {
            seq,
            at_ms: now,
            interval_ms: interval.as_millis() as u32,
            gpus,
            host,
        }
    }

    /// Marks all pending answers as hung.
    pub(super) fn give_up_waiting(&mut self) {
        self.states.iter_mut().for_each(GpuState::give_up_waiting);
    }

    /// Queries all free workers, and waits for their answers, but at most for `patience`.
    fn ask_and_collect(&mut self, patience: Duration) {
        // Late answers are handled first, so that their GPUs can be queried at this tick.
        for message in self.workers.messages() {
            self.ingest(message);
        }
        let free = self
            .states
            .iter_mut()
            .enumerate()
            .filter(|(_, state)| !state.is_pending());
        let queries = free.map(|(index, state)| {
            (
                index,
                Query {
                    details_now: state.take_details_request(),
                },
            )
        });
        for index in self.workers.ask(queries) {
            self.states[index].mark_pending();
        }
        for message in self.workers.messages_until_answered(patience) {
            self.ingest(message);
        }
        self.ask_for_links();
    }

    fn ingest(&mut self, message: Message) {
        let now = now_ms();
        match message {
            Message::Answer { index, outcome } => {
                let update = self.states[index as usize].ingest(outcome);
                self.inventory_changed |= update.identity_changed;
                if update.identity_changed {
                    self.restore(index as usize);
                }
                if update.mig_changed {
                    self.add_event(index as usize, EventKind::MigChanged, now);
                }
                self.records.extend(update.details.map(Record::Details));
                self.records
                    .extend(update.traces.into_iter().map(Record::Trace));
                for error in update.errors {
                    self.on_error(index as usize, error, now);
                }
            }
            // This message only affects the waiting time.
            Message::FirstRead { .. } => {}
            Message::Opened { index } => {
                if let Some(opened) = &self.opened {
                    let _ = opened.send(index);
                }
            }
            Message::Notice { index, notice } => self.on_notice(index as usize, notice, now),
            Message::Logged(logged) => {
                let is_it =
                    |state: &GpuState| state.logged_as().as_ref() == Some(&logged.pci_bus_id);
                if let Some(gpu) = self.states.iter().position(is_it)
                    && let Some(error) = self.errors.from_log(gpu as u32, logged.error, now)
                {
                    self.on_error(gpu, error, now);
                }
            }
            Message::LogEnded => self.errors.log_ended(),
            Message::Links(links) => {
                self.links = Links::Settled(links);
                self.inventory_changed = true;
            }
        }
    }

    /// Restores the learned baseline of a GPU after it was identified.
    fn restore(&mut self, gpu: usize) {
        let (Some(learned), Some(uuid)) = (&self.learned, self.states[gpu].gpu_ref().uuid) else {
            return;
        };
        if let Some(baseline) = learned.baseline(&uuid) {
            self.states[gpu].restore(&baseline);
        }
    }

    /// Stores the learned baselines of all GPUs, if the latest update was at least `interval` ago.
    fn keep_learned(&mut self, interval: Duration) {
        let Some(learned) = self
            .learned
            .as_ref()
            .filter(|_| self.kept.elapsed() >= interval)
        else {
            return;
        };
        for state in &self.states {
            if let Some(uuid) = state.gpu_ref().uuid {
                learned.keep(&uuid, state.baseline());
            }
        }
        self.kept = Instant::now();
    }

    fn on_notice(&mut self, gpu: usize, notice: Notice, now_ms: u64) {
        match notice {
            Notice::Error { code } => {
                if let Some(error) = self.errors.from_driver(gpu as u32, code, now_ms) {
                    self.on_error(gpu, error, now_ms);
                }
            }
            Notice::PowerSource => self.add_event(gpu, EventKind::PowerSourceChanged, now_ms),
            // The notice contains no values, so that the details are read at the next tick.
            Notice::EccCorrected | Notice::EccUncorrected | Notice::Partitions => {
                self.states[gpu].request_details();
            }
        }
    }

    fn on_error(&mut self, gpu: usize, error: DriverError, now_ms: u64) {
        let info = describe_error(error.code);
        let report = info.report(error);
        let mut events = self.states[gpu].on_error(&report, &info, now_ms);
        events.insert(0, EventKind::Xid(report));
        for what in events {
            self.add_event(gpu, what, now_ms);
        }
        // The error may have changed the recovery that the driver requests, which is part of the
        // details.
        self.states[gpu].request_details();
    }

    fn add_event(&mut self, gpu: usize, what: EventKind, at_ms: u64) {
        self.events.push(Event {
            at_ms,
            gpu: Some(self.states[gpu].gpu_ref()),
            what,
        });
    }

    fn ask_for_links(&mut self) {
        let opened = || self.states.iter().filter(|state| state.is_ok());
        let all = opened().count() == self.states.len();
        if matches!(self.links, Links::Wanted) && (all || self.seq >= LINKS_AT_TICK) {
            find_links(
                &self.source,
                opened().map(|state| state.gpu_ref().index).collect(),
                self.workers.sender(),
            );
            self.links = Links::Settled(Vec::new());
        }
    }

    /// Checks that no driver was unloaded or replaced. In that case, all GPUs of the vendor fail,
    /// and this process cannot load the library again. GPUs of other vendors still answer.
    fn check_driver(&self) -> Result<(), SourceError> {
        let states = self.states.iter();
        let gpus = states.map(|state| (state.vendor(), state.is_ok(), state.driver_replaced()));
        find_replaced_driver(&gpus).map_or(Ok(()), Err)
    }
}

/// Returns the error of a driver that was replaced, if none of its GPUs answers. Each item is a
/// GPU: its driver, `true` if it answers, and the error that reports a replacement.
fn find_replaced_driver<D: PartialEq>(
    gpus: &(impl Iterator<Item = (D, bool, Option<SourceError>)> + Clone),
) -> Option<SourceError> {
    let answers = |driver: &D| {
        gpus.clone()
            .any(|(other, is_ok, _)| is_ok && other == *driver)
    };
    let mut replaced = gpus
        .clone()
        .filter_map(|(driver, _, cause)| Some((driver, cause?)));
    replaced.find_map(|(driver, cause)| (!answers(&driver)).then_some(cause))
}

impl GpuState {
    /// Returns `true` if the latest answer was successful.
    fn is_ok(&self) -> bool {
        self.health() == &Health::Ok && self.has_answered()
    }

    fn driver_replaced(&self) -> Option<SourceError> {
        match self.error() {
            Some(DeviceError::DriverReplaced { cause, .. }) => Some(cause.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{derive::learned_baseline, owner::CommandLines, vendor::SourceChoice};

    #[test]
    fn replaced_driver_is_found_though_another_answers() {
        let replaced = || Some(SourceError::VersionMismatch("replaced".to_owned()));
        let find = |gpus: &[(&str, bool, Option<SourceError>)]| {
            find_replaced_driver(&gpus.iter().cloned())
        };
        assert_eq!(find(&[("a", true, None), ("b", true, None)]), None);
        assert_eq!(
            find(&[("a", true, None), ("b", false, replaced())]),
            replaced()
        );
        let still_answers = [("a", false, replaced()), ("a", true, None)];
        assert_eq!(find(&still_answers), None);
    }

    #[test]
    fn a_gpu_goes_on_with_what_was_learned_of_it_and_that_is_kept() {
        let learned = || Arc::new(Learned::read("/nonexistent/learned.json".into()).0);
        let source = SourceChoice::Sim(1)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let (before, after) = (learned(), learned());
        let options = Options::new(Duration::from_millis(100), CommandLines::All);
        let start = |learned| {
            let options = Options {
                learned: Some(learned),
                ..options.clone()
            };
            Sampling::start(&source, &options, super::super::OPENING).unwrap()
        };
        let uuid = start(learned()).states[0].gpu_ref().uuid.unwrap();
        before.keep(&uuid, learned_baseline());
        let mut sampling = start(before);
        assert_eq!(sampling.states[0].baseline(), learned_baseline());
        sampling.learned = Some(Arc::clone(&after));
        sampling.keep_learned(Duration::from_hours(1));
        assert_eq!(after.baseline(&uuid), None, "not yet");
        sampling.keep_learned(Duration::ZERO);
        assert_eq!(after.baseline(&uuid), Some(learned_baseline()));
    }
}
